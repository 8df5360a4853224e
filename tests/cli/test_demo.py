"""The demo: what it plans, and that its closing sentences are made from the numbers."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from demonstrated import demo_score
from framed import made_frame
from reporting import filled
from typer.testing import CliRunner

from farshore.cli.app import app
from farshore.cli.demo import METHODS, lessons, plan_demo, write_table
from farshore.cli.ranking import print_ranking
from farshore.cli.tables import PlainConsole
from farshore.errors import FarshoreError
from farshore.results.frame import frame_of_plan
from farshore.results.select import select
from farshore.results.verdict import judge
from farshore.runs.plan.experiment import make_book
from farshore.runs.plan.plan import make_plan
from farshore.runs.plan.select import select_targets
from farshore.runs.store.store import Store


def test_the_demo_leaves_out_every_angle_and_learns_the_others_both_ways(tmp_path: Path) -> None:
    plan = make_plan(plan_demo(), Store(tmp_path), make_book(tmp_path / "none.yaml"))
    runs = list(plan.unique().values())
    assert {planned.condition.target for planned in runs} == {"0", "15", "30", "45", "75"}
    for method in METHODS:
        orders = {
            (planned.condition.target, planned.run.order or "listed")
            for planned in runs
            if planned.run.method == method
        }
        assert len(orders) == 10
        assert ("75", ("45", "30", "15", "0")) in orders
    assert sum(planned.run.method == "joint" for planned in runs) == 5
    assert len(runs) == 10 * len(METHODS) + 5


def test_the_demo_ends_with_sentences_made_from_its_numbers(tmp_path: Path) -> None:
    plan = filled(tmp_path, plan_demo(), demo_score)
    frame = select(frame_of_plan(plan, Store(tmp_path)))
    verdict = judge(frame)
    assert "over 5 unseen targets" in verdict.sentence
    assert verdict.recommendation is not None
    assert verdict.ranking.ranked[0].row == "auto"
    finetune, naive = lessons(frame)
    assert finetune == (
        "finetune scores between 15 and 80% at target 0, depending on an order that you cannot "
        "choose."
    )
    assert naive.startswith(
        "cl-vrex minus its form without replay: +27.0 points, 95% interval over 5 targets "
    )
    (bound,) = [text for text in verdict.details if "than joint, which trains on all" in text]
    assert "(72.3%)" in bound or "(72.4%)" in bound


def test_a_difference_has_one_interval_however_often_it_is_shown(tmp_path: Path) -> None:
    plan = filled(tmp_path, plan_demo(), demo_score)
    frame = select(frame_of_plan(plan, Store(tmp_path)))
    verdict = judge(frame)
    table = io.StringIO()
    print_ranking(PlainConsole(width=120, file=table), verdict, "demo")
    leader = verdict.ranking.ranked[0].difference
    assert leader is not None
    assert leader.low is not None
    assert leader.high is not None
    shown = f"{100 * leader.mean:+.1f} [{100 * leader.low:+.1f}, {100 * leader.high:+.1f}]"
    assert shown.replace("-", "−") in table.getvalue()
    assert leader.units == 5


def test_a_method_that_is_not_told_apart_is_not_called_equal(tmp_path: Path) -> None:
    """Who is far behind, but not with certainty, stands there with how far."""
    plan = filled(tmp_path, plan_demo(), demo_score)
    sentence = judge(select(frame_of_plan(plan, Store(tmp_path)))).sentence
    assert "finetune (" in sentence, sentence
    assert " points behind)" in sentence


def test_the_table_to_try_is_written_once_and_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    shown = CliRunner().invoke(app, ["demo", "--data", str(path)])
    assert shown.exit_code == 0
    command = shown.output.splitlines()[-1].strip()
    assert command == f"farshore audit {path} --domain hospital --label disease"
    table = pd.read_csv(path)
    assert (len(table), table["hospital"].nunique()) == (920, 4)
    assert set(table["disease"]) == {"yes", "no"}
    assert not isinstance(
        CliRunner().invoke(app, ["demo", "--data", str(path)]).exception, Exception
    )
    path.write_text("mine")
    with pytest.raises(FarshoreError, match="exists: give the name of a new file"):
        write_table(path)
    assert path.read_text() == "mine"
    with pytest.raises(FarshoreError, match=r"end it in \.csv"):
        write_table(tmp_path / "patients.xlsx")


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
