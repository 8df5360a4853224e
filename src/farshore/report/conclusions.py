"""What the differences in a table show: significance tests, and plain sentences about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..results.ranks import rank_methods
from ..results.significance import (
    Friedman,
    Pair,
    bootstrap_averages,
    cliques,
    critical_difference,
    friedman,
    interval,
    smallest_wilcoxon,
    wilcoxon_holm,
)
from .names import listing, several
from .overlay import BASELINE
from .table import Cell, Significance

ALPHA = 0.05
DRAWS = 2000
# With fewer data sets than this, a test that finds no difference means little.
FEW = 6
# How many methods or pairs a sentence names.
NAMED = 6


def judge(
    rows: Mapping[str, Sequence[Cell]],
    datasets: Sequence[str],
    labels: Mapping[str, str],
    *,
    baseline: str = BASELINE,
    higher_is_better: bool = True,
    seed: int = 0,
) -> Significance | None:
    """Test the ranked rows, which have one cell per data set; None for fewer than two methods."""
    methods = [
        key for key, cells in rows.items() if cells and all(cell.mean is not None for cell in cells)
    ]
    if len(methods) < 2:
        return None
    scores = np.array([[cell.mean for cell in rows[key]] for key in methods], dtype=np.float64)
    ranks = rank_methods(scores, higher_is_better=higher_is_better).arithmetic.tolist()
    many = len(datasets) > 1
    test = friedman(scores, higher_is_better=higher_is_better)
    difference = (
        critical_difference(len(methods), len(datasets), ALPHA)
        if many and len(methods) > 2
        else None
    )
    pairs = wilcoxon_holm(scores) if many else []
    draws = _draws(rows, methods, many, seed)
    base = methods.index(baseline) if baseline in methods else None
    order = sorted(range(len(methods)), key=lambda index: ranks[index])
    intervals = (
        {}
        if draws is None
        else {key: interval(draws[:, index]) for index, key in enumerate(methods)}
    )
    differences = (
        {}
        if draws is None or base is None
        else {
            key: interval(draws[:, index] - draws[:, base])
            for index, key in enumerate(methods)
            if index != base
        }
    )
    names = [labels[key] for key in methods]
    sentences = [
        *_of_friedman(test, len(methods), datasets),
        *_of_nemenyi(test, difference, ranks, names, order),
        *_of_pairs(pairs, names, len(datasets)),
        *_of_bootstrap(
            differences, intervals, labels, labels.get(baseline, baseline), many, higher_is_better
        ),
    ]
    groups = cliques(ranks, difference) if difference is not None else []
    return Significance(
        methods=tuple(methods[index] for index in order),
        datasets=tuple(datasets),
        alpha=ALPHA,
        mean_ranks={methods[index]: ranks[index] for index in order},
        friedman=test.statistic if test is not None else None,
        friedman_p=test.p if test is not None else None,
        iman_davenport=test.iman_davenport if test is not None else None,
        iman_davenport_p=test.iman_davenport_p if test is not None else None,
        critical_difference=difference,
        cliques=tuple(tuple(methods[index] for index in group) for group in groups),
        pairwise=tuple(
            (methods[pair.first], methods[pair.second], pair.p, pair.holm) for pair in pairs
        ),
        bootstrap=intervals,
        bootstrap_difference=differences,
        sentences=tuple(sentences),
        labels={key: labels[key] for key in methods},
    )


def _draws(
    rows: Mapping[str, Sequence[Cell]], methods: Sequence[str], many: bool, seed: int
) -> np.ndarray | None:
    """Resampled averages; None if there is nothing to resample.

    That is one data set with one seed, or numbers without seeds.
    """
    values = [[cell.values for cell in rows[key]] for key in methods]
    if any(not seeds for row in values for seeds in row):
        return None
    if not many and all(len(seeds) == 1 for row in values for seeds in row):
        return None
    return bootstrap_averages(values, np.random.default_rng(seed), draws=DRAWS, datasets=many)


def _of_friedman(test: Friedman | None, methods: int, datasets: Sequence[str]) -> list[str]:
    count = len(datasets)
    if count == 1:
        return [
            f"There is only one data set, {datasets[0]}, so whether a method is better in general "
            "cannot be tested. Seeds show how much a number varies on this data set, not what to "
            "expect on another."
        ]
    if test is None:
        return [
            f"{methods} methods on {count} data sets are too few for the Friedman test, which "
            "needs three methods."
        ]
    plain = f"Friedman χ² = {test.statistic:.1f}, p = {_p(test.p)}"
    numbers = (
        f"{plain}; Iman-Davenport F = {test.iman_davenport:.2f}, p = {_p(test.iman_davenport_p)}"
    )
    if test.iman_davenport_p < ALPHA:
        sentences = [
            f"The {methods} methods do not all perform equally over the {count} data sets "
            f"({numbers})."
        ]
    else:
        sentences = [
            f"No difference between the {methods} methods is significant over the {count} data "
            f"sets ({numbers}). The order of the rows may be due to chance, and no two methods "
            "should be called different."
        ]
    if count < FEW:
        sentences.append(
            f"With {count} data sets, only large differences can be detected; a difference that "
            "is not detected may still exist."
        )
    return sentences


def _of_nemenyi(
    test: Friedman | None,
    difference: float | None,
    ranks: Sequence[float],
    names: Sequence[str],
    order: Sequence[int],
) -> list[str]:
    if difference is None or test is None or test.iman_davenport_p >= ALPHA:
        return []
    best = order[0]
    different = [names[index] for index in order if ranks[index] - ranks[best] > difference]
    similar = [names[index] for index in order[1:] if ranks[index] - ranks[best] <= difference]
    text = (
        f"Nemenyi test: methods are distinguishable if their mean ranks differ by more than "
        f"{difference:.1f}. {names[best]} has the best mean rank ({ranks[best]:.1f})"
    )
    if not different:
        return [f"{text}, but is not distinguishable from any other method."]
    text += f" and is distinguishable from {listing(different, NAMED)}"
    if not similar:
        return [f"{text}: all others."]
    return [f"{text}, but not from {listing(similar, NAMED)}."]


def _of_pairs(pairs: Sequence[Pair], names: Sequence[str], datasets: int) -> list[str]:
    if not pairs:
        return []
    smallest = smallest_wilcoxon(datasets, len(pairs))
    if smallest >= ALPHA:
        counts = f"{several(datasets, 'data set')} and {several(len(pairs), 'pair')}"
        return [
            f"Wilcoxon tests with Holm's correction: with {counts}, no corrected p can be below "
            f"{_p(smallest)}, however large the differences. Comparing pairs needs more data sets "
            "or fewer methods."
        ]
    significant = sorted((pair for pair in pairs if pair.holm < ALPHA), key=lambda pair: pair.holm)
    if not significant:
        return [
            f"Wilcoxon tests with Holm's correction: none of {several(len(pairs), 'pair')} differs "
            f"at p < {ALPHA}."
        ]
    listed = listing(
        [
            f"{names[pair.first]} and {names[pair.second]} (p = {_p(pair.holm)})"
            for pair in significant
        ],
        NAMED,
    )
    return [
        f"Wilcoxon tests with Holm's correction: {len(significant)} of "
        f"{several(len(pairs), 'pair')} differ at p < {ALPHA}: {listed}."
    ]


def _of_bootstrap(
    differences: Mapping[str, tuple[float, float]],
    intervals: Mapping[str, object],
    labels: Mapping[str, str],
    baseline: str,
    many: bool,
    higher: bool,
) -> list[str]:
    if not intervals:
        return ["There is one number per cell and no seeds behind it, so there are no intervals."]
    drawn = "data sets and seeds" if many else "seeds"
    if not differences:
        return []
    above = [labels[key] for key, (low, _) in differences.items() if low > 0]
    below = [labels[key] for key, (_, high) in differences.items() if high < 0]
    better, worse = (above, below) if higher else (below, above)
    head = (
        f"95% bootstrap intervals over {drawn} of the difference to {baseline} (indicative only: "
        f"few {drawn} make them too narrow, and they are not corrected for the number of methods):"
    )
    if not better and not worse:
        return [f"{head} all of them contain zero."]
    parts = [
        f"{word}: {listing(names, NAMED)}"
        for word, names in (("better", better), ("worse", worse))
        if names
    ]
    return [f"{head} {'; '.join(parts)}; the other intervals contain zero."]


def _p(value: float) -> str:
    if value in (0, 1):
        return f"{value:.0f}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
