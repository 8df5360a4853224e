"""Numbers, counts and lists in sentences, and names of rows."""

from __future__ import annotations

from collections.abc import Sequence

from ..tasks.metrics import METRICS


def percent(value: float | None, *, sign: bool = False) -> str:
    """A fraction in percent with one decimal, without the sign of percent; a dash for None."""
    return METRICS["accuracy"].text(value, sign=sign)


def row_name(method: str, variant: str) -> str:
    """The name of a row: the method as it is typed, and what distinguishes it from others of it."""
    return f"{method} ({variant})" if variant else method


def several(number: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def listed(names: Sequence[str], most: int | None = None, last: str = "and") -> str:
    """`a, b and c`; with `most`, the first few and how many more there are."""
    shown = list(names)
    if most is not None and len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}" if len(shown) > 1 else "".join(shown)
