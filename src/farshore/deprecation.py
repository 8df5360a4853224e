"""Helpers to deprecate public names.

For at least one minor release a deprecated name still works and warns once per process, naming its
replacement. The policy is in docs/versioning.md.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from .errors import FarshoreError

P = ParamSpec("P")
R = TypeVar("R")

_warned: set[str] = set()


class FarshoreDeprecationWarning(FutureWarning):
    """Something that still works but will be removed.

    It is a FutureWarning because Python hides DeprecationWarning from the users of a library.
    """


def deprecated(since: str, instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function or method that will be removed. `instead` is the code to use."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def warn_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
            name = f"{function.__module__}.{function.__qualname__}"
            _warn(name, f"{function.__qualname__} is", since, instead)
            return function(*args, **kwargs)

        return warn_and_call

    return decorate


def renamed(values: Mapping[str, Any], old: str, new: str, *, since: str) -> dict[str, Any]:
    """Settings or keyword arguments with `old` renamed to `new`. Giving both is refused."""
    if old not in values:
        return dict(values)
    if new in values:
        raise FarshoreError(f"{old!r} is the former name of {new!r}: give {new!r} alone")
    _warn(f"{old} -> {new}", f"the name {old!r} is", since, repr(new))
    return {new if name == old else name: value for name, value in values.items()}


def _warn(key: str, what: str, since: str, instead: str) -> None:
    """Warn once per process, at the line that called the deprecated function."""
    if key in _warned:
        return
    _warned.add(key)
    message = f"{what} deprecated since farshore {since}: use {instead} instead"
    warnings.warn(message, FarshoreDeprecationWarning, stacklevel=3)
