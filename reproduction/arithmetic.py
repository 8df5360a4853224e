"""The arithmetic of the generated pages: means, errors, paired differences, selection.

It takes frames with one row per run and gives scores in percent. A unit is the coarsest of target,
last source, order and seed of which there are several, as in `farshore.results.summary`, whose
means, errors and differences these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from farshore.results import summary
from farshore.results.summary import FEWEST_UNITS, Difference, Estimate, Unit, variance
from farshore.tasks.metrics import Metric
from reproduction.finished_runs import SCORE

__all__ = ["Difference", "Estimate", "Number", "Place", "Scores", "Unit", "variance"]

# Data set, target, last source, order and seed of a run.
Place = tuple[str, str, str, str, int]
Scores = Mapping[Place, float]

# What the pages compare has no limits: scores in percent, but also times and their logarithms.
UNLIMITED = Metric("score", "score", low=-math.inf, high=math.inf)
# A mean with its standard error.
Number = tuple[float, float]
# Trials of the paper's search.
TRIALS = 20


def average(frame: pd.DataFrame, column: str = SCORE) -> float:
    """The mean over these runs in percent."""
    return float(100 * frame[column].mean())


def means(frame: pd.DataFrame, column: str = SCORE) -> dict[str, Number]:
    """Mean and standard error over runs in percent, by method; at least two runs each."""
    grouped = frame.dropna(subset=[column]).groupby("method")[column]
    return {
        str(method): (100 * values.mean(), 100 * values.std(ddof=1) / len(values) ** 0.5)
        for method, values in grouped
        if len(values) > 1
    }


def scores(frame: pd.DataFrame, column: str = SCORE) -> dict[str, Scores]:
    """Values in percent by method and place."""
    by_method: dict[str, dict[Place, float]] = {}
    columns = [frame[name].astype(str) for name in ("method", "target", "order")]
    runs = zip(*columns, frame["run_seed"].astype(int), frame[column], strict=True)
    for method, target, order, seed, value in runs:
        if not math.isnan(value):
            sources = order.split(",")
            place = ("", target, sources[-1], " ".join(sources), seed)
            by_method.setdefault(method, {})[place] = 100 * float(value)
    return dict(by_method)


def by_trial(frame: pd.DataFrame, method: str) -> Scores:
    """The target scores of a method in percent; a draw, seed and trial, counts as an order."""
    of_method = frame[frame["method"] == method].dropna(subset=[SCORE])
    return {
        ("", "", "", f"{entry['run_seed']} {entry['trial']}", 0): 100 * float(entry[SCORE])
        for entry in of_method.to_dict("records")
    }


def names(runs: Iterable[Place], unit: Unit) -> set[str]:
    """The names at a level of the places."""
    return {str(place[unit.level]) for place in runs}


def unit_of(runs: Iterable[Place]) -> Unit:
    """The coarsest level of which there are several; at worst the seed."""
    known = list(runs)
    return next((unit for unit in Unit if len(names(known, unit)) > 1), Unit.SEED)


def enough(by_method: Mapping[str, Scores]) -> dict[str, Scores]:
    """The methods that ran in enough units for an interval."""
    return {
        name: runs
        for name, runs in by_method.items()
        if len(names(runs, unit_of(runs))) >= FEWEST_UNITS
    }


def summary_of(runs: Scores, unit: Unit | None = None) -> Estimate:
    """A method over its units, or over others; it has at least one run."""
    found = summary.estimate(runs, unit or unit_of(runs), UNLIMITED)
    assert found is not None
    return found


def mean(runs: Scores) -> float:
    """The mean over units."""
    return summary_of(runs).mean


def paired_difference(first: Scores, second: Scores) -> Difference | None:
    """How much better the first is at the same places; None if they share none."""
    unit = unit_of(place for place in first if place in second)
    return summary.difference(first, second, unit, UNLIMITED)


def difference(first: Scores, second: Scores) -> Difference:
    """The paired difference of two methods that share at least one run."""
    found = paired_difference(first, second)
    assert found is not None
    return found


def above_zero(difference: Difference | None) -> bool:
    """Whether the whole interval lies above zero."""
    return difference is not None and difference.certain and difference.mean > 0


def pooled(
    by_method: Mapping[str, Scores],
    methods: Iterable[str],
    pool: Callable[[list[float]], float] = lambda values: sum(values) / len(values),
) -> Scores:
    """The mean over methods (or what `pool` does) at the places that all of them have.

    Methods that ran in few units are left out: they would hide the orders of the others.
    """
    ran = enough(by_method)
    parts = [ran[method] for method in methods if method in ran]
    shared = [place for place in parts[0] if all(place in part for part in parts)] if parts else []
    return {place: pool([part[place] for part in parts]) for place in sorted(shared)}


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """The searches of which all trials have run."""
    complete = frame.groupby(["method", "run_seed"])["trial"].transform("nunique") >= TRIALS
    return frame[complete].reset_index(drop=True)


def selected(frame: pd.DataFrame) -> pd.DataFrame:
    """For every method and seed, the trial with the best score on the sources' validation rows."""
    best = frame.groupby(["method", "run_seed"])["source_validation_score"].idxmax()
    return frame.loc[best]
