"""Scores over several orders of the sources: mean, worst order, and paired differences.

The order of the sources decides much, so a method is described by its mean over orders and by its
worst order, and two methods are compared pair by pair: the same order, the same seeds. Each order
is one observation, the mean of its seeds: d_o = mean over seeds of (a_os - b_os). The difference is
the mean of d_o, and its 95% interval is Student's, mean ± t(orders - 1) · deviation / √orders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

# Scores by order and seed.
Scores = Mapping[tuple[str, ...], Mapping[int, float]]
LEVEL = 0.95
# With fewer orders, an interval says nothing: the orders are shown one by one.
FEWEST_ORDERS = 3


@dataclass(frozen=True)
class OverOrders:
    """A method over several orders; `error` is the standard error of the mean over orders."""

    orders: int
    runs: int
    mean: float
    error: float | None
    worst: float
    worst_order: tuple[str, ...]
    best: float


@dataclass(frozen=True)
class Difference:
    """A paired difference over the orders and seeds that both methods have.

    error, low, high: standard error and 95% interval; None with a single order.
    won: in how many of the orders the first method is better.
    """

    orders: int
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


def over_orders(scores: Scores) -> OverOrders | None:
    """Mean, worst and best order of a method; None without scores."""
    means = {
        order: float(np.mean(list(of_seeds.values())))
        for order, of_seeds in scores.items()
        if of_seeds
    }
    if not means:
        return None
    values = np.array(list(means.values()))
    worst_order = min(means, key=lambda order: means[order])
    return OverOrders(
        orders=len(means),
        runs=sum(map(len, scores.values())),
        mean=float(values.mean()),
        error=_error(values),
        worst=means[worst_order],
        worst_order=worst_order,
        best=float(values.max()),
    )


def paired_difference(first: Scores, second: Scores) -> Difference | None:
    """How much better `first` is than `second` in the same orders with the same seeds."""
    by_order: list[float] = []
    pairs = 0
    for order, of_seeds in first.items():
        shared = [seed for seed in of_seeds if seed in second.get(order, {})]
        if shared:
            pairs += len(shared)
            by_order.append(
                float(np.mean([of_seeds[seed] - second[order][seed] for seed in shared]))
            )
    if not by_order:
        return None
    values = np.array(by_order)
    mean, error = float(values.mean()), _error(values)
    half = (
        float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * error if error is not None else None
    )
    return Difference(
        orders=len(values),
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
