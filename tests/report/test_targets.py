"""Every domain as the target in turn, in one table: each target counts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from reporting import filled
from sweeping import experiment

from farshore.report.build import build_report
from farshore.report.table import Row, Table
from farshore.report.verdict import Outcome, judge
from farshore.runs.plan.plan import Planned

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
KEYS = [f"heart-hospitals {kind}" for kind in ("mean", "worst", "difference")]
PART = {"benchmarks": ["heart-hospitals"], "methods": ["er", "cl-coral"], "target": "each"}
# cl-coral minus er at each hospital.
GAINS = (0.04, 0.06, 0.05, 0.05)


def score(entry: Planned) -> float:
    place = HOSPITALS.index(entry.condition.target)
    gain = GAINS[place] if entry.run.method == "cl-coral" else 0.0
    return 0.4 + 0.1 * place + gain + 0.001 * (entry.seed % 2)


def row(table: Table, method: str) -> Row:
    return next(each for each in table.rows if each.key == method)


@pytest.mark.parametrize("orders", [["listed"], ["balanced:3"]])
def test_means_errors_and_differences_are_taken_over_targets(
    tmp_path: Path, orders: list[str]
) -> None:
    seeds = {"trials": 1, "seeds": 4}
    filled(tmp_path, experiment(search=seeds, part={**PART, "orders": orders}), score)
    report = build_report(tmp_path)
    (table,) = report.tables
    targets = [f"heart-hospitals target {name}" for name in HOSPITALS]
    assert [column.key for column in table.columns] == [*KEYS, *targets]
    assert "mean over 4 targets" in table.columns[0].label
    mean, worst, difference = (row(table, "cl-coral").cells[key] for key in KEYS)
    runs = 16 if orders == ["listed"] else 48
    assert (mean.seeds, mean.seeds_planned, mean.whole) == (runs, runs, True)
    assert mean.mean == pytest.approx(60.05)
    # The means of the hospitals are 44.05, 56.05, 65.05 and 75.05: deviation 13.19, over 2.
    assert mean.error == pytest.approx(6.595, abs=0.01)
    assert worst.mean == pytest.approx(44.05)
    assert difference.mean == pytest.approx(5.0)
    # Student's t for 3 degrees, deviation 0.8165, over the root of 4 targets.
    assert difference.error == pytest.approx(3.18245 * 0.81650 / 2, abs=1e-3)
    assert row(table, "er").cells[targets[0]].seeds == runs // 4
    assert not table.ranked
    assert any("each target counts once" in note for note in table.notes)
    assert table.contest is not None
    verdict = judge(table.contest)
    assert verdict.outcome is Outcome.CLEAR
    assert "over 4 unseen targets: 60.1%" in verdict.sentence
    assert "+5.0 points" in verdict.details[0]


def test_a_lead_that_depends_on_the_target_is_not_certain(tmp_path: Path) -> None:
    def uneven(entry: Planned) -> float:
        at_va = entry.condition.target == "va" and entry.run.method == "cl-coral"
        return 0.9 if at_va else 0.5

    filled(tmp_path, experiment(search={"trials": 1, "seeds": 3}, part=PART), uneven)
    (table,) = build_report(tmp_path).tables
    assert table.contest is not None
    verdict = judge(table.contest)
    assert verdict.outcome is Outcome.TIED
    assert "better in 1 of 4 targets" in verdict.details[0]


def test_a_missing_target_makes_the_mean_partial_and_gives_no_lead(tmp_path: Path) -> None:
    def partly(entry: Planned) -> float:
        missing = entry.condition.target == "va" and entry.run.method == "cl-coral"
        return NotImplemented if missing else score(entry)

    filled(tmp_path, experiment(search={"trials": 1, "seeds": 2}, part=PART), partly)
    report = build_report(tmp_path)
    cell = row(report.tables[0], "cl-coral").cells[KEYS[0]]
    assert (cell.seeds, cell.seeds_planned, cell.whole) == (6, 8, False)
    assert report.tables[0].contest is not None
    verdict = judge(report.tables[0].contest)
    assert verdict.outcome is Outcome.ALONE
    assert "has run yet" in verdict.sentence
