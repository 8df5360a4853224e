"""One writer per folder: a lock that the system releases when the process ends."""

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ..errors import FarshoreError
from .files import NO_FOLLOW, reason

try:
    fcntl: ModuleType | None = import_module("fcntl")
except ImportError:  # Windows has `msvcrt` instead
    fcntl = None

LOCK = ".lock"
# The byte that is locked on Windows, where no other process can read a locked byte: one behind the
# contents, which a second process reads.
LOCKED_BYTE = 1 << 20
# How the contents of every lock file begin.
BEGINNING = b'{"process": '


class InUseError(FarshoreError):
    """Another process has locked the folder."""


@contextmanager
def exclusive(folder: str | Path) -> Iterator[None]:
    """Lock `folder`, so that only this process writes into it.

    A second process is refused with a message that names the first one and its machine. The lock
    file stays when the lock is released; its contents are for that message only. A killed process
    leaves no lock behind. A link, or somebody else's file of that name, is refused.
    """
    path = Path(folder) / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            why = f"{path} is a link, and nothing is written through links: delete the link"
            raise FarshoreError(why) from None
        raise FarshoreError(f"{folder} cannot be written: {reason(error)}") from None
    try:
        _lock(descriptor, path)
        owner = json.dumps({"process": os.getpid(), "host": socket.gethostname()}).encode()
        with suppress(OSError):  # a full disk: the message to a second process names no owner
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, owner)
        yield
    finally:
        os.close(descriptor)  # which releases the lock


def _lock(descriptor: int, path: Path) -> None:
    try:
        free = _take(descriptor)
    except OSError as error:
        raise FarshoreError(f"{path.parent} cannot be locked: {reason(error)}") from None
    if not free:
        raise InUseError(
            f"{path.parent} is in use by {_owner(descriptor)}: wait until it is done; nothing "
            "was changed"
        )
    contents = _read(descriptor)
    if contents and not contents.startswith(BEGINNING):
        raise FarshoreError(
            f"{path} is not a lock of farshore, and it is not overwritten: move it away, or use "
            "another folder"
        )


def _take(descriptor: int) -> bool:
    """Lock the file; False if another process has."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt: ModuleType = import_module("msvcrt")
            os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # what flock and what Windows answers
        return False
    return True


def _read(descriptor: int) -> bytes:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.read(descriptor, 1000)
    except OSError:
        return b"unreadable"


def _owner(descriptor: int) -> str:
    try:
        owner = json.loads(_read(descriptor))
        return f"process {int(owner['process'])} on {str(owner['host'])[:100]}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def is_running(process: int) -> bool:
    """Whether a process of this machine runs, whoever owns it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
