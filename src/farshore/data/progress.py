"""Progress of slow reading: whoever started it may follow, however deep it happens."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
# Called with what is being done, how many parts are done, and how many there are.
Follow = Callable[[str, int, int], None]
_follower: ContextVar[Follow | None] = ContextVar("follower", default=None)


@contextmanager
def following(follow: Follow) -> Iterator[None]:
    """Inside, slow reading reports its progress to this function."""
    token = _follower.set(follow)
    try:
        yield
    finally:
        _follower.reset(token)


def followed(parts: Iterable[T], what: str, total: int) -> Iterator[T]:
    """The same parts; each one is reported."""
    follow = _follower.get()
    for done, part in enumerate(parts, start=1):
        if follow is not None:
            follow(what, done, total)
        yield part
