"""The paper's numbers: as printed except for two misprints, with its averages and ranks."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from papers_own import printed_table
from reporting import row
from sweeping import EXPERIMENTS

from farshore.benchmarks import BENCHMARKS
from farshore.cli.method_groups import method_groups
from farshore.results.published import SUMMARIES, Published, published_for, read_published
from farshore.results.tables import RANKS, Table
from farshore.runs import catalog
from reproduction.compared import PAPERS
from reproduction.paper import published
from reproduction.paper.published import PUBLISHED, SOURCES, SWAP_NOTE, TITLES, URM_NOTE
from reproduction.paper.scores import paper_numbers

NUMBERS = read_published(PUBLISHED)


def lines(name: str) -> list[dict[str, str]]:
    with PUBLISHED.with_name(name).open() as file:
        return list(csv.DictReader(file))


def papers(experiment: str) -> Published:
    found = published_for(NUMBERS, experiment)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def main_table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return printed_table("main", tmp_path_factory.mktemp("runs"))


def test_the_committed_file_is_what_the_program_writes() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == published.text()


def test_every_printed_cell_is_in_the_file() -> None:
    printed = lines("paper_tables.csv")
    assert len(printed) == 731
    used = {(table, variant) for sources in SOURCES.values() for table, variant, _ in sources}
    assert {(line["table"], line["variant"]) for line in printed} == used
    columns = ("title", "method", "mean", "error")
    written = {tuple(line[name] for name in columns) for line in lines("published.csv")}
    for line in printed:
        assert (TITLES[line["table"]], line["method"], line["mean"], line["stderr"]) in written


def test_every_row_of_the_file_can_be_looked_up() -> None:
    assert not NUMBERS.duplicated(["experiment", "method", "variant", "column"]).any()
    assert set(NUMBERS["method"]) <= set(catalog.names())
    assert set(NUMBERS["column"]) - {*BENCHMARKS.names()} == {*SUMMARIES} == {"average", *RANKS}
    for experiment, sources in SOURCES.items():
        assert papers(experiment).title == TITLES[sources[0][0]]
        assert experiment == "compare" or (EXPERIMENTS / f"{experiment}.yaml").is_file()
    with pytest.raises(AssertionError, match="small"):
        paper_numbers("small")


def test_variants_are_separate_rows() -> None:
    found = papers("no_alignment")
    assert found.find("cl-vrex", "", "rotated-mnist") == (62.4, 1.3)
    assert found.find("cl-vrex", "with alignment", "rotated-mnist") == (70.2, 5.8)


@pytest.mark.parametrize("experiment", ["memory_50", "memory_25"])
def test_the_swapped_columns_are_corrected(experiment: str) -> None:
    scores = paper_numbers(experiment)
    methods = {method for method, _, _ in scores}
    assert SWAP_NOTE in papers(experiment).notes
    for method in methods:
        covertype, cifar = (scores[method, "", name][0] for name in ("covertype", "cifar10-c"))
        assert covertype < 50 < cifar


def test_the_average_of_urm_is_that_of_its_cells(main_table: Table) -> None:
    [printed] = [line for line in lines("paper_averages.csv") if line["method"] == "urm"]
    assert printed["average"] == "73.3"
    average = row(main_table, "urm").cells["average"]
    assert average.mean == pytest.approx(73.62)
    assert average.published == 73.6
    assert URM_NOTE in main_table.remarks


def test_the_scores_of_the_main_table_give_its_averages_and_ranks(main_table: Table) -> None:
    printed = {line["method"]: line for line in lines("paper_averages.csv")}
    assert {each.method for each in main_table.rows} == set(printed)
    for each in main_table.rows:
        cells = dict(each.cells)
        for column in RANKS:
            if each.method != "urm":
                assert cells[column].difference == pytest.approx(0, abs=0.4)
        assert cells["average"].difference == pytest.approx(0, abs=0.06)
        for name in BENCHMARKS.names():
            if name in cells:
                assert cells[name].difference == pytest.approx(0)
    coral = row(main_table, "cl-coral").cells
    assert [f"{coral[column].mean:.1f}" for column in RANKS] == ["2.8", "2.1", "2.5"]
    assert [coral[column].published for column in RANKS] == [2.8, 2.1, 2.5]


def test_the_scores_of_the_main_table_give_its_marks(main_table: Table) -> None:
    places = {
        each.method: {key: cell.place for key, cell in each.cells.items() if cell.place}
        for each in main_table.rows
    }
    assert set(places["cl-coral"]) == {"rotated-mnist", "covertype", "camelyon17", "average"}
    assert set(places["cl-coral"].values()) == {1}
    assert places["cl-mmd"] == {"rotated-mnist": 3, "cifar10-c": 3, "wm811k": 1, "average": 3}
    assert places["er-ace"] == {"tinyimagenet-c": 1, "wm811k": 2}
    assert places["cl-fishr"] == {"tinyimagenet-c": 1}  # printed alike, 29.0
    assert places["cl-vrex"]["average"] == 2
    assert places["urm"] == {}


def test_naive_methods_are_compared_with_finetune_as_printed(tmp_path: Path) -> None:
    table = printed_table("naive", tmp_path)
    for method, gain in {
        "agem": 8.1,
        "er-ace": 12.4,
        "si": 2.6,
        "naive-cl-coral": 3.3,
        "naive-cl-andmask": -31.4,
    }.items():
        difference = row(table, method).cells["difference"]
        assert difference.mean == pytest.approx(gain, abs=0.11)


def test_the_methods_of_the_paper_are_those_with_numbers() -> None:
    assert set(method_groups()["paper"]) == PAPERS
