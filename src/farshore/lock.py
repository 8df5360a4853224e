"""One writer per folder: a lock that the system releases when the process ends."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FarshoreError

try:
    import fcntl
except ImportError:  # Windows has no flock: there is no lock
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


@contextmanager
def exclusive(folder: str | Path) -> Iterator[None]:
    """Lock `folder`, so that only this process writes into it.

    A second process is refused with a message that names the first one and its machine. The lock
    file stays when the lock is released; its contents are for that message only. A killed process
    leaves no lock behind.
    """
    path = Path(folder) / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise FarshoreError(f"{folder} cannot be written: {error.strerror or error}") from None
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise FarshoreError(
                    f"{folder} is in use by {_owner(descriptor)}: wait until it is done; nothing "
                    "was changed"
                ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(
            descriptor,
            json.dumps({"process": os.getpid(), "host": socket.gethostname()}).encode(),
            0,
        )
        yield
    finally:
        os.close(descriptor)


def _owner(descriptor: int) -> str:
    try:
        owner = json.loads(os.pread(descriptor, 1000, 0))
        return f"process {int(owner['process'])} on {str(owner['host'])[:100]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
