"""Reports of runs without a plan, of a changed plan and of several versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from reporting import BOTH, VERSIONS, filled, only, result, row, steady, write
from sweeping import EXPERIMENTS, experiment

from farshore.report.build import build_report
from farshore.results.tables import CellStatus
from farshore.runs.plan.experiment import make_book
from farshore.runs.run import Run
from farshore.runs.store.store import record_experiment


def test_mixed_versions_are_a_problem(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    first = plan.runs[0]
    write(tmp_path, result(first.run, 0.5, versions={**VERSIONS, "farshore": "0.0.9"}), first)
    report = build_report(tmp_path)
    assert any(
        "several versions of farshore (0.0.9: 1 run, 0.1.0: 39 runs)" in text
        for text in report.problems
    )


def add_older(runs: Path, name: str, copy: str) -> None:
    """A copy of a run that an older version of its method made."""
    shutil.copytree(runs / name, runs / copy)
    config = json.loads((runs / copy / "config.json").read_text())
    config["named_by"]["results_versions"]["method"] = 0
    (runs / copy / "config.json").write_text(json.dumps(config))


def test_runs_of_an_older_results_version_are_in_no_table(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    add_older(tmp_path, plan.runs[0].name, "0123456789abcdef")
    report = build_report(tmp_path)
    assert any(
        "1 run (1 of finetune) of an older results version than the installed farshore" in text
        for text in report.problems
    )
    assert only(report).whole


def test_runs_of_a_changed_experiment_are_a_problem(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part=BOTH, search={"trials": 3, "seeds": 2}), steady)
    record_experiment(experiment(part=BOTH), tmp_path, make_book(EXPERIMENTS / "none.yaml"))
    report = build_report(tmp_path)
    assert only(report).whole
    assert any(
        "20 runs" in text and "belong to no recorded plan" in text for text in report.problems
    )


def test_two_results_versions_without_a_plan(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady, record=False)
    for number, run in enumerate(plan.runs[:2]):
        add_older(tmp_path, run.name, f"{number:016x}")
    report = build_report(tmp_path)
    assert any("older results version than others" in text for text in report.problems)
    assert only(report).whole


def test_unplanned_runs_get_a_table_that_names_the_missing_plan(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda planned: (
            NotImplemented if planned.run.method == "er" and planned.seed else steady(planned)
        ),
        record=False,
    )
    report = build_report(tmp_path)
    table = only(report)
    assert table.name == "toy"
    assert table.title == "Toy: runs without a plan (partial)"
    assert "What was planned is not recorded" in table.remarks[0]
    assert row(table, "cl-coral").cells["heart-hospitals"].mean == pytest.approx(70.5)
    cell = row(table, "er").cells["heart-hospitals"]
    assert (cell.status, cell.notes) == (CellStatus.PARTIAL, ("1 of 2 runs",))


def test_unplanned_runs_under_two_conditions_are_separate_rows(tmp_path: Path) -> None:
    for memory in (10, 20):
        for seed in (0, 1):
            write(
                tmp_path,
                result(
                    Run(benchmark="heart-hospitals", method="er", memory=memory, seed=seed),
                    0.5 + memory / 100,
                ),
            )
    table = only(build_report(tmp_path))
    assert {each.variant: round(each.cells["heart-hospitals"].mean) for each in table.rows} == {
        "memory 10": 60,
        "memory 20": 70,
    }


def test_settings_of_single_runs_are_separate_rows_not_trials(tmp_path: Path) -> None:
    for batch_size, score in ((8, 0.6), (16, 0.7)):
        run = Run(benchmark="heart-hospitals", method="er", settings={"batch_size": batch_size})
        write(tmp_path, result(run, score))
    table = only(build_report(tmp_path))
    assert {each.variant: round(each.cells["heart-hospitals"].mean) for each in table.rows} == {
        "batch_size 8": 60,
        "batch_size 16": 70,
    }
    assert table.about.endswith(": one run per cell.")


@pytest.mark.parametrize("file", ["", "result.json"])
def test_a_single_run_has_a_table_of_one_row(file: str, tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    chosen = next(each for each in plan.runs if each.run.method == "cl-coral" and each.seed == 1)
    report = build_report(tmp_path / chosen.name / file)
    table = only(report)
    assert report.problems == ()
    assert (len(table.rows), len(table.columns), table.whole) == (1, 1, True)
    cell = table.rows[0].cells[chosen.run.benchmark]
    assert (cell.mean, cell.notes) == (pytest.approx(71), ())
    assert table.title == f"cl-coral on {chosen.run.benchmark}"
    assert table.about == f"Score on the unseen target (%) of a single run, seed {chosen.run.seed}."
    assert sum(line.startswith("farshore run ") for line in report.provenance.commands) == 1


def test_a_single_run_with_a_held_out_source_is_shown_although_it_only_judges(
    tmp_path: Path,
) -> None:
    part = {"benchmarks": ["heart-hospitals"], "methods": ["er"]}
    plan = filled(tmp_path, experiment(selection="leave-one-source-out", part=part), steady)
    judging = next(each for each in plan.runs if each.held_out)
    report = build_report(tmp_path / judging.name)
    assert only(report).rows[0].cells["heart-hospitals"].mean == pytest.approx(60)
