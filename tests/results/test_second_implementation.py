"""A second, slow implementation in plain Python gives the same ranking on generated runs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import pandas as pd
import pytest
from framed import frame_of_runs, made_run
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_ranking import Answer, Made, Shown, answer, path, shares

from farshore.results.frame import SEPARATOR, method_group
from farshore.results.summary import Estimate, rank, scores_of, variance
from farshore.results.verdict import recommend

METHODS = ("er", "finetune", "cl-coral", "ridge", "joint")
# Few values, so that there are ties; some are not exact in binary.
SCORES = st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, 0.7]), st.floats(0, 1))


@st.composite
def planned_runs(draw: st.DrawFn) -> list[Made]:
    """Runs of several methods at the same places, some of them without a score."""
    datasets = draw(st.integers(1, 4))
    targets = draw(st.integers(1, 5)) if datasets == 1 else 1
    orders = list(permutations("abc"))[: draw(st.integers(1, 6 if targets < 3 else 2))]
    methods = draw(st.lists(st.sampled_from(METHODS), min_size=1, unique=True))
    runs = []
    for method in methods:
        kind = method_group(method)[1]
        seeds = range(draw(st.integers(1, 2)))
        own_orders = orders if kind == "continual" or draw(st.booleans()) else orders[:1]
        constant = draw(st.integers(0, 5)) == 0
        balanced = st.just(0.5) if constant else st.sampled_from([0.5, 0.9])
        scores = SCORES if draw(st.booleans()) else st.floats(0.5, 0.6)
        runs += [
            Made(method, kind, f"d{d}", f"t{t}", sources, seed, draw(scores), draw(balanced))
            for d in range(datasets)
            for t in range(targets)
            for sources in own_orders
            for seed in seeds
        ]
    return runs


def as_frame(runs: list[Made], metric: str = "accuracy"):
    return frame_of_runs(
        [
            made_run(
                run.method,
                run.score,
                metric=metric,
                benchmark=run.dataset,
                target=run.target,
                order=SEPARATOR.join(run.sources),
                seed=run.seed,
                balanced_accuracy=run.balanced if run.score is not None else None,
                classes=run.classes,
            )
            for run in runs
        ]
    )


def agree(found: Estimate | None, slow: Shown | None) -> None:
    assert (found is None) == (slow is None)
    if found is None or slow is None:
        return
    assert found.units == slow.units
    assert found.mean == pytest.approx(slow.mean, abs=1e-9)
    for ours, theirs in ((found.error, slow.error), (found.low, slow.low), (found.high, slow.high)):
        assert (ours is None) == (theirs is None)
        assert ours is None or ours == pytest.approx(theirs, abs=1e-9)
    assert found.values[found.worst] == pytest.approx(slow.worst, abs=1e-9)
    assert found.values[found.best] == pytest.approx(slow.best, abs=1e-9)
    assert bool(found.note) == (slow.low is None)


@settings(max_examples=60)
@given(planned_runs())
def test_both_implementations_give_the_same_ranking(runs: list[Made]) -> None:
    compare(as_frame(runs), answer(runs))


@settings(max_examples=30)
@given(planned_runs())
def test_a_loss_is_ranked_as_its_negative(runs: list[Made]) -> None:
    """A loss is better if it is lower, and has no upper limit."""
    negative = [replace(run, score=None if run.score is None else -run.score) for run in runs]
    slow = answer(negative, limits=(-math.inf, 0.0))
    rows = {
        name: replace(row, mean=minus(row.mean), difference=minus(row.difference))
        for name, row in slow.rows.items()
    }
    compare(as_frame(runs, "log_loss"), replace(slow, rows=rows))


def minus(found: Shown | None) -> Shown | None:
    if found is None:
        return None
    low = None if found.high is None else -found.high
    high = None if found.low is None else -found.low
    ends = {"worst": -found.worst, "best": -found.best}
    return replace(found, mean=-found.mean, low=low, high=high, **ends)


def compare(frame: pd.DataFrame, slow: Answer) -> None:
    """The ranking of a frame is that of the second implementation."""
    ranking = rank(frame)
    assert ranking.reference == slow.reference
    assert str(ranking.unit) == slow.unit
    for standing in ranking.standings:
        row = slow.rows[standing.row]
        assert standing.rank == row.rank, standing.row
        assert standing.guessing == row.guessing
        agree(standing.estimate, row.mean)
        agree(standing.difference, row.difference)
        if standing.difference is not None and row.difference is not None:
            assert standing.difference.won == row.difference.won
            assert standing.difference.certain == row.difference.certain
    recommended = recommend(frame, ranking)
    assert (recommended.row if recommended is not None else "") == slow.recommended
    assert (recommended.leader if recommended is not None else "") == slow.leader


@settings(max_examples=60)
@given(planned_runs())
def test_both_implementations_find_the_variance_at_the_same_levels(runs: list[Made]) -> None:
    frame = as_frame(runs)
    for method in {run.method for run in runs}:
        known = {path(run): run.score for run in runs if run.method == method}
        slow = shares({place: score for place, score in known.items() if score is not None})
        found = variance(scores_of(frame, method))
        assert {str(unit): share for unit, share in found.items()} == pytest.approx(slow, abs=1e-6)
        assert not found or sum(found.values()) == pytest.approx(1.0)
