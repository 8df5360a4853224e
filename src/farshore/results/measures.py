"""The numbers of a run that tables can show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..runs.result import Result


@dataclass(frozen=True)
class Measure:
    """A number of a run in the unit of the table.

    ranked: whether it is the score on the target, by which methods are ranked.
    """

    title: str
    read: Callable[[Result], float | None]
    unit: str = "%"
    higher_is_better: bool = True
    ranked: bool = False


def _percent(value: float | None) -> float | None:
    return 100 * value if value is not None else None


def step_milliseconds(result: Result) -> float | None:
    """The mean time of a step."""
    times = result.step_milliseconds
    return sum(times) / len(times) if times else None


TARGET = Measure(
    "score on the unseen target", lambda result: _percent(result.target_score), ranked=True
)
MEASURES: dict[str, Measure] = {
    "backward transfer": Measure(
        "backward transfer on the sources' validation rows",
        lambda result: _percent(result.backward_transfer()),
        unit="points",
    ),
    "source performance": Measure(
        "mean score on the sources' training rows",
        lambda result: _percent(result.source_score(2)),
    ),
    "run time": Measure(
        "run time",
        lambda result: result.seconds["total"] / 60,
        unit="minutes",
        higher_is_better=False,
    ),
    "step time": Measure("time per step", step_milliseconds, unit="ms", higher_is_better=False),
    "naive and tailored": TARGET,
}


def measure_of(table: str | None) -> Measure:
    """The measure of an experiment's table; by default the score on the target."""
    return MEASURES[table] if table is not None else TARGET


def data_kind(result: Any) -> tuple[bool, str]:
    """Whether farshore generated the data's corruptions, and which part of the data they are."""
    data = result.data if result is not None else {}
    return data.get("corruptions") == "generated", str(data.get("part") or "")
