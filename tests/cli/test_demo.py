"""The demo: what it plans, and that its closing sentences are made from the numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from demonstrated import demo_score
from framed import made_frame
from reporting import filled

from farshore.cli.demo import METHODS, lessons, plan_demo
from farshore.errors import FarshoreError
from farshore.results.frame import frame_of_plan
from farshore.results.select import select
from farshore.results.verdict import judge
from farshore.runs.plan.experiment import make_book
from farshore.runs.plan.plan import make_plan
from farshore.runs.plan.select import select_targets
from farshore.runs.store.store import Store


def test_the_demo_plans_two_targets_and_balanced_orders(tmp_path: Path) -> None:
    plan = make_plan(plan_demo(), Store(tmp_path), make_book(tmp_path / "none.yaml"))
    runs = list(plan.unique().values())
    assert {planned.condition.target for planned in runs} == {"75", "0"}
    for method in METHODS:
        for target in ("75", "0"):
            orders = [
                planned.run.order
                for planned in runs
                if (planned.run.method, planned.condition.target) == (method, target)
            ]
            assert len(orders) == 4
            # Each source is last once; the listed order has no names.
            named = [order[-1] for order in orders if order]
            assert len(set(named)) == len(named) >= 3
    assert sum(planned.run.method == "joint" for planned in runs) == 2
    assert len(runs) == 8 * len(METHODS) + 2


def test_the_demo_ends_with_sentences_made_from_its_numbers(tmp_path: Path) -> None:
    plan = filled(tmp_path, plan_demo(), demo_score)
    frame = select(frame_of_plan(plan, Store(tmp_path)))
    verdict = judge(frame)
    assert "over 2 unseen targets" in verdict.sentence
    assert verdict.recommendation is not None
    assert verdict.ranking.ranked[0].row == "best"
    assert lessons(frame) == [
        "finetune scores between 15 and 80% at target 75, depending on an order that you cannot "
        "choose.",
        "cl-vrex minus its form without replay: +27.0 points over 2 targets, too few targets for "
        "an interval.",
    ]
    (bound,) = [text for text in verdict.details if "than joint, which trains on all" in text]
    assert "(72.4%)" in bound


def test_the_demo_has_no_sentences_about_what_has_not_run() -> None:
    assert lessons(made_frame({"er": {"a>b": [50.0]}})) == []


def test_several_targets_are_named_or_refused() -> None:
    from farshore.benchmarks import make_benchmark

    digits = make_benchmark("rotated-digits", {})
    assert [aim.target for aim in select_targets(digits, "each:75/0")] == ["75", "0"]
    # A domain's own name may contain the sign that separates names.
    assert [aim.target for aim in select_targets(digits, "75/0")] == ["75/0"]
    assert all(aim.in_turn for aim in select_targets(digits, "each:75/0"))
    with pytest.raises(FarshoreError, match="70"):
        select_targets(digits, "each:75/70")
