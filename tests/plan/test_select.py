"""Words for methods and orders."""

from __future__ import annotations

from collections import Counter

import pytest

from farshore.benchmarks import BENCHMARKS, make_benchmark
from farshore.cli.method_groups import method_groups
from farshore.errors import FarshoreError
from farshore.runs import catalog
from farshore.runs.plan.select import (
    BETWEEN_NAMES,
    different_orders,
    expand_orders,
    select_methods,
    select_orders,
)


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
    for_tables = {"trees", "joint-linear", "joint-forest", "joint-trees"}
    assert select_methods(["all"]) == [name for name in catalog.names() if name not in for_tables]
    assert select_methods(["adaptation"]) == ["tent", "cotta", "shot++"]
    assert select_methods(["upper-bound"]) == ["joint", "urm"]
    with pytest.raises(FarshoreError, match="unknown method or group 'paper'"):
        select_methods(["paper"])
    assert select_methods(["mine", "er"], {"mine": ["si", "er"]}) == ["si", "er"]


def test_the_command_line_knows_the_papers_methods() -> None:
    paper = select_methods(["paper"], method_groups())
    assert {"urm", "tent", "cotta", "shot++", "finetune"} <= set(paper)
    assert len(paper) == 27
    assert "er" not in paper


def test_orders_are_names_and_random_ones_are_fixed_by_the_scenario() -> None:
    orders = select_orders(
        make_benchmark("rotated-digits"),
        ["listed", "reversed", "random1", "random1", "random2"],
        target=None,
        seed=0,
    )
    assert orders[0] == ("0", "15", "30", "45")
    assert orders[1] == ("45", "30", "15", "0")
    assert orders[2] == orders[3]
    assert sorted(orders[4]) == sorted(orders[0])
    assert select_orders(make_benchmark("rotated-digits"), ["random2"], target=None, seed=0) == [
        orders[4]
    ]
    assert select_orders(make_benchmark("rotated-digits"), ["listed"], target="0", seed=0) == [
        ("15", "30", "45", "75")
    ]
    for word in ("randomly", "random0", "random-1"):
        with pytest.raises(FarshoreError, match="unknown order"):
            select_orders(make_benchmark("rotated-digits"), [word], target=None, seed=0)


def test_an_order_may_be_given_by_its_names() -> None:
    assert not [
        name
        for kind in BENCHMARKS.names()
        if not BENCHMARKS.get(kind).own_data
        for name in BENCHMARKS.get(kind).domains
        if BETWEEN_NAMES in name
    ]
    assert select_orders(make_benchmark("rotated-digits"), ["45/30/0/15"], target=None, seed=0) == [
        ("45", "30", "0", "15")
    ]
    for word, message in (
        ("45/30/0", "must name every source once"),
        ("45/30/0/0", "must name every source once"),
        ("45/30/0/75", "which is the target"),
        ("45/30/0/60", "unknown domain in order '60'"),
    ):
        with pytest.raises(FarshoreError, match=message):
            select_orders(make_benchmark("rotated-digits"), [word], target=None, seed=0)


def test_all_orders_and_balanced_orders() -> None:
    benchmark = make_benchmark("rotated-digits")
    words = expand_orders(benchmark, ["all"], target=None, seed=0)
    orders = select_orders(benchmark, words, target=None, seed=0)
    assert len(set(orders)) == len(orders) == 24
    assert words[0] == "listed"
    for count in (4, 12, 24):
        words = expand_orders(benchmark, [f"balanced:{count}"], target=None, seed=0)
        orders = select_orders(benchmark, words, target=None, seed=0)
        assert len(set(orders)) == count
        for place in range(4):
            at_place = Counter(order[place] for order in orders)
            assert set(at_place.values()) == {count // 4}
    again = expand_orders(benchmark, ["balanced:12"], target=None, seed=0)
    assert again == expand_orders(benchmark, ["balanced:12"], target=None, seed=0)
    assert again != expand_orders(benchmark, ["balanced:12"], target=None, seed=1)
    assert expand_orders(benchmark, ["listed", "all"], target=None, seed=0)[0] == "listed"
    assert len(expand_orders(benchmark, ["listed", "all"], target=None, seed=0)) == 24


@pytest.mark.parametrize("word", ["balanced:5", "balanced:0", "balanced:x", "balanced:28"])
def test_balanced_orders_need_a_multiple_of_the_sources(word: str) -> None:
    with pytest.raises(FarshoreError, match=r"a multiple of 4 \(the number of sources\)"):
        expand_orders(make_benchmark("rotated-digits"), [word], target=None, seed=0)


@pytest.mark.parametrize(
    ("benchmark", "different"), [("rotated-digits", 24), ("heart-hospitals", 6)]
)
def test_no_order_has_two_names_while_there_are_others(benchmark: str, different: int) -> None:
    words = ["listed", "reversed", *(f"random{number}" for number in range(1, different))]
    orders = select_orders(make_benchmark(benchmark), words, target=None, seed=0)
    assert len(set(orders[:different])) == different
    assert orders[different] in orders[:different]


def test_an_order_that_is_spelled_in_two_ways_is_one() -> None:
    words = ["0/15/30/45", "reversed", "45/30/15/0", "random2", "45/30/0/15", "listed"]
    found = different_orders(make_benchmark("rotated-digits"), words, target=None, seed=0)
    assert list(found.values()) == ["listed", "reversed", "random2", "45/30/0/15"]
    assert select_orders(
        make_benchmark("rotated-digits"), list(found.values()), target=None, seed=0
    ) == list(found)
