"""From folders to reports: planned, missing, damaged, diverged, pruned, generated, mixed runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from reporting import VERSIONS, filled, result, write
from sweeping import EXPERIMENTS, experiment, planned, swept

from farshore.errors import FarshoreError
from farshore.plan.comparison import make_comparison, record_comparison
from farshore.plan.experiment import make_book, read_experiment
from farshore.plan.plan import Planned, make_plan
from farshore.plan.record import TINY, record_experiment
from farshore.plan.tables import summary
from farshore.plan.tiny import tiny
from farshore.report.build import build_report
from farshore.report.overlay import NO_OVERLAY
from farshore.report.reading import NAMED
from farshore.report.table import Over, Report, Row, Status, Table
from farshore.run import Run
from farshore.store.ranking import rank
from farshore.store.store import Store

BOTH = {
    "benchmarks": ["heart-hospitals", "rotated-digits"],
    "methods": ["finetune", "er", "cl-coral", "urm", "tent"],
}
NUMBERS = {"finetune": 0.5, "er": 0.6, "cl-coral": 0.7, "urm": 0.8, "tent": 0.55}


def steady(planned: Planned) -> float:
    return NUMBERS.get(planned.run.method, 0.4) + 0.01 * planned.seed


def only(report: Report) -> Table:
    assert len(report.tables) == 1
    return report.tables[0]


def row(table: Table, key: str) -> Row:
    return next(each for each in table.rows if each.key == key)


def test_a_real_sweep_gives_the_numbers_of_its_summary(tmp_path: Path) -> None:
    toy = experiment()
    plan, _ = swept(toy, tmp_path)
    record_experiment(toy, tmp_path, make_book(EXPERIMENTS / "none.yaml"))
    table = only(build_report(tmp_path))
    assert table.whole
    assert "partial" not in table.title
    for line in summary(plan, Store(tmp_path)).to_dict("records"):
        cell = row(table, line["method"]).cells["heart-hospitals"]
        assert cell.mean == pytest.approx(100 * line["target_score_unseen"])
        assert cell.error == pytest.approx(100 * line["target_standard_error"])
        assert (cell.seeds, cell.trials, cell.whole, cell.paper) == (2, 2, True, None)


def test_kinds_are_separate_and_only_continual_methods_are_ranked(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part=BOTH), steady)
    report = build_report(tmp_path)
    table = only(report)
    assert report.problems == ()
    assert list(table.sections()) == ["continual", "offline", "adaptation"]
    assert {each.method: each.rank_arithmetic for each in table.rows} == {
        "finetune": 3,
        "er": 2,
        "cl-coral": 1,
        "urm": None,
        "tent": None,
    }
    coral = row(table, "cl-coral")
    assert coral.label == "★-CL-CORAL"
    assert coral.average.mean == pytest.approx(70.5)
    assert coral.difference_to_baseline == pytest.approx(20)
    assert [cell.place for cell in coral.cells.values()] == [1, 1]
    assert row(table, "urm").difference_to_baseline == pytest.approx(30)
    assert row(table, "urm").average.place is None
    assert [column.label for column in table.columns] == ["Rotated digits", "Heart hospitals"]
    assert table.significance is not None
    assert table.significance.methods == ("cl-coral", "er", "finetune")


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
    assert report.experiments == ()
    assert table.name == "toy"
    assert "What was planned is not recorded" in table.notes[0]
    assert row(table, "cl-coral").cells["heart-hospitals"].mean == pytest.approx(70.5)
    assert row(table, "er").cells["heart-hospitals"].status is Status.PARTIAL
    assert "partial" in table.title


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


@pytest.mark.parametrize("kind", ["generated", "published"])
def test_generated_data_are_named(kind: str, tmp_path: Path) -> None:
    part = {"benchmarks": ["cifar10-c"], "methods": ["er", "cl-coral"]}
    filled(
        tmp_path,
        experiment(part=part),
        steady,
        change={"data": {"set": "cifar10-c-seed-0", "corruptions": kind}},
    )
    table = only(build_report(tmp_path))
    generated = kind == "generated"
    assert table.columns[0].generated == generated
    assert row(table, "er").cells["cifar10-c"].generated == generated
    assert table.whole
    assert any("generated by farshore" in text for text in table.remarks) == generated


def test_a_part_of_the_data_is_named(tmp_path: Path) -> None:
    filled(
        tmp_path,
        experiment(part={"benchmarks": ["wm811k"], "methods": ["er"]}),
        steady,
        change={"data": {"set": "wm811k-seed-0", "part": "half of it"}},
    )
    table = only(build_report(tmp_path))
    assert row(table, "er").cells["wm811k"].part_of_the_data
    assert "WM811K: a part of the data (half of it)." in table.remarks


def test_the_main_table_next_to_the_papers_without_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path / "none"))
    main = read_experiment(EXPERIMENTS / "main.yaml")
    small = main.model_copy(
        update={"search": main.search.model_copy(update={"trials": 1, "seeds": 2})}
    )
    filled(tmp_path / "runs", small, lambda planned: 0.5 + 0.01 * planned.seed)
    table = only(build_report(tmp_path / "runs"))
    coral = row(table, "cl-coral")
    assert coral.cells["rotated-mnist"].paper == 72.8
    assert coral.cells["rotated-mnist"].paper_error == 2.6
    assert coral.cells["rotated-mnist"].difference == pytest.approx(50.5 - 72.8)
    assert coral.average.paper == 64.7
    assert coral.paper_ranks == (2.8, 2.1, 2.5)
    assert "covertype" not in row(table, "urm").cells
    assert table.whole
    assert any("The paper searched 20 trials for each of 3 seeds" in text for text in table.remarks)
    assert [column.metric for column in table.columns].count("macro_f1") == 1


def test_without_an_overlay_no_number_or_label_is_the_papers(tmp_path: Path) -> None:
    part = {"benchmarks": ["rotated-mnist", "covertype"], "methods": ["finetune", "cl-coral"]}
    filled(tmp_path, experiment(name="main", part=part), steady)
    other = {**part, "methods": ["cl-coral"], "settings": {"alignment_weight": 0.0}}
    filled(tmp_path, experiment(name="no_alignment", part=other), steady)
    report = build_report(tmp_path, NO_OVERLAY)
    assert not report.has_paper
    tables = {table.name: table for table in report.tables}
    assert [each.label for each in tables["main"].rows] == ["finetune", "cl-coral"]
    assert {column.label for column in tables["main"].columns} == {"rotated-mnist", "covertype"}
    assert [each.key for each in tables["no_alignment"].rows] == ["cl-coral"]
    assert not any("paper" in text.lower() for table in report.tables for text in table.notes)
    assert tables["main"].rows[1].difference_to_baseline == pytest.approx(20)


def test_an_experiment_chooses_its_measure(tmp_path: Path) -> None:
    toy = experiment(part=BOTH, table="step time")
    filled(tmp_path, toy, steady)
    table = only(build_report(tmp_path))
    assert (table.unit, table.higher_is_better, table.ranked) == ("ms", False, False)
    assert row(table, "er").cells["heart-hospitals"].mean == pytest.approx(2.0)
    named_like_it = tmp_path / "other"
    filled(named_like_it, experiment(name="step_time", part=BOTH), steady)
    assert only(build_report(named_like_it)).unit == "%"


def test_a_paper_average_is_over_the_same_data_sets(tmp_path: Path) -> None:
    part = {
        "benchmarks": ["rotated-mnist", "covertype", "wm811k"],
        "methods": ["finetune", "cl-coral"],
    }
    filled(
        tmp_path,
        experiment(name="main", part=part),
        lambda planned: NotImplemented if planned.run.benchmark == "wm811k" else steady(planned),
    )
    coral = row(only(build_report(tmp_path)), "cl-coral")
    assert coral.average.paper == pytest.approx((72.8 + 45.2) / 2)


def test_tables_that_read_others(tmp_path: Path) -> None:
    part = {"benchmarks": ["rotated-mnist", "covertype"], "methods": ["finetune", "cl-coral"]}
    filled(tmp_path, experiment(name="main", part=part), steady)
    filled(
        tmp_path,
        experiment(
            name="naive", part={**part, "methods": ["naive-cl-coral", "finetune", "er-ace"]}
        ),
        steady,
    )
    book = make_book(tmp_path / "experiments" / "none.yaml")
    for name in ("backward_transfer", "source", "runtime", "naive_vs_tailored"):
        record_experiment(read_experiment(EXPERIMENTS / f"{name}.yaml"), tmp_path, book)
    tables = {table.name: table for table in build_report(tmp_path).tables}
    assert set(tables) == {
        "main",
        "naive",
        "backward_transfer",
        "source",
        "runtime",
        "naive_vs_tailored",
    }
    assert tables["runtime"].unit == "minutes"
    assert not tables["runtime"].higher_is_better
    assert row(tables["runtime"], "er-ace").cells["covertype"].mean == pytest.approx(1)
    assert row(tables["runtime"], "finetune").cells["rotated-mnist"].paper == 53.7
    assert row(tables["source"], "cl-coral").cells["covertype"].mean == pytest.approx(50)
    assert row(tables["backward_transfer"], "cl-coral").cells["covertype"].mean == 0
    assert row(tables["backward_transfer"], "cl-coral").cells["covertype"].paper == 12.3
    assert [each.method for each in tables["naive_vs_tailored"].rows] == [
        "finetune",
        "cl-coral",
        "naive-cl-coral",
    ]
    assert row(tables["naive_vs_tailored"], "naive-cl-coral").cells["covertype"].paper == 8.0


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


def test_the_best_seed_alone_gives_no_ranks(tmp_path: Path) -> None:
    part = {"benchmarks": ["rotated-digits"], "methods": ["finetune", "cl-coral"]}
    filled(tmp_path, experiment(name="main", part=part), steady)
    book = make_book(tmp_path / "experiments" / "none.yaml")
    best = experiment(part={**part, "settings_from": "main", "best_seed": True})
    for each in make_plan(best, Store(tmp_path), book).runs:
        write(tmp_path, result(each.run, 0.5), each)
    record_experiment(best, tmp_path, book)
    report = build_report(tmp_path)
    assert [table.name for table in report.tables] == ["main", "toy"]
    assert report.title.startswith("2 tables of ")
    assert not any(each.ranked for each in report.tables[1].rows)


def test_rows_of_main_are_shown_with_an_ablation(tmp_path: Path) -> None:
    part = {"benchmarks": ["rotated-mnist", "covertype"], "methods": ["cl-coral"]}
    filled(tmp_path, experiment(name="main", part=part), steady)
    filled(
        tmp_path,
        experiment(name="no_alignment", part={**part, "settings": {"alignment_weight": 0.0}}),
        lambda planned: 0.3,
    )
    table = next(each for each in build_report(tmp_path).tables if each.name == "no_alignment")
    assert {each.key: each.cells["covertype"].paper for each in table.rows} == {
        "cl-coral": 37.5,
        "cl-coral with alignment": 45.2,
    }


def test_orders_are_columns_without_ranks(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part={**BOTH, "orders": ["listed", "reversed"]}), steady)
    table = only(build_report(tmp_path))
    assert [column.key for column in table.columns] == [
        "rotated-digits",
        "rotated-digits reversed",
        "heart-hospitals",
        "heart-hospitals reversed",
    ]
    assert not any(each.ranked for each in table.rows)
    assert table.significance is None


def test_varied_settings_are_rows(tmp_path: Path) -> None:
    part = {"benchmarks": ["heart-hospitals"], "methods": ["cl-coral"]}
    filled(tmp_path, experiment(name="main", part=part), steady)
    varied = experiment(
        part={
            **part,
            "settings_from": "main",
            "best_seed": True,
            "vary": ["penalty_weight"],
            "values": 3,
        }
    )
    record_experiment(varied, tmp_path, make_book(tmp_path / "experiments" / "none.yaml"))
    for each in make_plan(
        varied, Store(tmp_path), make_book(tmp_path / "experiments" / "none.yaml")
    ).runs:
        write(tmp_path, result(each.run, 0.5), each)
    table = next(each for each in build_report(tmp_path).tables if each.name == "toy")
    assert len(table.rows) == 3
    assert all(each.variant.startswith("penalty_weight = ") for each in table.rows)
    assert table.rows[0].average is None


def test_parts_with_the_same_method_are_distinguished(tmp_path: Path) -> None:
    parts = [
        {"benchmarks": ["heart-hospitals"], "methods": ["er"], "memory": memory}
        for memory in (20, 40)
    ]
    filled(tmp_path, experiment(parts=parts), lambda planned: planned.run.memory / 100)
    table = only(build_report(tmp_path))
    assert {each.variant: each.cells["heart-hospitals"].mean for each in table.rows} == {
        "": 20,
        "memory 40": 40,
    }


def test_tiny_runs_are_marked_as_meaningless(tmp_path: Path) -> None:
    book = make_book(EXPERIMENTS / "main.yaml", tiny)
    toy = tiny(read_experiment(EXPERIMENTS / "main.yaml"))
    for each in planned(toy, tmp_path).unique().values():
        write(tmp_path, result(each.run, steady(each)), each, "main")
    record_experiment(toy, tmp_path, book, ending=TINY)
    table = only(build_report(tmp_path))
    assert table.name == "main.tiny"
    assert "numbers mean nothing" in table.notes[0]
    assert not table.has_paper


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


def test_settings_of_single_runs_are_separate_rows_not_trials(tmp_path: Path) -> None:
    for batch_size, score in ((8, 0.6), (16, 0.7)):
        run = Run(benchmark="heart-hospitals", method="er", settings={"batch_size": batch_size})
        write(tmp_path, result(run, score))
    table = only(build_report(tmp_path))
    assert {each.variant: round(each.cells["heart-hospitals"].mean) for each in table.rows} == {
        "batch_size 8": 60,
        "batch_size 16": 70,
    }
    assert "best trial" not in table.about


@pytest.mark.parametrize("file", ["", "result.json"])
def test_a_single_run_has_a_table_of_one_row(file: str, tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=BOTH), steady)
    chosen = next(each for each in plan.runs if each.run.method == "cl-coral" and each.seed == 1)
    report = build_report(tmp_path / chosen.name / file)
    table = only(report)
    assert report.problems == ()
    assert report.experiments == ()
    assert (len(table.rows), len(table.columns), table.whole) == (1, 1, True)
    cell = table.rows[0].cells[chosen.run.benchmark]
    assert (cell.mean, cell.notes) == (pytest.approx(71), ())
    assert table.title.startswith("★-CL-CORAL on ")
    assert sum(line.startswith("farshore run ") for line in report.provenance.commands) == 1


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
    for expected in rank(results):
        cell = row(table, expected.method).cells["heart-hospitals"]
        assert cell.mean == pytest.approx(100 * expected.target)
        assert cell.error == pytest.approx(100 * expected.target_error)
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
