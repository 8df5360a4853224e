"""Comparisons as recorded experiments: equal conditions extend a record, others get a new name."""

from __future__ import annotations

from pathlib import Path

import pytest

from farshore.errors import FarshoreError
from farshore.runs.plan.comparison import make_comparison, record_comparison
from farshore.runs.plan.experiment import Experiment, make_book
from farshore.runs.plan.plan import make_plan
from farshore.runs.store.store import Store, recorded_experiments


def comparison(
    methods: str, seeds: int = 1, orders: str = "listed", **values: object
) -> Experiment:
    return make_comparison(
        {"benchmark": "heart-hospitals"},
        methods.split(),
        seeds=range(seeds),
        orders=orders.split(),
        **values,
    )


def runs_of(experiment: Experiment) -> set[str]:
    return set(make_plan(experiment, Store(Path("none")), make_book(Path("none.yaml"))).unique())


def recorded(runs: Path) -> dict[str, Experiment]:
    return {stem: experiment for stem, (experiment, _) in recorded_experiments(runs).items()}


def test_a_comparison_is_an_experiment_without_a_search() -> None:
    found = comparison("er finetune", 2, "listed reversed", settings={"batch_size": "8"})
    assert (found.name, found.command) == ("compare-heart-hospitals", "compare")
    assert found.search.run_seeds == {0: 0, 1: 1}
    assert found.parts[0].settings == {"batch_size": 8}
    assert len(runs_of(found)) == 8


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"methods": ""}, "nothing to compare"),
        ({"seeds": 0}, "nothing to compare"),
        ({"orders": "backwards"}, "unknown order"),
        ({"steps": 0}, "steps = 0 is not allowed"),
        ({"target": "nowhere"}, "unknown target"),
    ],
)
def test_what_cannot_be_compared_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(FarshoreError, match=message):
        comparison(**{"methods": "er", **values})


def test_an_order_that_is_spelled_twice_is_one() -> None:
    found = comparison("er", orders="listed cleveland/hungarian/switzerland reversed")
    assert found.parts[0].orders == ["listed", "reversed"]


@pytest.mark.parametrize(
    "further",
    [
        {"methods": "cl-coral"},
        {"methods": "er", "seeds": 3},
        {"methods": "er finetune", "orders": "reversed"},
        {"methods": "er cl-coral", "seeds": 1, "orders": "reversed listed"},
        {"methods": "finetune"},
        {"methods": "er", "orders": "cleveland/hungarian/switzerland random1"},
    ],
)
def test_the_same_conditions_extend_the_recorded_comparison_by_what_was_asked(
    further: dict[str, object], tmp_path: Path
) -> None:
    first, second = comparison("er finetune", 2), comparison(**further)
    assert record_comparison(first, tmp_path) == first
    assert record_comparison(second, tmp_path) == second
    (whole,) = recorded(tmp_path).values()
    assert whole.name == "compare-heart-hospitals"
    assert runs_of(whole) == runs_of(first) | runs_of(second)
    record_comparison(first, tmp_path)
    assert recorded(tmp_path) == {whole.name: whole}


def test_other_conditions_get_a_name_of_their_own(tmp_path: Path) -> None:
    usual = record_comparison(comparison("er", target="va"), tmp_path)
    assert usual == comparison("er")
    short = record_comparison(comparison("er", steps=5), tmp_path)
    other = record_comparison(comparison("er", target="cleveland"), tmp_path)
    names = {usual.name, short.name, other.name}
    assert len(names) == 3
    assert usual.name == "compare-heart-hospitals"
    assert short.name.startswith("compare-heart-hospitals-")
    assert set(recorded(tmp_path)) == names
    again = record_comparison(comparison("finetune", steps=5), tmp_path)
    assert again.name == short.name
    assert recorded(tmp_path)[short.name].parts[0].methods == ["er", "finetune"]
