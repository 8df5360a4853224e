"""Reports of runs that are missing, damaged, diverged or stopped early."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from reporting import BOTH, filled, only, result, row, steady, write
from sweeping import experiment

from farshore.errors import FarshoreError
from farshore.report.build import build_report
from farshore.report.table import Over, Status
from farshore.runs.plan.experiment import make_book
from farshore.runs.plan.plan import Planned
from farshore.runs.plan.record import record_experiment
from farshore.runs.store.read_once import NAMED


def test_missing_and_partial_cells_are_marked_in_cells_and_title(tmp_path: Path) -> None:
    def score(planned: Planned) -> float | None:
        run = planned.run
        if run.method == "er" and planned.seed == 1:
            return NotImplemented
        if run.method == "cl-coral" and run.benchmark == "rotated-digits":
            return NotImplemented
        if run.method == "finetune" and planned.trial == 1:
            return NotImplemented
        return steady(planned)

    filled(tmp_path, experiment(part=BOTH), score)
    table = only(build_report(tmp_path))
    assert not table.whole
    assert table.title == "A toy (partial)"
    fewer_seeds = row(table, "er").cells["heart-hospitals"]
    assert (fewer_seeds.status, fewer_seeds.seeds) == (Status.PARTIAL, 1)
    fewer_trials = row(table, "finetune").cells["heart-hospitals"]
    assert (fewer_trials.status, fewer_trials.seeds, fewer_trials.trials) == (Status.PARTIAL, 2, 1)
    missing = row(table, "cl-coral").cells["rotated-digits"]
    assert (missing.mean, missing.status, missing.whole) == (None, Status.MISSING, False)
    assert not row(table, "cl-coral").ranked
    assert row(table, "cl-coral").average.over == Over(1, 2)
    assert table.unranked == ("★-CL-CORAL",)
    assert row(table, "urm").cells["heart-hospitals"].whole


def test_diverged_seeds_are_counted(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda planned: None if planned.run.method == "er" and planned.seed else steady(planned),
    )
    table = only(build_report(tmp_path))
    cell = row(table, "er").cells["heart-hospitals"]
    assert (cell.status, cell.diverged, cell.seeds) == (Status.DIVERGED, 1, 1)
    assert not cell.whole
    assert (table.diverged, table.partial) == (True, False)
    assert "with diverged runs" in table.title
    assert "partial" not in table.title


def test_a_method_that_always_diverges_has_a_row_and_no_number(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda planned: None if planned.run.method == "er" else steady(planned),
    )
    cell = row(only(build_report(tmp_path)), "er").cells["heart-hospitals"]
    assert (cell.mean, cell.status, cell.diverged) == (None, Status.DIVERGED, 2)


def test_seeds_whose_trials_were_all_stopped_early_are_counted(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    for each in plan.runs:
        if each.run.method == "er" and each.seed == 0:
            stopped = result(each.run, None).model_copy(update={"status": "pruned"})
            write(tmp_path, stopped, each)
    table = only(build_report(tmp_path))
    cell = row(table, "er").cells["heart-hospitals"]
    assert (cell.status, cell.pruned, cell.diverged, cell.seeds) == (Status.PRUNED, 1, 0, 1)
    assert (table.pruned, table.diverged, table.partial) == (True, False, False)


def test_an_undefined_measure_is_not_a_divergence(tmp_path: Path) -> None:
    part = {"benchmarks": ["rotated-digits"], "methods": ["finetune", "urm"]}
    plan = filled(tmp_path, experiment(name="main", part=part), steady)
    for each in plan.runs:
        if each.run.method == "urm":
            write(
                tmp_path,
                result(each.run, 0.8, matrices={"train": [[0.5]], "validation": [[0.5]]}),
                each,
            )
    toy = experiment(name="bwt", parts=[], reads=["main"], table="backward transfer")
    record_experiment(toy, tmp_path, make_book(tmp_path / "experiments" / "none.yaml"))
    table = next(each for each in build_report(tmp_path).tables if each.name == "bwt")
    assert row(table, "urm").cells["rotated-digits"].status is Status.UNDEFINED
    assert table.whole
    assert table.unit == "points"


def test_a_missing_data_set_is_a_problem(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda planned: (
            NotImplemented if planned.run.benchmark == "rotated-digits" else steady(planned)
        ),
    )
    report = build_report(tmp_path)
    assert only(report).lacking_columns == ("Rotated digits",)
    assert report.problems == ("toy: Nothing has run on Rotated digits.",)
    assert "partial" in only(report).title
    assert [column.key for column in only(report).columns] == ["heart-hospitals"]


def test_a_damaged_run_is_named_and_counts_as_missing(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    name = plan.runs[0].name
    (tmp_path / name / "result.json").write_text("{")
    report = build_report(tmp_path)
    assert len(report.problems) == 1
    assert name in report.problems[0]
    assert "is damaged" in report.problems[0]
    assert not only(report).whole


def test_of_many_damaged_runs_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    names = {each.name for each in plan.runs}
    for name in names:
        (tmp_path / name / "result.sha256").unlink()
    # One checksum that can be read but is wrong.
    (tmp_path / plan.runs[0].name / "result.sha256").write_text("x")
    report = build_report(tmp_path)
    assert len(names) > NAMED
    assert (
        sum(
            "result.sha256 cannot be read" in line or "is damaged" in line
            for line in report.problems
        )
        == NAMED
    )
    assert (
        f"{len(names) - NAMED} more results cannot be read and also count as missing"
        in report.problems
    )


def test_a_folder_without_runs_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(FarshoreError, match="contains no finished run"):
        build_report(tmp_path)
    with pytest.raises(FarshoreError, match="there is no folder"):
        build_report(tmp_path / "nowhere")
    (tmp_path / "anything.json").write_text("{}")
    with pytest.raises(FarshoreError, match="contains no runs: give a folder") as error:
        build_report(tmp_path / "anything.json")
    assert "\n" not in str(error.value)


def test_an_experiment_without_runs_is_a_problem(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part=BOTH), lambda planned: NotImplemented)
    report = build_report(tmp_path)
    assert report.tables == ()
    assert "none of its runs has finished" in report.problems[0]


def test_selection_that_leaves_sources_out_needs_all_its_runs(tmp_path: Path) -> None:
    part = {"benchmarks": ["heart-hospitals"], "methods": ["er"]}

    def score(planned: Planned) -> float | None:
        if planned.held_out == "hungarian" and planned.trial == 1 and planned.seed == 0:
            return NotImplemented
        return 0.9 if planned.trial == 1 else 0.4

    filled(tmp_path, experiment(selection="leave-one-source-out", part=part), score)
    cell = row(only(build_report(tmp_path)), "er").cells["heart-hospitals"]
    assert cell.values == pytest.approx((40, 90))
    assert (cell.status, cell.trials) == (Status.PARTIAL, 1)


def test_the_next_command_sweeps_the_file_that_is_recorded_with_the_runs(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    (tmp_path / plan.runs[0].name / "result.json").unlink()
    words = shlex.split(build_report(tmp_path).next_command)
    assert words[:2] == ["farshore", "sweep"]
    assert Path(words[2]).is_file()
    assert words[3:] == ["--runs", str(tmp_path)]
