"""Tables that show runs of other experiments: `reads`, `beside` and `naive and tailored`."""

from __future__ import annotations

from pathlib import Path

import pytest
from reporting import filled, row, steady
from sweeping import experiment

from farshore.report.build import build_report
from farshore.results.tables import Table
from farshore.runs.plan.experiment import make_book
from farshore.runs.store.store import record_experiment

PART = {"benchmarks": ["rotated-mnist", "covertype"], "methods": ["finetune", "cl-coral"]}


def tables(runs: Path, only: str | None = None) -> dict[str, Table]:
    return {table.name: table for table in build_report(runs, experiment=only).tables}


def record_reading(runs: Path, *names: str) -> None:
    book = make_book(runs / "experiments" / "none.yaml")
    for name in names:
        reading = experiment(name=name.replace(" ", "_"), parts=[], reads=["main", "naive"])
        record_experiment(reading.model_copy(update={"table": name}), runs, book)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    filled(tmp_path, experiment(name="main", part=PART), steady)
    naive = {**PART, "methods": ["naive-cl-coral", "finetune", "er-ace"]}
    filled(tmp_path, experiment(name="naive", part=naive), steady)
    return tmp_path


def test_tables_that_read_others(runs: Path) -> None:
    record_reading(
        runs, "backward transfer", "source performance", "run time", "naive and tailored"
    )
    shown = tables(runs)
    assert set(shown) == {
        *("main", "naive", "backward_transfer", "source_performance", "run_time"),
        "naive_and_tailored",
    }
    times = shown["run_time"]
    assert (times.unit, times.higher_is_better) == ("minutes", False)
    # Rows of both; finetune, which both have, counts once.
    assert {each.row for each in times.rows} == {"finetune", "cl-coral", "naive-cl-coral", "er-ace"}
    assert row(times, "er-ace").cells["covertype"].mean == pytest.approx(1)
    assert row(times, "finetune").cells["covertype"].counts.done == 2
    assert "each with the best of 2 trials, selected by source-validation" in times.about
    of_source = row(shown["source_performance"], "cl-coral").cells
    assert of_source["covertype"].mean == pytest.approx(50)
    assert row(shown["backward_transfer"], "cl-coral").cells["covertype"].mean == 0
    assert {each.row for each in shown["naive_and_tailored"].rows} == {
        "finetune",
        "cl-coral",
        "naive-cl-coral",
    }
    assert all(table.whole for table in shown.values())


def test_one_table_that_reads_others_is_shown_without_theirs(runs: Path) -> None:
    record_reading(runs, "run time")
    assert set(tables(runs, "run_time")) == {"run_time"}
    report = build_report(runs, experiment="run_time")
    assert dict(report.provenance.facts)["runs"].startswith("32;")
    assert report.problems == ()


def test_a_table_of_others_that_have_not_run_is_a_problem(runs: Path) -> None:
    for folder in runs.glob("*/result.json"):
        folder.unlink()
    other = {"benchmarks": ["heart-hospitals"], "methods": ["si"]}
    filled(runs, experiment(name="other", part=other), steady)
    record_reading(runs, "run time")
    report = build_report(runs)
    assert [table.name for table in report.tables] == ["other"]
    assert report.problems == tuple(
        f"{name} has no table because none of its runs has finished"
        for name in ("main", "naive", "run_time")
    )


def test_a_table_of_others_that_cannot_be_planned_is_a_problem(tmp_path: Path) -> None:
    wrong = experiment(name="main", part={**PART, "target": "nowhere"})
    book = make_book(tmp_path / "experiments" / "none.yaml")
    for each in (wrong, wrong.model_copy(update={"name": "naive"})):
        record_experiment(each, tmp_path, book)
    record_reading(tmp_path, "run time")
    report = build_report(tmp_path)
    assert report.tables == []
    assert [text.split(" because")[0] for text in report.problems] == [
        *(f"{name} has no table" for name in ("main", "naive", "run_time"))
    ]


@pytest.mark.parametrize("only", [None, "no_alignment"])
def test_rows_of_another_experiment_stand_beside_an_ablation(
    tmp_path: Path, only: str | None
) -> None:
    part = {**PART, "methods": ["cl-coral"]}
    filled(tmp_path, experiment(name="main", part=PART), steady)
    beside = [{"experiment": "main", "methods": ["tailored"], "variant": "with alignment"}]
    ablated = experiment(
        name="no_alignment",
        part={**part, "settings": {"alignment_weight": 0.0}},
        beside=beside,
    )
    filled(tmp_path, ablated, lambda planned: 0.3)
    table = tables(tmp_path, only)["no_alignment"]
    assert {each.row: each.cells["covertype"].mean for each in table.rows} == {
        "cl-coral": pytest.approx(30),
        "cl-coral (with alignment)": pytest.approx(70.5),
    }
    assert [(each.method, each.variant) for each in table.rows] == [
        ("cl-coral", "with alignment"),
        ("cl-coral", ""),
    ]
    assert [each.cells["average"].place for each in table.rows] == [1, 2]


def test_an_experiment_beside_which_nothing_is_recorded_has_its_own_rows(tmp_path: Path) -> None:
    beside = [{"experiment": "main", "methods": ["all"], "variant": "as in main"}]
    alone = experiment(name="alone", part=PART, beside=beside)
    filled(tmp_path, alone, steady)
    assert {each.row for each in tables(tmp_path)["alone"].rows} == {"finetune", "cl-coral"}
