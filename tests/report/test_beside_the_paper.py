"""Tables of experiments next to the paper's numbers, and without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from reporting import filled, only, row, steady
from sweeping import EXPERIMENTS, experiment

from farshore.report.build import build_report
from farshore.report.overlay import NO_OVERLAY
from farshore.runs.plan.experiment import make_book, read_experiment
from farshore.runs.plan.record import record_experiment


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
