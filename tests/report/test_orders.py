"""Several orders of the sources in one table."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from reporting import filled
from sweeping import experiment

from farshore.report.build import build_report
from farshore.report.table import Row, Table
from farshore.runs.plan.plan import Planned

SOURCES = ("cleveland", "hungarian", "switzerland")
PART = {"benchmarks": ["heart-hospitals"], "methods": ["er", "cl-coral"]}
KEYS = [f"heart-hospitals {kind}" for kind in ("mean", "worst", "difference")]


def score(entry: Planned) -> float:
    place = sorted(itertools.permutations(SOURCES)).index(entry.run.order or SOURCES)
    return 0.5 + 0.01 * place + (0.1 if entry.run.method == "cl-coral" else 0.0)


def row(table: Table, method: str) -> Row:
    return next(each for each in table.rows if each.key == method)


def test_many_orders_become_a_mean_a_worst_order_and_a_paired_difference(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part={**PART, "orders": ["all"]}), score)
    (table,) = build_report(tmp_path).tables
    assert [column.key for column in table.columns] == KEYS
    assert "mean over 6 orders" in table.columns[0].label
    mean, worst, difference = (row(table, "cl-coral").cells[key] for key in KEYS)
    assert mean.mean == pytest.approx(62.5)
    assert mean.error == pytest.approx(math.sqrt(17.5 / 5) / math.sqrt(6))
    assert (mean.seeds, mean.seeds_planned, mean.whole) == (12, 12, True)
    assert worst.mean == pytest.approx(60.0)
    assert difference.mean == pytest.approx(10.0)
    assert difference.error == pytest.approx(0.0, abs=1e-9)
    assert KEYS[2] not in row(table, "er").cells
    assert not table.ranked
    assert any("Differences are paired" in note for note in table.notes)


def test_few_orders_keep_their_columns_and_missing_runs_are_counted(tmp_path: Path) -> None:
    def partly(entry: Planned) -> float:
        skipped = entry.run.method == "er" and entry.condition.order == "reversed"
        return NotImplemented if skipped else score(entry)

    orders = ["listed", "reversed", "random1"]
    filled(tmp_path, experiment(part={**PART, "orders": orders}), partly)
    (table,) = build_report(tmp_path).tables
    assert [column.key for column in table.columns] == [
        *KEYS,
        "heart-hospitals",
        "heart-hospitals reversed",
        "heart-hospitals random1",
    ]
    cell = row(table, "er").cells[KEYS[0]]
    assert (cell.seeds, cell.seeds_planned, cell.whole) == (4, 6, False)


def test_a_single_order_is_named_as_such(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part=PART), score)
    (table,) = build_report(tmp_path).tables
    assert [column.key for column in table.columns] == ["heart-hospitals"]
    assert any(note.startswith("One order of the sources.") for note in table.notes)
