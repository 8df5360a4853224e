"""Ranked results: only continual methods have a rank, and what is missing is counted."""

from __future__ import annotations

import numpy as np
import pytest

from farshore.results.ranking import rank, rank_by_order
from farshore.runs.protocol import execute
from farshore.runs.run import Run


def test_diverged_runs_are_counted_and_never_ranked_first() -> None:
    good = execute(Run(benchmark="heart-hospitals", method="finetune", steps=2))
    bad = execute(
        Run(benchmark="heart-hospitals", method="er", steps=20, settings={"learning_rate": 1e30})
    )
    assert bad.status == "diverged"
    rows = rank([bad, good, good.model_copy(update={"run": bad.run})])
    assert [(row.method, row.rank, row.runs, row.planned, row.whole) for row in rows] == [
        ("er", 1, 1, 2, False),
        ("finetune", 2, 1, 1, True),
    ]
    assert [(row.method, row.rank, row.target) for row in rank([bad, good])][1] == (
        "er",
        None,
        None,
    )


def test_offline_methods_and_adaptations_come_last_and_have_no_rank() -> None:
    runs = [
        Run(benchmark="heart-hospitals", method=method, steps=2)
        for method in ("cotta", "finetune", "tent", "urm", "er")
    ]
    results = [execute(run) for run in runs]
    best = results[0].target.model_copy(
        update={"scores": {**results[0].target.scores, "accuracy": 1.0}}
    )
    results = [
        result if result.kind == "continual" else result.model_copy(update={"target": best})
        for result in results
    ]
    rows = rank(results)
    assert {row.method for row in rows[:2]} == {"finetune", "er"}
    assert [row.rank for row in rows] == [1, 2, None, None, None]
    assert [(row.method, row.kind) for row in rows[2:]] == [
        ("urm", "offline"),
        ("cotta", "adaptation"),
        ("tent", "adaptation"),
    ]
    assert rows[2].rows_per_step == 96  # a batch of each of three sources
    assert [row.backward_transfer is None for row in rows[1:3]] == [False, True]


def test_runs_that_failed_are_counted_as_planned() -> None:
    good = execute(Run(benchmark="heart-hospitals", method="finetune", steps=2))
    (standing,) = rank([good], {"finetune": 3})
    assert (standing.runs, standing.planned, standing.whole) == (1, 3, False)


def test_by_order_each_order_has_its_own_mean() -> None:
    runs = [
        Run(benchmark="heart-hospitals", method=method, steps=2, order=order)
        for method in ("er", "finetune")
        for order in (
            ("cleveland", "hungarian", "switzerland"),
            ("switzerland", "hungarian", "cleveland"),
        )
    ]
    results = [execute(run) for run in runs]
    orders = rank_by_order(results)
    assert list(orders) == ["cleveland hungarian switzerland", "switzerland hungarian cleveland"]
    for order, standings in orders.items():
        assert [each.method for each in standings] == [each.method for each in rank(results)]
        for standing in standings:
            (result,) = [
                each
                for each in results
                if each.run.method == standing.method and " ".join(each.sources) == order
            ]
            assert standing.target == result.target_score


def test_with_several_targets_each_counts_once_however_many_runs_it_has() -> None:
    runs = [
        Run(benchmark="heart-hospitals", method="finetune", steps=1, target=target, seed=seed)
        for target, seeds in (("cleveland", 3), ("va", 1), ("hungarian", 1))
        for seed in range(seeds)
    ]
    results = [execute(run) for run in runs]
    scores = [float(result.target_score or 0) for result in results]
    by_target = [np.mean(scores[:3]), scores[3], scores[4]]
    (standing,) = rank(results)
    assert (standing.targets, standing.runs) == (3, 5)
    assert standing.target == pytest.approx(np.mean(by_target))
    assert standing.target_error == pytest.approx(np.std(by_target, ddof=1) / np.sqrt(3))
