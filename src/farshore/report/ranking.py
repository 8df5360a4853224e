"""The methods of a contest by rank, for each metric: the rows of the first table and figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from ..results.over_units import FEWEST_UNITS, LEVEL, Difference, over_units, paired_difference
from ..results.ranking import choose_reference
from .contest import METRICS, Contest, Entrant, Metric, average, by_unit
from .verdict import Verdict


@dataclass(frozen=True)
class RankedRow:
    """One method under one metric.

    half: half of the 95% interval of the mean over units; None with fewer than three units.
    worst, best: over targets and orders, or over seeds if there is only one.
    difference: the paired difference from the reference.
    together: whether no test separates it from the first; known for the main metric only.
    """

    entrant: Entrant
    rank: int | None
    mean: float
    half: float | None
    worst: float
    best: float
    difference: Difference | None
    together: bool
    constant: bool


@dataclass(frozen=True)
class Ranking:
    """All rows under one metric, best first; methods that are never ranked come last."""

    metric: Metric
    rows: tuple[RankedRow, ...]
    reference: str
    main: bool


def rankings(contest: Contest, verdict: Verdict) -> list[Ranking]:
    """One ranking per metric that every run has, the main one first."""
    mains = set(contest.metric.values())
    shared = contest.available()
    if len(mains) > 1:
        main = Metric("", "main score of each data set")
        return [
            _ranking(contest, verdict, main, main=True),
            *(_ranking(contest, verdict, metric, main=False) for metric in shared),
        ]
    name = mains.pop()
    metrics = [METRICS[name], *(metric for metric in shared if metric.name != name)]
    return [_ranking(contest, verdict, metric, main=metric.name == name) for metric in metrics]


def _ranking(contest: Contest, verdict: Verdict, metric: Metric, *, main: bool) -> Ranking:
    standings = verdict.standings
    ranked = [each for each in standings if each.rank is not None]
    others = [each for each in standings if each.rank is None]
    if not main:
        sign = -1 if metric.higher_is_better else 1
        ranked.sort(key=lambda each: sign * (average(contest, each.entrant, metric.name) or 0.0))
        others.sort(key=lambda each: sign * (average(contest, each.entrant, metric.name) or 0.0))
    reference = _reference([each.entrant for each in ranked])
    rows = [
        _row(contest, metric, each.entrant, number if number <= len(ranked) else None, reference)
        for number, each in enumerate((*ranked, *others), start=1)
    ]
    marks = {each.entrant.key: (each.together and main, each.constant) for each in standings}
    return Ranking(
        metric,
        tuple(
            RankedRow(**{**vars(row), "together": together, "constant": constant})
            for row in rows
            for together, constant in [marks[row.entrant.key]]
        ),
        reference.label if reference is not None else "",
        main,
    )


def _reference(ranked: Sequence[Entrant]) -> Entrant | None:
    name = choose_reference([one.method for one in ranked])
    return next((one for one in ranked if one.method == name), None)


def _row(
    contest: Contest,
    metric: Metric,
    entrant: Entrant,
    rank: int | None,
    reference: Entrant | None,
) -> RankedRow:
    name = metric.name or None
    scores = by_unit(contest, entrant, name)
    summary = over_units(scores)
    assert summary is not None  # a method without a score has no standing
    half = None
    if summary.error is not None and summary.units >= FEWEST_UNITS:
        half = summary.error * float(stats.t.ppf((1 + LEVEL) / 2, summary.units - 1))
    difference = None
    if reference is not None and reference is not entrant:
        difference = paired_difference(scores, by_unit(contest, reference, name))
    worst, best = summary.worst, summary.best
    if not metric.higher_is_better:
        worst, best = best, worst
    mean = average(contest, entrant, name)
    assert mean is not None
    return RankedRow(entrant, rank, mean, half, worst, best, difference, False, False)
