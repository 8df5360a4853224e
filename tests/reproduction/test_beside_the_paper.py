"""Reports of our runs with the paper's numbers beside them, and with the rows of its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from reporting import filled, only, row, steady
from sweeping import EXPERIMENTS, experiment

from farshore.report.build import build_report
from farshore.results.published import read_published
from farshore.results.tables import Table
from farshore.runs.plan.experiment import Experiment, make_book, read_experiment
from farshore.runs.store.store import record_experiment
from reproduction.paper.published import PUBLISHED

PAPER = read_published(PUBLISHED)
PART = {"benchmarks": ["rotated-mnist", "covertype"], "methods": ["finetune", "cl-coral"]}


@pytest.fixture(autouse=True)
def without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path / "none"))


def small(name: str) -> Experiment:
    """The experiment of this name with a run per cell, without a search."""
    requested = read_experiment(EXPERIMENTS / f"{name}.yaml")
    once = requested.search.model_copy(update={"trials": 1, "seeds": 1})
    return requested.model_copy(update={"search": once})


def tables(runs: Path) -> dict[str, Table]:
    return {table.name: table for table in build_report(runs, published=PAPER).tables}


def test_the_main_table_beside_the_paper(tmp_path: Path) -> None:
    filled(tmp_path, small("main"), steady)
    table = tables(tmp_path)["main"]
    assert table.whole
    coral = row(table, "cl-coral").cells
    assert (coral["rotated-mnist"].published, coral["rotated-mnist"].published_error) == (72.8, 2.6)
    assert coral["rotated-mnist"].difference == pytest.approx(70 - 72.8)
    assert coral["average"].published == 64.7
    assert coral["rank mean"].published == 2.8
    assert "covertype" not in row(table, "urm").cells
    assert any("best of 20 trials for each of 3 seeds" in text for text in table.remarks)
    assert [column.metric for column in table.columns].count("macro_f1") == 1


def test_an_average_of_the_paper_is_over_the_same_data_sets(tmp_path: Path) -> None:
    filled(tmp_path, experiment(name="main", part=PART), steady)
    coral = row(tables(tmp_path)["main"], "cl-coral").cells
    assert coral["covertype"].published == 45.2
    assert coral["average"].published is None
    assert coral["rank mean"].published is None


def test_a_report_has_no_number_of_the_paper_unless_asked(tmp_path: Path) -> None:
    filled(tmp_path, experiment(name="main", part=PART), steady)
    report = build_report(tmp_path)
    assert not report.has_published
    assert not any("paper" in text.lower() for text in only(report).remarks)


def test_tables_that_read_others(tmp_path: Path) -> None:
    filled(tmp_path, experiment(name="main", part=PART), steady)
    naive = {**PART, "methods": ["naive-cl-coral", "finetune", "er-ace"]}
    filled(tmp_path, experiment(name="naive", part=naive), steady)
    read = ("backward_transfer", "source", "runtime", "naive_vs_tailored")
    book = make_book(tmp_path / "experiments" / "none.yaml")
    for name in read:
        record_experiment(read_experiment(EXPERIMENTS / f"{name}.yaml"), tmp_path, book)
    found = tables(tmp_path)
    assert set(found) == {"main", "naive", *read}
    runtime = found["runtime"]
    assert (runtime.unit, runtime.higher_is_better) == ("minutes", False)
    assert row(runtime, "er-ace").cells["covertype"].mean == pytest.approx(1)
    assert row(runtime, "finetune").cells["rotated-mnist"].published == 53.7
    assert row(found["source"], "cl-coral").cells["covertype"].mean == pytest.approx(50)
    transfer = row(found["backward_transfer"], "cl-coral").cells["covertype"]
    assert (transfer.mean, transfer.published) == (0, 12.3)
    forms = found["naive_vs_tailored"]
    assert {each.method for each in forms.rows} == {"finetune", "cl-coral", "naive-cl-coral"}
    assert row(forms, "naive-cl-coral").cells["covertype"].published == 8.0


@pytest.mark.parametrize(
    ("name", "variant", "printed"),
    [
        ("adaptation", "", {"tent": 36.8, "finetune": 8.1, "cl-coral": 45.2}),
        ("no_alignment", "with alignment", {"": 37.5, "with alignment": 45.2}),
        ("dynamic_priors", "static priors", {"": 33.9, "static priors": 45.2}),
    ],
)
def test_rows_of_main_are_shown_beside_those_of_an_experiment(
    tmp_path: Path, name: str, variant: str, printed: dict[str, float]
) -> None:
    beside = read_experiment(EXPERIMENTS / f"{name}.yaml").beside
    assert [(each.experiment, each.variant) for each in beside] == [("main", variant)]
    filled(tmp_path, small("main"), steady)
    plan = filled(tmp_path, small(name), steady)
    [table] = build_report(tmp_path, experiment=name, published=PAPER).tables
    own = plan.experiment
    assert own is not None
    data = {each.title for part in own.parts for each in part.data}
    assert {column.key for column in table.columns if column.kind == "score"} == data
    assert {each.variant for each in table.rows} == {"", variant}
    for each in table.rows:
        assert data <= set(each.cells)
    covertype = {
        (each.method if name == "adaptation" else each.variant): each.cells["covertype"]
        for each in table.rows
        if name == "adaptation" or each.method == "cl-coral"
    }
    assert {key: covertype[key].published for key in printed} == printed
    assert table.whole


def test_an_ablation_alone_has_its_own_rows(tmp_path: Path) -> None:
    filled(tmp_path, small("no_alignment"), steady)
    assert {each.variant for each in only(build_report(tmp_path)).rows} == {""}
