"""Files of features that a frozen part computed once, by content; runs share them.

A file is named by a checksum of everything that decides its numbers. It is read back as a memory
map, after a check of its contents. Two processes that need the same file compute it once. The cache
may be deleted at any time.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from ..base.files import temporary_path, write_atomic
from ..base.lock import InUseError, exclusive
from ..errors import FarshoreError
from .domain import Array
from .downloads.public_files import data_root, known_checksum

HASHED_BYTES = 1 << 24
WAIT_SECONDS = 0.2


# Returns the array of this shape that a name stands for, from a cache or computed.
Once: TypeAlias = Callable[[str, tuple[int, ...], Callable[[], np.ndarray]], np.ndarray]


def directly(what: str, shape: tuple[int, ...], compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Compute it: nothing is kept."""
    return compute()


class FeatureCache:
    """Files of features in a folder: $FARSHORE_FEATURES, else `features` in the data folder."""

    def __init__(self, folder: Path | None = None) -> None:
        chosen = os.environ.get("FARSHORE_FEATURES")
        usual = Path(chosen).expanduser() if chosen else data_root() / "features"
        self.folder = folder if folder is not None else usual

    def get(
        self, key: str, shape: tuple[int, ...], compute: Callable[[np.ndarray], None]
    ) -> np.ndarray:
        """The features of this key as a read-only memory map; computed if they are not there."""
        stored = self.read(key, shape)
        if stored is not None:
            return stored
        with self._alone(key):
            stored = self.read(key, shape)  # another process may have been faster
            if stored is not None:
                return stored
            self._write(key, shape, compute)
        stored = self.read(key, shape)
        if stored is None:
            why = f"{self._path(key)} was written and cannot be read back: check the disk"
            raise FarshoreError(why)
        return stored

    def read(self, key: str, shape: tuple[int, ...]) -> np.ndarray | None:
        """The stored features; None if there are none, or if the file is damaged."""
        path = self._path(key)
        try:
            facts = json.loads(path.with_suffix(".json").read_text())
            if facts != {"shape": list(shape), "sha256": known_checksum(path)}:
                return None
            stored: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, FarshoreError):
            return None
        return stored if stored.shape == shape and stored.dtype == np.float32 else None

    def _write(
        self, key: str, shape: tuple[int, ...], compute: Callable[[np.ndarray], None]
    ) -> None:
        path = self._path(key)
        temporary = temporary_path(path)
        try:
            with open(temporary, "xb") as file:
                np.lib.format.write_array_header_2_0(
                    file, {"descr": "<f4", "fortran_order": False, "shape": shape}
                )
                start = file.tell()
                file.truncate(start + 4 * int(np.prod(shape)))
            out = np.memmap(temporary, np.float32, "r+", offset=start, shape=shape)
            compute(out)
            out.flush()
            del out
            facts = {"shape": list(shape), "sha256": known_checksum(temporary)}
            os.replace(temporary, path)
            write_atomic(path.with_suffix(".json"), json.dumps(facts).encode())
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npy"

    @contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """Be the only process that writes this file; wait for another one that does."""
        lock = self._path(key).with_suffix(".lock")
        while True:
            try:
                with exclusive(lock):
                    yield
                break
            except InUseError:
                time.sleep(WAIT_SECONDS)
        with suppress(OSError):
            (lock / ".lock").unlink(missing_ok=True)
            lock.rmdir()


def array_checksum(values: Array) -> str:
    """The sha256 of an array's shape, type and contents."""
    digest = hashlib.sha256(f"{tuple(values.shape)} {values.dtype}".encode())
    rows = max(1, HASHED_BYTES * len(values) // max(1, values.nbytes))
    for start in range(0, len(values), rows):
        part: Any = values[start : start + rows]
        array = part.cpu().numpy() if isinstance(part, Tensor) else np.asarray(part)
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
