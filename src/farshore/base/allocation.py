"""Room for arrays; what this machine's memory cannot hold is refused before it is allocated."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import DTypeLike

from ..errors import FarshoreError

GIB = 1 << 30
# A larger array is kept in a memory-mapped file.
LARGEST_IN_MEMORY = 1 << 30


@contextmanager
def explain_shortage(what: str, remedy: str) -> Iterator[None]:
    """Turn a failed allocation inside into one line that says what to give instead."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # Only for GPUs PyTorch has an error class of its own.
        known = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if not known and "can't allocate memory" not in str(error):
            raise
        raise FarshoreError(f"the memory does not suffice for {what}: {remedy}") from error


def usable_bytes() -> int:
    """The machine's memory, or the limit on this process if that is smaller."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # a system without these numbers
        whole = sys.maxsize
    try:
        import resource
    except ImportError:
        return whole
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return whole if limit == resource.RLIM_INFINITY else min(whole, limit)


def check_fits(size: int, what: str, remedy: str) -> None:
    """Refuse `what` if its `size` bytes are more than this process can ever have."""
    usable = usable_bytes()
    if size > usable:
        raise FarshoreError(
            f"{what} would take {size / GIB:,.1f} GiB, and there are {usable / GIB:,.1f} GiB here: "
            f"{remedy}"
        )


def empty_array(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """An array without values: in memory, or in a temporary file if it is large."""
    if math.prod(shape) * np.dtype(dtype).itemsize <= LARGEST_IN_MEMORY:
        return np.empty(shape, dtype)
    with TemporaryFile(prefix="farshore-") as file:  # the memory map keeps the file alive
        return np.memmap(file, dtype, "w+", shape=shape)
