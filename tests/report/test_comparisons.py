"""Reports of comparisons: one table each, alone or beside other experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reporting import BOTH, filled, only, row, steady
from sweeping import experiment, swept

from farshore.errors import FarshoreError
from farshore.report.build import build_report, published_name
from farshore.runs.plan.comparison import make_comparison, record_comparison
from farshore.runs.store.store import Store


def test_a_comparison_is_a_table(tmp_path: Path) -> None:
    comparison = make_comparison(
        {"benchmark": "heart-hospitals"},
        ["finetune", "er", "tent"],
        seeds=range(3),
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
    for method in ("finetune", "er", "tent"):
        scores = [100 * each.target_score for each in results if each.run.method == method]
        cell = row(table, method).cells["heart-hospitals"]
        assert cell.mean == pytest.approx(np.mean(scores))
        assert cell.error == pytest.approx(np.std(scores, ddof=1) / np.sqrt(3))
    assert [column.key for column in table.columns] == ["heart-hospitals", "rank", "difference"]
    assert {each.method for each in table.rows if "rank" in each.cells} == {"finetune", "er"}
    assert report.sections[0].verdict is not None
    assert report.sections[0].verdict.significance is None  # one data set allows no test of ranks
    assert "without a search" in table.remarks[0]
    assert report.provenance.commands[-2] == (
        "farshore compare heart-hospitals --methods finetune,er,tent --seeds 3 --orders "
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


def test_published_numbers_stand_beside_a_comparison_at_the_defaults_only() -> None:
    def name(**changes: object) -> str:
        fields = {"seeds": range(2), "orders": ["listed"], **changes}
        return published_name(
            make_comparison({"benchmark": "rotated-mnist"}, ["finetune", "cl-coral"], **fields)
        )

    assert name() == "compare"
    assert name(seeds=range(5)) == "compare"
    assert name(orders=["listed", "reversed"]) == ""
    assert name(steps=5) == ""
    assert name(memory=50) == ""
    assert name(target="0") == ""
    assert name(settings={"batch_size": 8}) == ""
    assert published_name(experiment(name="main")) == "main"
    assert published_name(None) == ""
