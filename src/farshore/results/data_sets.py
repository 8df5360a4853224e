"""Tests of the ranked methods over several data sets, and plain sentences about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ..tasks.metrics import listed, several
from . import tests
from .summary import Ranking
from .tests import cliques, friedman

# With fewer data sets than this, a test that finds no difference means little.
FEW = 6
# How many methods or pairs a sentence names.
NAMED = 6


@dataclass(frozen=True)
class Significance:
    """The tests on the ranks of the usable methods; their rows, best mean rank first.

    critical: two methods are not distinguishable if their mean ranks differ by less than this.
    cliques: groups of rows within which no two are distinguishable.
    pairs: rows, p of the Wilcoxon test, and p after Holm's correction.
    """

    datasets: tuple[str, ...]
    mean_ranks: Mapping[str, float]
    friedman: tests.Friedman | None
    critical: float | None
    cliques: tuple[tuple[str, ...], ...]
    pairs: tuple[tuple[str, str, float, float], ...]
    sentences: tuple[str, ...]

    @property
    def possible(self) -> bool:
        """Whether there are enough methods and data sets for a test."""
        return self.friedman is not None or len(self.mean_ranks) == 2

    def ahead(self, first: str, second: str) -> bool:
        """Whether the tests say that the first row is better."""
        if self.mean_ranks[first] >= self.mean_ranks[second]:
            return False
        if self.friedman is None:
            return any(p < tests.ALPHA for a, b, _, p in self.pairs if {a, b} == {first, second})
        if self.critical is None or self.friedman.iman_davenport_p >= tests.ALPHA:
            return False
        return self.mean_ranks[second] - self.mean_ranks[first] > self.critical


def compare_data_sets(frame: pd.DataFrame, ranking: Ranking) -> Significance:
    """Test the ranked methods that do better than guessing; a data set is one observation."""
    rows = [each.row for each in ranking.usable]
    scores = {each.row: each.estimate.values for each in ranking.usable if each.estimate}
    datasets = list(scores[rows[0]])
    table = [[scores[row][name] for name in datasets] for row in rows]
    higher = ranking.metric.higher_is_better
    ranks = tests.rank_methods(table, higher_is_better=higher).mean(axis=1).tolist()
    order = sorted(range(len(rows)), key=lambda index: ranks[index])
    test = friedman(table)
    critical = tests.critical_difference(len(rows), len(datasets)) if len(rows) > 2 else None
    pairs = tuple((rows[p.first], rows[p.second], p.p, p.holm) for p in tests.wilcoxon_holm(table))
    named = {row: float(rank) for row, rank in zip(rows, ranks, strict=True)}
    mean_ranks = {rows[index]: named[rows[index]] for index in order}
    groups = cliques(ranks, critical) if critical is not None else []
    sentences: list[str] = []
    if len(rows) > 1:
        first = ", ".join(f"{row} {rank:.1f}" for row, rank in list(mean_ranks.items())[:NAMED])
        sentences = [
            f"Mean ranks over the data sets, 1 is best: {first}.",
            *_of_friedman(test, len(rows), len(datasets)),
            *_of_nemenyi(test, critical, mean_ranks),
            *_of_pairs(pairs, len(datasets)),
        ]
    alike = tuple(tuple(rows[index] for index in group) for group in groups)
    found = (tuple(datasets), mean_ranks, test, critical, alike, pairs)
    return Significance(*found, sentences=tuple(sentences))


def _of_friedman(test: tests.Friedman | None, methods: int, datasets: int) -> list[str]:
    if test is None:
        what = f"{methods} methods on {datasets} data sets"
        return [f"{what} are too few for the Friedman test, which needs three methods."]
    numbers = (
        f"Friedman χ² = {test.statistic:.1f}, p = {_p(test.p)}; Iman-Davenport F = "
        f"{test.iman_davenport:.2f}, p = {_p(test.iman_davenport_p)}"
    )
    over = f"over the {datasets} data sets ({numbers})"
    text = f"The {methods} methods do not all perform equally {over}."
    if test.iman_davenport_p >= tests.ALPHA:
        text = (
            f"No difference between the {methods} methods is significant {over}. The order of the "
            "rows may be due to chance, and no two methods should be called different."
        )
    doubt = (
        f"With {datasets} data sets, only large differences can be detected; a difference that is "
        "not detected may still exist."
    )
    return [text, doubt] if datasets < FEW else [text]


def _of_nemenyi(
    test: tests.Friedman | None, critical: float | None, ranks: Mapping[str, float]
) -> list[str]:
    if critical is None or test is None or test.iman_davenport_p >= tests.ALPHA:
        return []
    best, *others = ranks
    different = [row for row in others if ranks[row] - ranks[best] > critical]
    similar = [row for row in others if row not in different]
    text = (
        f"Nemenyi test: methods are distinguishable if their mean ranks differ by more than "
        f"{critical:.1f}. {best} has the best mean rank ({ranks[best]:.1f})"
    )
    if not different:
        return [f"{text}, but is not distinguishable from any other method."]
    text += f" and is distinguishable from {listed(different, NAMED)}"
    if not similar:
        return [f"{text}: all others."]
    return [f"{text}, but not from {listed(similar, NAMED)}."]


def _of_pairs(pairs: Sequence[tuple[str, str, float, float]], datasets: int) -> list[str]:
    head = "Wilcoxon tests with Holm's correction:"
    smallest = tests.smallest_wilcoxon(datasets, len(pairs))
    if smallest >= tests.ALPHA:
        return [
            f"{head} with {several(datasets, 'data set')} and {several(len(pairs), 'pair')}, no "
            f"corrected p can be below {_p(smallest)}, however large the differences. Comparing "
            "pairs needs more data sets or fewer methods."
        ]
    significant = [pair for pair in pairs if pair[3] < tests.ALPHA]
    significant.sort(key=lambda pair: pair[3])
    of = several(len(pairs), "pair")
    if not significant:
        return [f"{head} none of {of} differs at p < {tests.ALPHA}."]
    texts = [f"{first} and {second} (p = {_p(p)})" for first, second, _, p in significant]
    differ = f"{len(significant)} of {of} differ at p < {tests.ALPHA}"
    return [f"{head} {differ}: {listed(texts, NAMED)}."]


def _p(value: float) -> str:
    if value in (0, 1):
        return f"{value:.0f}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
