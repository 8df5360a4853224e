"""Several orders of the sources, or every domain as the target in turn, in one table."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from reporting import filled, only, row
from sweeping import experiment

from farshore.report.build import Section, build_report
from farshore.results.verdict import Outcome, Verdict
from farshore.runs.plan.plan import Planned

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
PART = {"benchmarks": ["heart-hospitals"], "methods": ["er", "cl-coral"]}
EACH = {**PART, "target": "each"}
# Columns of every table of one data set with several units.
KEYS = ["heart-hospitals", "rank", "difference", "worst"]
ONE_ORDER = "One order of the sources. Another order may change the scores"
# cl-coral minus er at each hospital.
GAINS = (0.04, 0.06, 0.05, 0.05)


def by_order(entry: Planned) -> float:
    places = sorted(itertools.permutations(HOSPITALS[:3]))
    place = places.index(entry.run.order or HOSPITALS[:3])
    return 0.5 + 0.01 * place + (0.1 if entry.run.method == "cl-coral" else 0.0)


def by_target(entry: Planned) -> float:
    place = HOSPITALS.index(entry.condition.target)
    gain = GAINS[place] if entry.run.method == "cl-coral" else 0.0
    return 0.4 + 0.1 * place + gain + 0.001 * (entry.seed % 2)


def judged(section: Section) -> Verdict:
    assert section.verdict is not None
    return section.verdict


def test_many_orders_become_a_mean_over_last_sources_a_worst_one_and_a_difference(
    tmp_path: Path,
) -> None:
    filled(tmp_path, experiment(part={**PART, "orders": ["all"]}), by_order)
    (section,) = build_report(tmp_path).sections
    table = section.table
    assert [column.key for column in table.columns] == KEYS
    assert table.columns[0].label == "heart-hospitals, mean over 3 last sources"
    mean, rank, difference, worst = (row(table, "cl-coral").cells[key] for key in KEYS)
    # The orders end at switzerland (places 0 and 2), hungarian (1 and 4) and cleveland (3 and 5).
    assert mean.values == pytest.approx({"switzerland": 61, "hungarian": 62.5, "cleveland": 64})
    assert mean.mean == pytest.approx(62.5)
    assert mean.error == pytest.approx(1.5 / math.sqrt(3))
    assert (mean.counts.done, mean.counts.planned, mean.status) == (12, 12, "done")
    assert (worst.mean, worst.at) == (pytest.approx(61), "switzerland")
    assert difference.mean == pytest.approx(10.0)
    assert (difference.low, difference.high) == (pytest.approx(10), pytest.approx(10))
    assert rank.mean == 1
    assert "difference" not in row(table, "er").cells
    assert table.remarks[-1] == (
        "Intervals are over last sources at one target: these are all 6 orders, not a sample of "
        "them, and not new targets."
    )
    assert not any(text.startswith(ONE_ORDER) for text in table.remarks)
    assert "over 6 orders of the sources (3 last sources)" in judged(section).sentence


def test_few_orders_keep_their_columns_and_missing_runs_are_counted(tmp_path: Path) -> None:
    def partly(entry: Planned) -> float:
        skipped = entry.run.method == "er" and entry.condition.order == "reversed"
        return NotImplemented if skipped else by_order(entry)

    orders = ["listed", "reversed", "random1"]
    filled(tmp_path, experiment(part={**PART, "orders": orders}), partly)
    (section,) = build_report(tmp_path).sections
    table = section.table
    of_orders = [column for column in table.columns if column.key.startswith("order ")]
    assert [column.label for column in of_orders][:2] == [
        "cleveland → hungarian → switzerland",
        "switzerland → hungarian → cleveland",
    ]
    assert len(of_orders) == 3
    cell = row(table, "er").cells["heart-hospitals"]
    assert (cell.counts.done, cell.counts.planned, cell.status) == (4, 6, "partial")
    missing = row(table, "er").cells[of_orders[1].key]
    assert (missing.mean, missing.status) == (None, "missing")
    assert "rank" not in row(table, "er").cells
    assert judged(section).outcome is Outcome.ALONE


@pytest.mark.parametrize("benchmarks", [["heart-hospitals"], ["heart-hospitals", "rotated-digits"]])
def test_a_single_order_is_named_as_such(tmp_path: Path, benchmarks: list[str]) -> None:
    filled(tmp_path, experiment(part={**PART, "benchmarks": benchmarks}), lambda entry: 0.5)
    table = only(build_report(tmp_path))
    assert [column.key for column in table.columns if column.kind == "score"] == benchmarks[::-1]
    assert not any(column.key == "worst" for column in table.columns)
    assert table.remarks[-1].startswith(ONE_ORDER)


@pytest.mark.parametrize("orders", [["listed"], ["balanced:3"]])
def test_means_errors_and_differences_are_taken_over_targets(
    tmp_path: Path, orders: list[str]
) -> None:
    seeds = {"trials": 1, "seeds": 4}
    filled(tmp_path, experiment(search=seeds, part={**EACH, "orders": orders}), by_target)
    (section,) = build_report(tmp_path).sections
    table = section.table
    targets = [f"target {name}" for name in HOSPITALS]
    assert [column.key for column in table.columns] == [*KEYS, *targets]
    assert table.columns[0].label == "heart-hospitals, mean over 4 targets"
    mean, _, difference, worst = (row(table, "cl-coral").cells[key] for key in KEYS)
    runs = 16 if orders == ["listed"] else 48
    assert (mean.counts.done, mean.counts.planned, mean.status) == (runs, runs, "done")
    assert mean.mean == pytest.approx(60.05)
    # The means of the hospitals are 44.05, 56.05, 65.05 and 75.05: deviation 13.19, over 2.
    assert mean.error == pytest.approx(6.595, abs=0.01)
    assert (worst.mean, worst.at) == (pytest.approx(44.05), "cleveland")
    assert difference.mean == pytest.approx(5.0)
    # Student's t for 3 degrees, deviation 0.8165, over the root of 4 targets.
    half = 3.18245 * 0.81650 / 2
    assert (difference.low, difference.high) == pytest.approx((5 - half, 5 + half), abs=1e-3)
    assert row(table, "er").cells[targets[0]].counts.done == runs // 4
    assert any("each target counts once" in text for text in table.remarks)
    verdict = judged(section)
    assert verdict.outcome is Outcome.CLEAR
    assert "over 4 unseen targets: 60.1%" in verdict.sentence
    assert "cl-coral minus er, paired by target, order and seed: +5.0 points" in verdict.details[1]
    assert verdict.recommendation is not None
    assert verdict.recommendation.method == "cl-coral"


def test_a_lead_that_depends_on_the_target_is_not_certain(tmp_path: Path) -> None:
    def uneven(entry: Planned) -> float:
        at_va = entry.condition.target == "va" and entry.run.method == "cl-coral"
        return 0.9 if at_va else 0.5

    filled(tmp_path, experiment(search={"trials": 1, "seeds": 3}, part=EACH), uneven)
    (section,) = build_report(tmp_path).sections
    verdict = judged(section)
    assert verdict.outcome is Outcome.TIED
    assert "better in 1 of 4 targets" in verdict.details[1]
    assert verdict.recommendation is not None
    assert verdict.recommendation.method == "er"


def test_two_orders_are_no_reason_to_explain_intervals(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part={**PART, "orders": ["listed", "reversed"]}), by_order)
    table = only(build_report(tmp_path))
    assert "mean over 2 last sources" in table.about
    assert table.remarks == ()


def test_a_missing_target_makes_the_mean_partial_and_gives_no_lead(tmp_path: Path) -> None:
    def partly(entry: Planned) -> float:
        missing = entry.condition.target == "va" and entry.run.method == "cl-coral"
        return NotImplemented if missing else by_target(entry)

    filled(tmp_path, experiment(search={"trials": 1, "seeds": 2}, part=EACH), partly)
    (section,) = build_report(tmp_path).sections
    cell = row(section.table, "cl-coral").cells["heart-hospitals"]
    assert (cell.counts.done, cell.counts.planned, cell.status) == (6, 8, "partial")
    assert judged(section).outcome is Outcome.ALONE
    assert judged(section).sentence.endswith("Not everything that was planned has run yet.")
