"""Names in what somebody else wrote: while it is read, they lead to no code and to no network."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inert = ContextVar("whether names lead neither to code nor to a network", default=False)


@contextmanager
def inert() -> Iterator[None]:
    """Inside, no file of the user's own is imported, and nothing is fetched."""
    before = _inert.set(True)
    try:
        yield
    finally:
        _inert.reset(before)


def is_inert() -> bool:
    """Whether something that somebody else wrote is being read."""
    return _inert.get()
