"""What a table's differences allow to be concluded, and what they do not: the tests of
significance, and plain sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..evaluation.ranks import rank_methods
from ..evaluation.significance import (
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
from .names import several
from .table import Cell, Significance

ALPHA = 0.05
DRAWS = 2000
# Below this many data sets, that no difference is found says little.
FEW = 6
NAMED = 6


def judge(
    rows: Mapping[str, Sequence[Cell]],
    datasets: Sequence[str],
    labels: Mapping[str, str],
    *,
    higher_is_better: bool = True,
    seed: int = 0,
) -> Significance | None:
    """Test the ranked rows, each with a cell a data set; None where there are not two methods to
    compare.
    """
    methods = [
        key for key, cells in rows.items() if cells and all(cell.mean is not None for cell in cells)
    ]
    if len(methods) < 2:
        return None
    scores = np.array([[cell.mean for cell in rows[key]] for key in methods], dtype=np.float64)
    ranks = rank_methods(scores, higher_is_better=higher_is_better).arithmetic.tolist()
    several = len(datasets) > 1
    test = friedman(scores, higher_is_better=higher_is_better)
    difference = (
        critical_difference(len(methods), len(datasets), ALPHA)
        if several and len(methods) > 2
        else None
    )
    pairs = wilcoxon_holm(scores) if several else []
    draws = _draws(rows, methods, several, seed)
    base = methods.index("finetune") if "finetune" in methods else None
    order = sorted(range(len(methods)), key=lambda place: ranks[place])
    intervals = (
        {}
        if draws is None
        else {key: interval(draws[:, place]) for place, key in enumerate(methods)}
    )
    against = (
        {}
        if draws is None or base is None
        else {
            key: interval(draws[:, place] - draws[:, base])
            for place, key in enumerate(methods)
            if place != base
        }
    )
    names = [labels[key] for key in methods]
    sentences = [
        *_of_friedman(test, len(methods), datasets),
        *_of_nemenyi(test, difference, ranks, names, order),
        *_of_pairs(pairs, names, len(datasets)),
        *_of_bootstrap(against, intervals, labels, len(datasets), higher_is_better),
    ]
    groups = cliques(ranks, difference) if difference is not None else []
    return Significance(
        methods=tuple(methods[place] for place in order),
        datasets=tuple(datasets),
        alpha=ALPHA,
        mean_ranks={methods[place]: ranks[place] for place in order},
        friedman=test.statistic if test is not None else None,
        friedman_p=test.p if test is not None else None,
        iman_davenport=test.iman_davenport if test is not None else None,
        iman_davenport_p=test.iman_davenport_p if test is not None else None,
        critical_difference=difference,
        cliques=tuple(tuple(methods[place] for place in group) for group in groups),
        pairwise=tuple(
            (methods[pair.first], methods[pair.second], pair.p, pair.holm) for pair in pairs
        ),
        bootstrap=intervals,
        bootstrap_difference=against,
        sentences=tuple(sentences),
        labels={key: labels[key] for key in methods},
    )


def _draws(
    rows: Mapping[str, Sequence[Cell]], methods: Sequence[str], several: bool, seed: int
) -> np.ndarray | None:
    """Resampled averages; None where there is nothing to resample: one data set of one seed, or
    numbers without seeds.
    """
    values = [[cell.values for cell in rows[key]] for key in methods]
    if any(not seeds for row in values for seeds in row):
        return None
    if not several and all(len(seeds) == 1 for row in values for seeds in row):
        return None
    return bootstrap_averages(values, np.random.default_rng(seed), draws=DRAWS, datasets=several)


def _of_friedman(test: Friedman | None, methods: int, datasets: Sequence[str]) -> list[str]:
    count = len(datasets)
    if count == 1:
        return [
            f"There is one data set, {datasets[0]}: whether a method is better in general cannot "
            "be tested. "
            "Seeds say how steady a number is on this data set, not how it will be on another."
        ]
    if test is None:
        return [
            f"{methods} methods on {count} data sets are too few for Friedman's test: it needs "
            "three methods."
        ]
    plain = f"Friedman χ² = {test.statistic:.1f}, p = {_p(test.p)}"
    numbers = (
        f"{plain}; Iman-Davenport F = {test.iman_davenport:.2f}, p = {_p(test.iman_davenport_p)}"
    )
    if test.iman_davenport_p < ALPHA:
        said = [
            f"The {methods} methods do not all perform the same over the {count} data sets "
            f"({numbers})."
        ]
    else:
        said = [
            f"That some of the {methods} methods are better than others over the {count} data "
            f"sets is not shown ({numbers}): "
            "the order of the rows may be chance, and no pair should be called different."
        ]
    if count < FEW:
        said.append(
            f"With {count} data sets only large differences can be found: that one is not found "
            "is no proof that there is none."
        )
    return said


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
    apart = [names[place] for place in order if ranks[place] - ranks[best] > difference]
    close = [names[place] for place in order[1:] if ranks[place] - ranks[best] <= difference]
    text = (
        f"Nemenyi: mean ranks must be more than {difference:.1f} apart. {names[best]} has the "
        f"best mean rank ({ranks[best]:.1f})"
    )
    if not apart:
        return [f"{text} and is told apart from no other method: it may not be called the best."]
    text += f" and is told apart from {_listing(apart)}"
    return [f"{text}, but not from {_listing(close)}." if close else f"{text}: from all others."]


def _of_pairs(pairs: Sequence[Pair], names: Sequence[str], datasets: int) -> list[str]:
    if not pairs:
        return []
    least = smallest_wilcoxon(datasets, len(pairs))
    if least >= ALPHA:
        given = f"{several(datasets, 'data set')} and {several(len(pairs), 'pair')}"
        return [
            f"Wilcoxon with Holm: with {given} no corrected p can be below {_p(least)}, however "
            "large the differences: pair by pair "
            "nothing can be shown this way; more data sets or fewer methods are needed."
        ]
    shown = sorted((pair for pair in pairs if pair.holm < ALPHA), key=lambda pair: pair.holm)
    if not shown:
        return [
            f"Wilcoxon with Holm: of {several(len(pairs), 'pair')} none differs at p < {ALPHA}."
        ]
    listed = _listing(
        [f"{names[pair.first]} and {names[pair.second]} (p = {_p(pair.holm)})" for pair in shown]
    )
    return [
        f"Wilcoxon with Holm: {len(shown)} of {several(len(pairs), 'pair')} differ at p < "
        f"{ALPHA}: {listed}."
    ]


def _of_bootstrap(
    against: Mapping[str, tuple[float, float]],
    intervals: Mapping[str, object],
    labels: Mapping[str, str],
    datasets: int,
    higher: bool,
) -> list[str]:
    if not intervals:
        return ["There is one number a cell and no seeds behind it: no intervals can be given."]
    drawn = "data sets and seeds" if datasets > 1 else "seeds"
    if not against:
        return []
    above = [labels[key] for key, (low, _) in against.items() if low > 0]
    below = [labels[key] for key, (_, high) in against.items() if high < 0]
    better, worse = (above, below) if higher else (below, above)
    head = (
        f"Bootstrap over {drawn}, 95% intervals of the difference to Finetune (hints and no "
        f"tests: few {drawn} make them too narrow, and "
        "they are not corrected for the number of methods):"
    )
    if not better and not worse:
        return [f"{head} all of them contain zero."]
    parts = [
        f"{word}: {_listing(found)}"
        for word, found in (("better", better), ("worse", worse))
        if found
    ]
    return [f"{head} {'; '.join(parts)}; zero lies inside for the others."]


def _listing(names: Sequence[str]) -> str:
    shown = list(names[:NAMED])
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _p(value: float) -> str:
    if value in (0, 1):
        return f"{value:.0f}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
