"""Tests of differences between methods: pure functions of a table of scores [methods, data sets].

- The Friedman test: does any method differ at all? Its F form by Iman and Davenport is less
  conservative.
- The Nemenyi test: how far apart must two mean ranks be?
- The Wilcoxon signed-rank test with Holm's correction compares pairs by the sizes of their
  differences.
- The bootstrap gives intervals for averages.

All but the last are described in Demšar, "Statistical Comparisons of Classifiers over Multiple Data
Sets", JMLR 7, 2006. The first three treat each data set as one observation; seeds are not
observations, so they do not enter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ..errors import FarshoreError
from .ranks import DECIMALS, Floats, checked, rank_methods

# Up to this many differences, Wilcoxon's distribution is enumerated, so that ties need no
# approximation.
ENUMERATED = 14


@dataclass(frozen=True)
class Friedman:
    """The statistic (corrected for ties) and the F form, each with its p-value."""

    statistic: float
    p: float
    iman_davenport: float
    iman_davenport_p: float


@dataclass(frozen=True)
class Pair:
    """Wilcoxon test of two methods, given by their rows; `holm` is p corrected for all pairs."""

    first: int
    second: int
    p: float
    holm: float


def friedman(scores: ArrayLike, *, higher_is_better: bool = True) -> Friedman | None:
    """The Friedman test; None for fewer than three methods or two data sets."""
    table = checked(scores)
    methods, datasets = table.shape
    if methods < 3 or datasets < 2:
        return None
    ranks = rank_methods(table, higher_is_better=higher_is_better).by_dataset
    ties = sum(
        float((counts**3 - counts).sum())
        for counts in (np.unique(column, return_counts=True)[1] for column in ranks.T)
    )
    correction = 1 - ties / (datasets * methods * (methods**2 - 1))
    if correction <= 0:  # all methods equal everywhere
        return Friedman(0.0, 1.0, 0.0, 1.0)
    spread = float(((ranks.sum(axis=1) - datasets * (methods + 1) / 2) ** 2).sum())
    statistic = 12 * spread / (datasets * methods * (methods + 1)) / correction
    p = float(stats.chi2.sf(statistic, methods - 1))
    rest = datasets * (methods - 1) - statistic
    if rest <= 1e-9:  # the same order everywhere: F is infinite
        return Friedman(statistic, p, math.inf, 0.0)
    f = (datasets - 1) * statistic / rest
    return Friedman(
        statistic, p, f, float(stats.f.sf(f, methods - 1, (methods - 1) * (datasets - 1)))
    )


def critical_difference(methods: int, datasets: int, alpha: float = 0.05) -> float:
    """Nemenyi: mean ranks further apart than this differ at level alpha, over all pairs."""
    if methods < 2 or datasets < 1:
        raise FarshoreError(
            f"{methods} methods on {datasets} data sets have no critical difference: give at "
            "least 2 methods and 1 data set"
        )
    quantile = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * datasets))


def nemenyi(scores: ArrayLike, *, higher_is_better: bool = True) -> Floats:
    """p-values of the Nemenyi test for each pair, [methods, methods]."""
    table = checked(scores)
    methods, datasets = table.shape
    mean = rank_methods(table, higher_is_better=higher_is_better).arithmetic
    statistic = np.abs(mean[:, None] - mean[None, :]) / math.sqrt(
        methods * (methods + 1) / (6 * datasets)
    )
    return np.asarray(
        np.clip(stats.studentized_range.sf(statistic * math.sqrt(2), methods, np.inf), 0.0, 1.0)
    )


def cliques(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, ...]]:
    """Maximal groups of methods, best rank first, with mean ranks at most `difference` apart.

    A method that is distinguishable from all others is in no group.
    """
    order = sorted(range(len(mean_ranks)), key=lambda index: mean_ranks[index])
    groups: list[tuple[int, ...]] = []
    last_end = 0
    for start in range(len(order)):
        end = start
        while end < len(order) and mean_ranks[order[end]] - mean_ranks[order[start]] <= difference:
            end += 1
        if end > last_end and end - start > 1:
            groups.append(tuple(order[start:end]))
            last_end = end
    return groups


def wilcoxon(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test.

    Equal pairs are left out, as in Wilcoxon's paper; if all are equal, p is 1.
    """
    difference = np.round(
        np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64), DECIMALS
    )
    difference = difference[difference != 0]
    if difference.size == 0:
        return 1.0
    if difference.size > ENUMERATED:
        return float(stats.wilcoxon(difference, method="asymptotic").pvalue)
    ranks = stats.rankdata(np.abs(difference))
    signs = np.array(list(itertools.product((0, 1), repeat=difference.size)))
    middle = ranks.sum() / 2
    observed = abs(float(ranks[difference > 0].sum()) - middle)
    return float((np.abs(signs @ ranks - middle) >= observed - 1e-9).mean())


def holm(probabilities: Sequence[float]) -> list[float]:
    """Holm's correction: the smallest p times n, the next times n - 1, ..., monotone, at most 1."""
    corrected = [1.0] * len(probabilities)
    highest = 0.0
    ascending = sorted(range(len(probabilities)), key=lambda index: probabilities[index])
    for smaller, index in enumerate(ascending):
        highest = max(highest, min(1.0, probabilities[index] * (len(probabilities) - smaller)))
        corrected[index] = highest
    return corrected


def wilcoxon_holm(scores: ArrayLike) -> list[Pair]:
    """Wilcoxon tests of every pair of methods, corrected for the number of pairs."""
    table = checked(scores)
    pairs = list(itertools.combinations(range(len(table)), 2))
    p_values = [wilcoxon(table[first], table[second]) for first, second in pairs]
    return [
        Pair(first, second, p, corrected)
        for (first, second), p, corrected in zip(pairs, p_values, holm(p_values), strict=True)
    ]


def smallest_wilcoxon(datasets: int, pairs: int) -> float:
    """The smallest corrected p that is possible; it is not small if there are few data sets."""
    return min(1.0, pairs * 2.0 ** (1 - datasets))


def bootstrap_averages(
    values: Sequence[Sequence[Sequence[float]]],
    generator: np.random.Generator,
    *,
    draws: int = 2000,
    datasets: bool = True,
) -> Floats:
    """Averages over resampled data sets and seeds, [draws, methods].

    `values[method][data set][seed]` are the scores. Each draw samples as many data sets as there
    are, with replacement and the same ones for all methods, and in each of them as many seeds as
    the method has there. With `datasets=False`, only seeds are sampled.
    """
    count = len(values[0]) if values else 0
    if count == 0 or any(
        len(row) != count or any(len(seeds) == 0 for seeds in row) for row in values
    ):
        raise FarshoreError(
            "the bootstrap needs at least one seed of every method on every data set"
        )
    chosen = (
        generator.integers(count, size=(draws, count))
        if datasets
        else np.tile(np.arange(count), (draws, 1))
    )
    averages = np.empty((draws, len(values)))
    for method, row in enumerate(values):
        sizes = np.array([len(seeds) for seeds in row])
        padded = np.zeros((count, sizes.max()))
        for dataset, seeds in enumerate(row):
            padded[dataset, : len(seeds)] = seeds
        drawn_sizes = sizes[chosen]
        picked = generator.random((draws, count, sizes.max())) * drawn_sizes[:, :, None]
        drawn = padded[chosen[:, :, None], picked.astype(np.int64)]
        drawn = drawn * (np.arange(sizes.max()) < drawn_sizes[:, :, None])
        averages[:, method] = (drawn.sum(axis=2) / drawn_sizes).mean(axis=1)
    return averages


def interval(draws: ArrayLike, alpha: float = 0.05) -> tuple[float, float]:
    """The central 1 - alpha interval of the draws."""
    low, high = np.quantile(np.asarray(draws, dtype=np.float64), [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)
