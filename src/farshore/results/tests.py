"""Tests over data sets, as pure functions of a table of scores [methods, data sets].

- The Friedman test: does any method differ at all? Its F form by Iman and Davenport is less
  conservative.
- The Nemenyi test: how far apart must two mean ranks be?
- The Wilcoxon signed-rank test with Holm's correction compares pairs by the sizes of their
  differences.

All are described in Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets",
JMLR 7, 2006. Each data set is one observation; seeds are not, so they do not enter.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..errors import FarshoreError

Floats = NDArray[np.float64]
ALPHA = 0.05
# Means of the same numbers differ in their last digits if they are summed in another order. Digits
# beyond these never decide a rank.
DECIMALS = 9
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


def rank_methods(scores: ArrayLike, *, higher_is_better: bool = True) -> Floats:
    """Ranks [methods, data sets]: the best rank is 1; equal scores share the mean of their ranks.

    Every method needs a score on every data set: ranks among fewer methods are not comparable.
    """
    table = checked(scores)
    ranks = stats.rankdata(-table if higher_is_better else table, method="average", axis=0)
    return np.asarray(ranks, dtype=np.float64)


def checked(scores: ArrayLike) -> Floats:
    """The scores as a table of finite numbers, rounded to `DECIMALS`."""
    table: Floats = np.asarray(scores, dtype=np.float64).round(DECIMALS)
    if table.ndim != 2 or 0 in table.shape:
        raise FarshoreError(
            f"scores of shape {table.shape} cannot be ranked: give one row per method and one "
            "column per data set"
        )
    if not np.isfinite(table).all():
        raise FarshoreError(
            "scores with missing or infinite numbers cannot be ranked: leave out methods without "
            "a score on every data set"
        )
    return table


def friedman(scores: ArrayLike) -> Friedman | None:
    """The Friedman test; None for fewer than three methods or two data sets."""
    table = checked(scores)
    methods, datasets = table.shape
    if methods < 3 or datasets < 2:
        return None
    if (table == table[0]).all():  # all methods equal everywhere
        return Friedman(0.0, 1.0, 0.0, 1.0)
    statistic, p = stats.friedmanchisquare(*table)
    rest = datasets * (methods - 1) - statistic
    if rest <= 1e-9:  # the same order everywhere: F is infinite
        return Friedman(float(statistic), float(p), math.inf, 0.0)
    f = (datasets - 1) * statistic / rest
    f_p = stats.f.sf(f, methods - 1, (methods - 1) * (datasets - 1))
    return Friedman(float(statistic), float(p), float(f), float(f_p))


def critical_difference(methods: int, datasets: int, alpha: float = ALPHA) -> float:
    """Nemenyi: mean ranks further apart than this differ at level alpha, over all pairs."""
    if methods < 2 or datasets < 1:
        raise FarshoreError(
            f"{methods} methods on {datasets} data sets have no critical difference: give at "
            "least 2 methods and 1 data set"
        )
    quantile = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * datasets))


def cliques(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, ...]]:
    """Maximal groups with mean ranks at most `difference` apart; nobody is alone in one."""
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
    """Two-sided p of the Wilcoxon signed-rank test, without equal pairs; 1 if all are equal."""
    difference = (np.asarray(first, np.float64) - np.asarray(second, np.float64)).round(DECIMALS)
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
