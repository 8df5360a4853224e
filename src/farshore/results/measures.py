"""The numbers of a run, beside its score on the target, that tables can show."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd

from ..runs.result import Result
from ..tasks.metrics import METRICS, MIXED
from .frame import results_in_metric
from .select import observed

T = TypeVar("T")
# Reads one number from a result; None if it is not defined.
Reader = Callable[[Result], float | None]


@dataclass(frozen=True)
class Measure:
    """A number of a run in a table's unit; `ranked`: methods are ranked by it."""

    title: str
    read: Reader
    unit: str = "%"
    higher_is_better: bool = True
    ranked: bool = False


def _shown(result: Result, value: float | None) -> float | None:
    """In the unit of the result's metric, mostly percent."""
    metric = METRICS.get(result.metric, MIXED)
    return metric.scale * value if value is not None else None


def step_milliseconds(result: Result) -> float | None:
    """The mean time of a step."""
    times = result.step_milliseconds
    return sum(times) / len(times) if times else None


TARGET = Measure(
    "score on the unseen target", lambda result: _shown(result, result.target_score), ranked=True
)
MEASURES: dict[str, Measure] = {
    "backward transfer": Measure(
        "backward transfer on the sources' validation rows",
        lambda result: _shown(result, result.backward_transfer()),
        unit="points",
    ),
    "source performance": Measure(
        "mean score on the sources' training rows",
        lambda result: _shown(result, result.source_score(2)),
    ),
    "run time": Measure("run time", lambda result: result.seconds["total"] / 60, "minutes", False),
    "step time": Measure("time per step", step_milliseconds, "ms", False),
    "naive and tailored": TARGET,
}


NUMBERS: dict[str, Reader] = {
    "source_validation_score": lambda result: result.source_score(1),
    "source_train_score": lambda result: result.source_score(2),
    "backward_transfer": lambda result: result.backward_transfer(),
    "forgetting": lambda result: result.forgetting(),
    "seconds": lambda result: result.seconds["total"],
    "step_milliseconds": step_milliseconds,
    "rows_per_step": lambda result: result.rows_per_step[-1] if result.rows_per_step else None,
}


def mean_numbers(frame: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """By row and number: the mean over the runs that count."""
    runs = observed(frame)
    runs = runs[runs["result"].notna()]
    runs = runs.assign(result=results_in_metric(runs))
    return {
        str(row): {name: mean_of(of_row["result"], read) for name, read in NUMBERS.items()}
        for row, of_row in runs.groupby("row", sort=False)
    }


def mean_of(results: Iterable[T], read: Callable[[T], float | None]) -> float | None:
    """The mean of a number over the results that have it; None if none has."""
    values = [value for result in results if (value := read(result)) is not None]
    return sum(values) / len(values) if values else None
