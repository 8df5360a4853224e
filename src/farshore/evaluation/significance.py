"""Are methods different over data sets, or is it chance? Pure functions of a table of scores, a row
a method, a column a data set.

Friedman asks whether any method differs at all (with the F form of Iman and Davenport, which is
less timid); Nemenyi says how far two mean ranks must be apart; Wilcoxon's signed ranks with Holm's
correction compare pairs by the sizes of the differences; the bootstrap gives intervals for
averages. Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006,
has all but the last. A data set is one observation: seeds are not, so they never enter the first
three.
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

# Up to so many differences Wilcoxon's distribution is enumerated, so that ties need no
# approximation.
ENUMERATED = 14


@dataclass(frozen=True)
class Friedman:
    """The statistic (corrected for ties) with its χ² probability, and the F form with its own."""

    statistic: float
    p: float
    iman_davenport: float
    iman_davenport_p: float


@dataclass(frozen=True)
class Pair:
    """Wilcoxon's test of two methods, by their rows; `holm` is p corrected for all pairs that
    were tested.
    """

    first: int
    second: int
    p: float
    holm: float


def friedman(scores: ArrayLike, *, higher_is_better: bool = True) -> Friedman | None:
    """Friedman's test; None for fewer than three methods or two data sets, for which it is not
    defined.
    """
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
    """Nemenyi: mean ranks further apart than this are different at level alpha, over all pairs
    together.
    """
    if methods < 2 or datasets < 1:
        raise FarshoreError(
            f"{methods} methods on {datasets} data sets have no critical difference: at least 2 "
            "and 1"
        )
    quantile = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * datasets))


def nemenyi(scores: ArrayLike, *, higher_is_better: bool = True) -> Floats:
    """The probability of each pair's difference of mean ranks under Nemenyi's test, [methods,
    methods].
    """
    table = checked(scores)
    methods, datasets = table.shape
    mean = rank_methods(table, higher_is_better=higher_is_better).arithmetic
    apart = np.abs(mean[:, None] - mean[None, :]) / math.sqrt(
        methods * (methods + 1) / (6 * datasets)
    )
    return np.asarray(
        np.clip(stats.studentized_range.sf(apart * math.sqrt(2), methods, np.inf), 0.0, 1.0)
    )


def cliques(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, ...]]:
    """The largest groups, best rank first, whose best and worst mean ranks are no further apart
    than `difference`.

    A method that is told apart from all others stands in no group.
    """
    order = sorted(range(len(mean_ranks)), key=lambda place: mean_ranks[place])
    found: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start
        while end < len(order) and mean_ranks[order[end]] - mean_ranks[order[start]] <= difference:
            end += 1
        if end > reached and end - start > 1:
            found.append(tuple(order[start:end]))
            reached = end
    return found


def wilcoxon(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided probability of Wilcoxon's signed-rank test; equal pairs are left out, as he did,
    and all equal gives 1.
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
    """Holm's correction: the smallest times n, the next times n - 1, ..., never falling and at
    most 1.
    """
    corrected = [1.0] * len(probabilities)
    highest = 0.0
    for place, number in enumerate(
        sorted(range(len(probabilities)), key=lambda each: probabilities[each])
    ):
        highest = max(highest, min(1.0, probabilities[number] * (len(probabilities) - place)))
        corrected[number] = highest
    return corrected


def wilcoxon_holm(scores: ArrayLike) -> list[Pair]:
    """Every pair of methods, corrected for all of them."""
    table = checked(scores)
    pairs = list(itertools.combinations(range(len(table)), 2))
    plain = [wilcoxon(table[first], table[second]) for first, second in pairs]
    return [
        Pair(first, second, p, after)
        for (first, second), p, after in zip(pairs, plain, holm(plain), strict=True)
    ]


def smallest_wilcoxon(datasets: int, pairs: int) -> float:
    """What the smallest corrected probability can be at all: with few data sets no difference is
    large enough.
    """
    return min(1.0, pairs * 2.0 ** (1 - datasets))


def bootstrap_averages(
    values: Sequence[Sequence[Sequence[float]]],
    generator: np.random.Generator,
    *,
    draws: int = 2000,
    datasets: bool = True,
) -> Floats:
    """Averages over data sets of resampled data, [draws, methods], from values[method][data
    set][seed].

    A draw takes as many data sets as there are, with replacement and the same for all methods, and
    in each as many seeds as the method has there. With `datasets=False` the data sets stay as they
    are and only seeds are drawn.
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
    for number, row in enumerate(values):
        sizes = np.array([len(seeds) for seeds in row])
        padded = np.zeros((count, sizes.max()))
        for place, seeds in enumerate(row):
            padded[place, : len(seeds)] = seeds
        here = sizes[chosen]
        picked = (generator.random((draws, count, sizes.max())) * here[:, :, None]).astype(np.int64)
        drawn = padded[chosen[:, :, None], picked] * (np.arange(sizes.max()) < here[:, :, None])
        averages[:, number] = (drawn.sum(axis=2) / here).mean(axis=1)
    return averages


def interval(draws: ArrayLike, alpha: float = 0.05) -> tuple[float, float]:
    """The middle 1 - alpha of the draws."""
    low, high = np.quantile(np.asarray(draws, dtype=np.float64), [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)
