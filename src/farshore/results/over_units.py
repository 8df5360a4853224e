"""Scores over several targets or orders of the sources: mean, worst one, paired differences.

Which domain is the target, and in which order the sources come, decide much. A method is therefore
described by its mean over these units and by its worst one, and two methods are compared pair by
pair: the same target, the same order, the same seeds. Each unit is one observation, the mean of its
runs: d_u = mean over shared runs of (a_ur - b_ur). The difference is the mean of d_u, and its 95%
interval is Student's, mean ± t(units - 1) · deviation / √units. More seeds never make it narrower
than the targets allow.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

# A unit is a tuple of names: a target, or an order of the sources.
Unit = tuple[str, ...]
# Scores by unit and by what makes a run of the unit: its seed, or its order and seed.
Scores = Mapping[Unit, Mapping[Any, float]]
LEVEL = 0.95
# With fewer units, an interval says nothing: the units are shown one by one.
FEWEST_UNITS = 3
# Standard errors below this are rounding.
SMALLEST_ERROR = 1e-9


@dataclass(frozen=True)
class Summary:
    """A method over several units; `error` is the standard error of the mean over units."""

    units: int
    runs: int
    mean: float
    error: float | None
    worst: float
    worst_unit: Unit
    best: float


@dataclass(frozen=True)
class Difference:
    """A paired difference over the units and runs that both methods have.

    error, low, high: standard error and 95% interval; None with a single unit.
    won: in how many of the units the first method is better.
    """

    units: int
    pairs: int
    mean: float
    error: float | None
    low: float | None
    high: float | None
    won: int

    @property
    def certain(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def p(self) -> float | None:
        """Two-sided p-value of Student's paired test over units; None with a single unit."""
        if self.error is None:
            return None
        if self.error < SMALLEST_ERROR:  # the same difference in every unit
            return 0.0 if abs(self.mean) > SMALLEST_ERROR else 1.0
        return float(2 * stats.t.sf(abs(self.mean) / self.error, self.units - 1))


def over_units(scores: Scores) -> Summary | None:
    """Mean, worst and best unit of a method; None without scores."""
    means = {
        unit: float(np.mean(list(of_unit.values()))) for unit, of_unit in scores.items() if of_unit
    }
    if not means:
        return None
    values = np.array(list(means.values()))
    worst_unit = min(means, key=lambda unit: means[unit])
    return Summary(
        units=len(means),
        runs=sum(map(len, scores.values())),
        mean=float(values.mean()),
        error=_error(values),
        worst=means[worst_unit],
        worst_unit=worst_unit,
        best=float(values.max()),
    )


def paired_difference(first: Scores, second: Scores) -> Difference | None:
    """How much better `first` is than `second` in the same units, run by run."""
    by_unit: list[float] = []
    pairs = 0
    for unit, of_unit in first.items():
        shared: list[Hashable] = [run for run in of_unit if run in second.get(unit, {})]
        if shared:
            pairs += len(shared)
            by_unit.append(float(np.mean([of_unit[run] - second[unit][run] for run in shared])))
    if not by_unit:
        return None
    values = np.array(by_unit)
    mean, error = float(values.mean()), _error(values)
    half = (
        float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * error if error is not None else None
    )
    return Difference(
        units=len(values),
        pairs=pairs,
        mean=mean,
        error=error,
        low=mean - half if half is not None else None,
        high=mean + half if half is not None else None,
        won=int((values > 0).sum()),
    )


def _error(values: np.ndarray) -> float | None:
    if len(values) < 2:
        return None
    return float(values.std(ddof=1)) / math.sqrt(len(values))
