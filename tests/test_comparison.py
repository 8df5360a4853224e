"""Comparison: choosing methods and orders, ranking, and workers that give the same numbers."""

from __future__ import annotations

import pytest
from farshore.comparison import (
    BETWEEN_NAMES,
    compare,
    rank,
    select_methods,
    select_orders,
    standard_error,
)

from farshore import catalog
from farshore.benchmarks import BENCHMARKS
from farshore.errors import FarshoreError
from farshore.protocol import Run, execute


def test_groups_are_names() -> None:
    assert select_methods(["tailored"]) == [
        "cl-vrex",
        "cl-fishr",
        "cl-coral",
        "cl-mmd",
        "cl-andmask",
    ]
    assert select_methods(["naive"]) == [f"naive-{name}" for name in select_methods(["tailored"])]
    assert select_methods(["er", "tailored", "er"])[0] == "er"
    assert len(select_methods(["er", "tailored", "cl-mmd"])) == 6
    assert select_methods(["all"]) == catalog.names()
    assert select_methods(["adaptation"]) == ["tent", "cotta", "shot++"]
    assert select_methods(["upper-bound"]) == ["urm"]
    assert {"urm", "tent", "cotta", "shot++"} <= set(select_methods(["paper"]))
    assert len(select_methods(["paper"])) == 27
    assert "er" not in select_methods(["paper"])
    assert "finetune" in select_methods(["paper"])


def test_orders_are_names_and_random_ones_are_fixed_by_the_scenario() -> None:
    orders = select_orders(
        "rotated-digits",
        ["listed", "reversed", "random1", "random1", "random2"],
        target=None,
        seed=0,
    )
    assert orders[0] == ("0", "15", "30", "45")
    assert orders[1] == ("45", "30", "15", "0")
    assert orders[2] == orders[3]
    assert sorted(orders[4]) == sorted(orders[0])
    assert select_orders("rotated-digits", ["random2"], target=None, seed=0) == [orders[4]]
    assert select_orders("rotated-digits", ["listed"], target="0", seed=0) == [
        ("15", "30", "45", "75")
    ]
    for word in ("randomly", "random0", "random-1"):
        with pytest.raises(FarshoreError, match="unknown order"):
            select_orders("rotated-digits", [word], target=None, seed=0)


def test_an_order_may_be_given_by_its_names() -> None:
    assert not [
        name
        for kind in BENCHMARKS.names()
        for name in BENCHMARKS.get(kind).domains
        if BETWEEN_NAMES in name
    ]
    assert select_orders("rotated-digits", ["45/30/0/15"], target=None, seed=0) == [
        ("45", "30", "0", "15")
    ]
    for word, message in (
        ("45/30/0", "must name every source once"),
        ("45/30/0/0", "must name every source once"),
        ("45/30/0/75", "which is the target"),
        ("45/30/0/60", "unknown domain in order '60'"),
    ):
        with pytest.raises(FarshoreError, match=message):
            select_orders("rotated-digits", [word], target=None, seed=0)


@pytest.mark.parametrize(
    ("benchmark", "different"), [("rotated-digits", 24), ("heart-hospitals", 6)]
)
def test_no_order_has_two_names_while_there_are_others(benchmark: str, different: int) -> None:
    words = ["listed", "reversed", *(f"random{number}" for number in range(1, different))]
    orders = select_orders(benchmark, words, target=None, seed=0)
    assert len(set(orders[:different])) == different
    assert orders[different] in orders[:different]


def test_standard_error_is_that_of_domainbeds_tables() -> None:
    assert standard_error([70, 72, 77]) == pytest.approx(1.70, abs=0.005)
    assert standard_error([70]) is None


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


def test_offline_methods_and_adaptations_stand_below_and_never_rank() -> None:
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
    assert rows[2].rows_a_step == 96  # a batch of each of three sources
    assert [row.backward_transfer is None for row in rows[1:3]] == [False, True]


def test_workers_give_the_numbers_of_one_process() -> None:
    runs = [
        Run(benchmark="heart-hospitals", method=method, steps=3, seed=seed)
        for method in ("er", "cl-coral")
        for seed in (0, 1)
    ]
    alone, together = compare(runs, workers=1), compare(runs, workers=2)
    drop = {"seconds"}
    assert [row.model_dump(exclude=drop) for row in alone.rows] == [
        row.model_dump(exclude=drop) for row in together.rows
    ]
    assert [result.target.weights for result in alone.results] == [
        result.target.weights for result in together.results
    ]


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(FarshoreError, match="nothing to compare"):
        compare([])


def test_by_order_each_order_has_its_own_mean() -> None:
    runs = [
        Run(benchmark="heart-hospitals", method=method, steps=2, order=order)
        for method in ("er", "finetune")
        for order in (
            ("cleveland", "hungarian", "switzerland"),
            ("switzerland", "hungarian", "cleveland"),
        )
    ]
    found = compare(runs)
    orders = found.by_order()
    assert list(orders) == ["cleveland hungarian switzerland", "switzerland hungarian cleveland"]
    for order, rows in orders.items():
        assert [row.method for row in rows] == [row.method for row in found.rows]
        for row in rows:
            (result,) = [
                r
                for r in found.results
                if r.run.method == row.method and " ".join(r.sources) == order
            ]
            assert row.target == result.target_score
