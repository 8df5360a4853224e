"""Reports of runs that are missing, damaged, diverged or stopped early."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from reporting import BOTH, filled, only, result, row, steady, write
from sweeping import experiment

from farshore.errors import FarshoreError
from farshore.report.build import build_report
from farshore.results.tables import CellStatus
from farshore.runs.plan.experiment import make_book
from farshore.runs.plan.plan import Planned
from farshore.runs.store.store import NAMED, record_experiment


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
    report = build_report(tmp_path)
    table = only(report)
    assert not table.whole
    assert table.title == "A toy (partial)"
    fewer_seeds = row(table, "er").cells["heart-hospitals"]
    assert (fewer_seeds.status, fewer_seeds.counts.done) == (CellStatus.PARTIAL, 1)
    assert fewer_seeds.notes == ("1 of 2 runs",)
    fewer_trials = row(table, "finetune").cells["heart-hospitals"]
    assert (fewer_trials.status, fewer_trials.counts.done) == (CellStatus.PARTIAL, 2)
    assert fewer_trials.notes == ("1 of 2 trials",)
    coral = row(table, "cl-coral")
    missing = coral.cells["rotated-digits"]
    assert (missing.mean, missing.status, missing.notes) == (None, CellStatus.MISSING, ("missing",))
    assert coral.cells["average"].status is CellStatus.PARTIAL
    assert coral.cells["average"].notes == ("complete on 1 of 2 data sets",)
    assert "rank mean" not in coral.cells
    assert not any(cell.place for cell in coral.cells.values())
    assert row(table, "urm").cells["heart-hospitals"].status is CellStatus.DONE
    assert report.sections[0].verdict is not None
    assert (
        "Not ranked because some scores are missing: cl-coral (2 of 4 runs) and er (2 of 4 runs)."
        in report.sections[0].verdict.details
    )


def test_diverged_seeds_are_counted(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda planned: None if planned.run.method == "er" and planned.seed else steady(planned),
    )
    table = only(build_report(tmp_path))
    cell = row(table, "er").cells["heart-hospitals"]
    assert (cell.counts.diverged, cell.counts.done, cell.status) == (1, 1, CellStatus.PARTIAL)
    assert cell.notes == ("diverged: 1 of 2 runs",)
    assert not table.whole
    assert table.title == "A toy (with diverged runs)"


def test_a_method_that_always_diverges_has_a_row_and_no_number(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda planned: None if planned.run.method == "er" else steady(planned),
    )
    of_er = row(only(build_report(tmp_path)), "er")
    cell = of_er.cells["heart-hospitals"]
    assert (cell.mean, cell.status, cell.counts.diverged) == (None, CellStatus.DIVERGED, 2)
    assert cell.notes == ("diverged: 2 of 2 runs",)
    assert set(of_er.cells) == {"rotated-digits", "heart-hospitals"}


def test_seeds_whose_trials_were_all_stopped_early_are_counted(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    for each in plan.runs:
        if each.run.method == "er" and each.seed == 0:
            stopped = result(each.run, None).model_copy(update={"status": "pruned"})
            write(tmp_path, stopped, each)
    table = only(build_report(tmp_path))
    cell = row(table, "er").cells["heart-hospitals"]
    assert (cell.counts.pruned, cell.counts.diverged, cell.counts.done) == (1, 0, 1)
    assert cell.notes == ("stopped early: 1 of 2 runs",)
    assert (table.title, table.whole) == ("A toy (with runs stopped early)", False)


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
    cell = row(table, "urm").cells["rotated-digits"]
    assert (cell.status, cell.notes) == (CellStatus.UNDEFINED, ("not defined",))
    assert (table.whole, table.title, table.unit) == (True, "A toy", "points")


def test_a_missing_data_set_is_a_problem(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda planned: (
            NotImplemented if planned.run.benchmark == "rotated-digits" else steady(planned)
        ),
    )
    report = build_report(tmp_path)
    table = only(report)
    assert table.absent == ("rotated-digits",)
    assert report.problems == ("toy: Nothing has run on rotated-digits.",)
    assert table.remarks[0] == "Nothing has run on rotated-digits."
    assert (table.title, table.whole) == ("A toy (partial)", False)
    # With one data set, the table has no average; its methods are ranked over the seeds.
    assert [column.key for column in table.columns] == ["heart-hospitals", "rank", "difference"]


def test_data_sets_whose_data_are_not_there_are_a_problem(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("site,label\na,0\nb,1\nc,0\n")
    options = {"path": str(own), "domain": "site", "label": "label"}
    parts = [
        {"benchmarks": [{"table": options}], "methods": ["er", "finetune"], "target": "c"},
        {"benchmarks": ["heart-hospitals"], "methods": ["er", "finetune"]},
    ]
    toy = experiment(parts=parts, search={"trials": 1, "seeds": 1})
    filled(tmp_path / "runs", toy, steady)
    own.unlink()
    report = build_report(tmp_path / "runs")
    assert only(report).absent == ("own.csv",)
    assert "toy: Nothing has run on own.csv." in report.problems


def test_a_method_that_has_not_run_is_named(tmp_path: Path) -> None:
    skipped = ("urm", "er")
    filled(
        tmp_path,
        experiment(part=BOTH),
        lambda each: NotImplemented if each.run.method in skipped else steady(each),
    )
    table = only(build_report(tmp_path))
    assert [each.row for each in table.rows] == ["cl-coral", "finetune", "tent"]
    assert table.remarks[0] == "Nothing has run for er and urm."
    assert table.title == "A toy (partial)"


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
    """It has no table; beside runs of others, the report says so."""
    filled(tmp_path, experiment(part=BOTH), lambda planned: NotImplemented)
    with pytest.raises(FarshoreError, match="contains no finished run"):
        build_report(tmp_path)
    filled(tmp_path, experiment(name="other", part={"methods": ["si"]}), steady)
    report = build_report(tmp_path)
    assert only(report).name == "other"
    assert report.problems == ("toy has no table because none of its runs has finished",)


def test_an_experiment_that_cannot_be_planned_is_a_problem(tmp_path: Path) -> None:
    filled(tmp_path, experiment(name="main", part={"methods": ["er"]}), steady)
    reading = experiment(name="times", parts=[], reads=["main"], table="step time")
    record_experiment(reading, tmp_path, make_book(tmp_path / "experiments" / "none.yaml"))
    (tmp_path / "experiments" / "main.yaml").unlink()
    report = build_report(tmp_path)
    (problem,) = report.problems
    assert problem.startswith("times has no table because it cannot be planned: ")
    assert [table.name for table in report.tables] == ["main"]  # of runs without a plan


def test_selection_that_leaves_sources_out_needs_all_its_runs(tmp_path: Path) -> None:
    part = {"benchmarks": ["heart-hospitals"], "methods": ["er"]}

    def score(planned: Planned) -> float | None:
        if planned.held_out == "hungarian" and planned.trial == 1 and planned.seed == 0:
            return NotImplemented
        return 0.9 if planned.trial == 1 else 0.4

    filled(tmp_path, experiment(selection="leave-one-source-out", part=part), score)
    cell = row(only(build_report(tmp_path)), "er").cells["heart-hospitals"]
    assert list(cell.values.values()) == pytest.approx((40, 90))
    assert (cell.status, cell.counts.trials) == (CellStatus.PARTIAL, 1)


def test_the_next_command_sweeps_the_file_that_is_recorded_with_the_runs(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    (tmp_path / plan.runs[0].name / "result.json").unlink()
    words = shlex.split(build_report(tmp_path).next_command)
    assert words[:2] == ["farshore", "sweep"]
    assert Path(words[2]).is_file()
    assert words[3:] == ["--runs", str(tmp_path)]
