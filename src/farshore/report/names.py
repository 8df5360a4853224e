"""Helpers for names in a report: counts in words, lists, the order and group of methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import FarshoreError
from ..runs import catalog

_GROUPS: dict[str, tuple[str, str]] = {}


def several(number: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def listing(names: Sequence[str], most: int | None = None) -> str:
    """`a, b, c`; with `most`, the first few and how many more there are."""
    shown = list(names[:most])
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Each name once: the known ones first, in their order, then the others in the given order."""
    unique, order = list(dict.fromkeys(names)), list(known)
    return sorted(
        unique,
        key=lambda name: (order.index(name) if name in order else len(order), unique.index(name)),
    )


def method_group(method: str) -> tuple[str, str]:
    """Group and kind of a method; one that is not installed is continual, in the group `other`."""
    if method not in _GROUPS:  # cached, because looking for plugins takes milliseconds
        try:
            system = catalog.find(method)
        except FarshoreError:
            return "other", "continual"
        _GROUPS[method] = system.group, system.kind
    return _GROUPS[method]


def methods_in_order(names: Iterable[str]) -> list[str]:
    """Each method once, by group, in the order of the catalog."""
    return in_order(
        names, [system.name for members in catalog.grouped().values() for system in members]
    )


def groups_in_order(groups: Iterable[str]) -> list[str]:
    """Each group once, in the order of the catalog."""
    return in_order(groups, catalog.GROUPS)
