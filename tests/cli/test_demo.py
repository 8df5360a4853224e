"""The demo: what it plans, and that its closing sentences are made from the numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from contested import contest
from demonstrated import demo_score
from farshore.report.closing import closing
from farshore.report.overlay import NO_OVERLAY
from farshore.report.verdict import Outcome, judge
from reporting import filled

from farshore.cli.demo import METHODS, plan_demo
from farshore.errors import FarshoreError
from farshore.report.build import build_report
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


def test_the_page_of_the_demo_has_its_verdict(tmp_path: Path) -> None:
    filled(tmp_path, plan_demo(), demo_score)
    report = build_report(tmp_path, NO_OVERLAY)
    (table,) = report.tables
    assert table.contest is not None
    verdict = judge(table.contest)
    assert "over 2 unseen targets with 4 orders of the sources each" in verdict.sentence
    assert verdict.leader is not None
    assert verdict.leader.method == "best"
    texts = closing(table.contest, verdict)
    assert texts[0] == (
        "finetune scores between 15 and 80% at target 75, depending on an order that you cannot "
        "choose."
    )
    assert texts[1].startswith("best scores 75 to 75% there")
    assert "2.9 points above training on all sources at once (72.4%)" in texts[2]
    assert "Compared with plain replay (er) alone, best is 9.0 points ahead" in texts[3]
    assert "cl-vrex minus naive-cl-vrex, its form without replay: +27.0 points" in texts[4]
    assert report.next_command.startswith("farshore audit")


def test_the_closing_never_claims_a_lead_over_replay_that_is_noise() -> None:
    orders = ("a>b", "b>a", "c>a", "a>c")
    noisy = {
        "er": dict(zip(orders, ([70.0], [71.0], [69.0], [70.5]), strict=True)),
        "best": dict(zip(orders, ([75.0], [68.0], [73.0], [67.5]), strict=True)),
    }
    compared = contest(noisy)
    verdict = judge(compared)
    assert verdict.outcome is Outcome.TIED
    (text,) = closing(compared, verdict)
    assert text.startswith("Plain replay (er) does as well here")


def test_several_targets_are_named_or_refused() -> None:
    from farshore.benchmarks.source import make_benchmark

    digits = make_benchmark("rotated-digits", {})
    assert [aim.target for aim in select_targets(digits, "each:75/0")] == ["75", "0"]
    # A domain's own name may contain the sign that separates names.
    assert [aim.target for aim in select_targets(digits, "75/0")] == ["75/0"]
    assert all(aim.in_turn for aim in select_targets(digits, "each:75/0"))
    with pytest.raises(FarshoreError, match="70"):
        select_targets(digits, "each:75/70")
