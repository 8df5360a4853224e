"""Reports of comparisons: one table each, alone or beside other experiments."""

from __future__ import annotations

from pathlib import Path

import pytest
from reporting import BOTH, filled, only, row, steady
from sweeping import experiment, swept

from farshore.errors import FarshoreError
from farshore.report.build import build_report
from farshore.report.table import Table
from farshore.runs.plan.comparison import make_comparison, record_comparison
from farshore.runs.store.store import Store


def test_a_comparison_is_a_table(tmp_path: Path) -> None:
    comparison = make_comparison(
        {"benchmark": "heart-hospitals"},
        ["finetune", "er", "tent"],
        seeds=range(2),
        orders=["listed"],
        steps=2,
        settings={"batch_size": 8},
    )
    plan, _ = swept(comparison, tmp_path)
    record_comparison(comparison, tmp_path)
    results = [Store(tmp_path).read(name) for name in plan.unique()]
    report = build_report(tmp_path)
    table = only(report)
    assert table.name == "compare-heart-hospitals"
    for method in comparison.parts[0].methods:
        scores = [each.target_score for each in results if each.run.method == method]
        cell = row(table, method).cells["heart-hospitals"]
        assert cell.mean == pytest.approx(100 * sum(scores) / len(scores))
    assert table.rows[0].average is None
    assert {each.method for each in table.rows if each.ranked} == {"finetune", "er"}
    assert "There is only one data set" in table.significance.sentences[0]
    assert report.provenance.commands[-2] == (
        "farshore compare heart-hospitals --methods finetune,er,tent --seeds 2 --orders "
        "listed --steps 2 --set batch_size=8 --runs runs-again"
    )


def test_a_report_of_one_experiment(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part=BOTH), steady)
    compared = make_comparison(
        {"benchmark": "heart-hospitals"}, ["er"], seeds=[0], orders=["listed"]
    )
    filled(tmp_path, compared, steady)
    assert [table.name for table in build_report(tmp_path).tables] == [
        "compare-heart-hospitals",
        "toy",
    ]
    report = build_report(tmp_path, experiment="compare-heart-hospitals")
    assert only(report).name == "compare-heart-hospitals"
    assert report.problems == ()
    assert dict(report.provenance.facts)["runs"].startswith("1;")
    with pytest.raises(FarshoreError, match="contains no finished run of nothing"):
        build_report(tmp_path, experiment="nothing")


def test_a_later_comparison_leaves_no_run_of_an_earlier_one_behind(tmp_path: Path) -> None:
    for methods, seeds, steps in ((["er", "si"], 2, None), (["finetune"], 1, None), (["er"], 1, 5)):
        compared = make_comparison(
            {"benchmark": "heart-hospitals"},
            methods,
            seeds=range(seeds),
            orders=["listed"],
            steps=steps,
        )
        filled(tmp_path, record_comparison(compared, tmp_path), steady, record=False)
    report = build_report(tmp_path)
    assert report.problems == ()
    assert sorted(len(table.rows) for table in report.tables) == [1, 3]
    assert all(table.whole for table in report.tables)


def test_a_comparison_over_orders_and_at_the_defaults(tmp_path: Path) -> None:
    def compared(orders: list[str], runs: Path) -> Table:
        comparison = make_comparison(
            {"benchmark": "rotated-mnist"}, ["finetune", "cl-coral"], seeds=range(2), orders=orders
        )
        filled(runs, comparison, steady)
        return only(build_report(runs))

    table = compared(["listed", "reversed"], tmp_path / "both")
    assert [column.label for column in table.columns] == ["RotatedMNIST", "RotatedMNIST, reversed"]
    assert not table.ranked
    assert not table.has_paper
    table = compared(["listed"], tmp_path / "one")
    assert row(table, "cl-coral").cells["rotated-mnist"].paper == 72.8
    assert not any("The paper searched" in note for note in table.notes)
