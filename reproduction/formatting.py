"""How the generated pages write numbers, tables and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from reproduction.arithmetic import Difference, Estimate, Number


def signed(value: float) -> str:
    """A number of points with its sign."""
    return f"{value:+.1f}"


def printed(number: Number | None) -> str:
    """A mean with its standard error, or a dash if there is none."""
    return "-" if number is None else f"{number[0]:.1f} ± {number[1]:.1f}"


def interval(difference: Difference | None) -> str:
    """A difference with its interval."""
    if difference is None:
        return "-"
    if difference.low is None or difference.high is None:
        return signed(difference.mean)
    return f"{signed(difference.mean)} [{signed(difference.low)}, {signed(difference.high)}]"


def with_count(difference: Difference | None) -> str:
    """A difference with its interval and the number of pairs that it won."""
    if difference is None:
        return "-"
    return f"{interval(difference)}, better in {difference.won} of {difference.units}"


def over(summary: Estimate) -> tuple[str, str]:
    """A method over its units: the mean with its error, and the worst unit."""
    worst = f"{summary.values[summary.worst]:.1f} ({summary.worst})"
    return printed((summary.mean, summary.error or 0.0)), worst


def several(count: int, word: str) -> str:
    """A number of things."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """The words as they stand in a sentence."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def filled(head: Path, sections: Mapping[str, Callable[[], str]]) -> str:
    """The text of a head file with each mark `<!-- name -->` replaced by its section."""
    text = head.read_text()
    for name, write in sections.items():
        mark = f"<!-- {name} -->"
        assert mark in text, f"{head.name} lacks {mark}"
        text = text.replace(mark, write().rstrip())
    return text
