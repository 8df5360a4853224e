"""The arithmetic of the generated pages: means, errors, paired differences, selection.

It takes frames with one row per run and gives scores in percent. A unit is an order of the sources
or a target; each counts once. Means, errors and differences over units are those of
`farshore.results.summary`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from farshore.results import summary
from farshore.results.summary import FEWEST_UNITS, Difference, Estimate
from farshore.tasks.metrics import Metric
from reproduction.finished_runs import SCORE

__all__ = ["Difference", "Estimate", "Number", "Scores"]

# An order of the sources, a target, or a draw of the search.
Unit = tuple[str, ...]
# Scores by unit and by what makes a run of the unit: its seed, or its order and seed.
Scores = Mapping[Unit, Mapping[Any, float]]
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
    """Mean and standard error over seeds in percent, by method; at least two runs each."""
    grouped = frame.dropna(subset=[column]).groupby("method")[column]
    return {
        str(method): (100 * values.mean(), 100 * values.std(ddof=1) / len(values) ** 0.5)
        for method, values in grouped
        if len(values) > 1
    }


def scores(frame: pd.DataFrame, column: str = SCORE, *, unit: str = "order") -> dict[str, Scores]:
    """Values in percent by method, unit and run; a unit is an order or a target."""
    by_method: dict[str, dict[Unit, dict[Any, float]]] = {}
    for entry in frame.dropna(subset=[column]).to_dict("records"):
        order, seed = tuple(str(entry["order"]).split(",")), int(entry["run_seed"])
        name, run = (order, seed) if unit == "order" else ((str(entry["target"]),), (order, seed))
        of_unit = by_method.setdefault(str(entry["method"]), {}).setdefault(name, {})
        of_unit[run] = 100 * float(entry[column])
    return dict(by_method)


def by_trial(frame: pd.DataFrame, method: str) -> Scores:
    """The target scores of a method in percent by draw: the seed and the trial."""
    of_method = frame[frame["method"] == method].dropna(subset=[SCORE])
    return {
        (str(entry["run_seed"]), str(entry["trial"])): {0: 100 * entry[SCORE]}
        for entry in of_method.to_dict("records")
    }


def enough(by_method: Mapping[str, Scores]) -> dict[str, Scores]:
    """The methods that ran in enough units for an interval."""
    return {name: runs for name, runs in by_method.items() if len(runs) >= FEWEST_UNITS}


def places(runs: Scores) -> dict[Any, float]:
    """The runs as `farshore.results.summary` takes them; the order is the name of the unit."""
    return {
        ("", "", "", " ".join(unit), run): score
        for unit, of_unit in runs.items()
        for run, score in of_unit.items()
    }


def summary_of(runs: Scores) -> Estimate:
    """A method over its units; it has at least one run."""
    found = summary.estimate(places(runs), summary.Unit.ORDER, UNLIMITED)
    assert found is not None
    return found


def mean(runs: Scores) -> float:
    """The mean over units."""
    return summary_of(runs).mean


def paired_difference(first: Scores, second: Scores) -> Difference | None:
    """How much better the first is in the same units, run by run; None if they share none."""
    return summary.difference(places(first), places(second), summary.Unit.ORDER, UNLIMITED)


def difference(first: Scores, second: Scores) -> Difference:
    """The paired difference of two methods that share at least one run."""
    found = paired_difference(first, second)
    assert found is not None
    return found


def above_zero(difference: Difference) -> bool:
    """Whether the whole interval lies above zero."""
    return difference.certain and difference.mean > 0


def pooled(
    by_method: Mapping[str, Scores],
    methods: Iterable[str],
    pool: Callable[[list[float]], float] = lambda values: sum(values) / len(values),
) -> Scores:
    """The mean over methods (or what `pool` does), in the orders and seeds that all of them have.

    Methods that ran in few orders are left out: they would hide the orders of the others.
    """
    ran = enough(by_method)
    parts = [ran[method] for method in methods if method in ran]
    if not parts:
        return {}
    shared = set.intersection(
        *({(order, seed) for order in part for seed in part[order]} for part in parts)
    )
    pools: dict[Unit, dict[int, float]] = {}
    for order, seed in sorted(shared):
        pools.setdefault(order, {})[seed] = pool([part[order][seed] for part in parts])
    return pools


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """The searches of which all trials have run."""
    complete = frame.groupby(["method", "run_seed"])["trial"].transform("nunique") >= TRIALS
    return frame[complete].reset_index(drop=True)


def selected(frame: pd.DataFrame) -> pd.DataFrame:
    """For every method and seed, the trial with the best score on the sources' validation rows."""
    best = frame.groupby(["method", "run_seed"])["source_validation_score"].idxmax()
    return frame.loc[best]
