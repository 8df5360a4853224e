"""The paper's numbers: as printed except for two misprints, with its averages and ranks."""

from __future__ import annotations

import csv
from importlib.resources import files

import pytest
from papers_own import printed_table

from farshore.errors import FarshoreError
from farshore.report.overlay import COMPARISON, NO_OVERLAY, Overlay
from farshore.report.paper import PAPER, paper_methods
from farshore.report.paper.numbers import SOURCES, SWAP_NOTE, TABLES, URM_NOTE
from farshore.report.table import Over, Status
from farshore.runs import catalog

FILES = files("farshore.report.paper").joinpath("files")
TEXT = FILES.joinpath("paper_averages.csv").read_text()
PRINTED = {row["method"]: row for row in csv.DictReader(TEXT.splitlines())}
RANKS = ("rank_arithmetic", "rank_geometric", "rank_median")


def test_the_main_table_gives_its_printed_averages() -> None:
    table = printed_table("main")
    assert {row.method for row in table.rows} == set(PRINTED)
    for row in table.rows:
        if row.method != "urm":
            assert row.average.mean == pytest.approx(
                float(PRINTED[row.method]["average"]), abs=0.06
            )
            assert row.average.paper == float(PRINTED[row.method]["average"])
    urm = next(row for row in table.rows if row.method == "urm")
    assert PRINTED["urm"]["average"] == "73.3"
    assert urm.average.mean == pytest.approx(73.62)
    assert urm.average.paper == pytest.approx(73.62)
    assert urm.average.over == Over(5, 6)
    assert urm.average.status is Status.PARTIAL
    assert URM_NOTE in table.notes


def test_the_main_table_gives_its_printed_ranks() -> None:
    table = printed_table("main")
    exact = {"cl-coral": (2.8, 2.1, 2.5), "cl-mmd": (4.5, 3.6, 3.5)}
    ranked = [row for row in table.rows if row.ranked]
    assert len(ranked) == 18
    for row in ranked:
        ours = (row.rank_arithmetic, row.rank_geometric, row.rank_median)
        assert ours == pytest.approx([float(PRINTED[row.method][name]) for name in RANKS], abs=0.4)
        assert row.paper_ranks == tuple(float(PRINTED[row.method][name]) for name in RANKS)
        if row.method in exact:
            assert tuple(float(f"{value:.1f}") for value in ours) == exact[row.method]


def test_the_main_table_marks_what_the_paper_marks() -> None:
    table = printed_table("main")
    places = {
        row.method: {key: cell.place for key, cell in row.cells.items() if cell.place}
        for row in table.rows
    }
    assert places["cl-coral"] == {"rotated-mnist": 1, "covertype": 1, "camelyon17": 1}
    assert places["cl-mmd"] == {"rotated-mnist": 3, "cifar10-c": 3, "wm811k": 1}
    assert places["er-ace"] == {"tinyimagenet-c": 1, "wm811k": 2}
    assert places["cl-fishr"] == {"tinyimagenet-c": 2}
    assert places["urm"] == {}
    assert {row.method: row.average.place for row in table.rows if row.average.place} == {
        "cl-coral": 1,
        "cl-vrex": 2,
        "cl-mmd": 3,
    }
    assert [column.label for column in table.columns] == [
        "RotatedMNIST",
        "CIFAR10C",
        "TinyImageNetC",
        "WM811K",
        "Covertype",
        "Camelyon17",
    ]


@pytest.mark.parametrize("experiment", ["memory_50", "memory_25"])
def test_the_swapped_columns_are_corrected(experiment: str) -> None:
    table = printed_table(experiment)
    assert SWAP_NOTE in table.notes
    for row in table.rows:
        assert row.cells["covertype"].mean < 50 < row.cells["cifar10-c"].mean


def test_naive_methods_are_compared_with_finetune_as_printed() -> None:
    gains = {
        row.method: round(row.difference_to_baseline, 1) for row in printed_table("naive").rows
    }
    for method, printed in {
        "agem": 8.1,
        "er-ace": 12.4,
        "si": 2.6,
        "naive-cl-coral": 3.3,
        "naive-cl-andmask": -31.4,
    }.items():
        assert gains[method] == pytest.approx(printed, abs=0.11)


def test_every_printed_cell_is_there() -> None:
    lines = FILES.joinpath("paper_tables.csv").read_text().splitlines()
    assert len(lines) == 1 + 731
    own = {(table, variant) for sources in SOURCES.values() for table, variant, _ in sources}
    assert {tuple(line.split(",")[:2]) for line in lines[1:]} == own


@pytest.mark.parametrize("experiment", sorted(SOURCES))
def test_every_source_has_numbers(experiment: str) -> None:
    numbers = PAPER.numbers(experiment)
    assert numbers is not None
    assert numbers.title == TABLES[numbers.name]
    assert printed_table(experiment).whole


def test_variants_are_separate_rows() -> None:
    table = printed_table("no_alignment")
    assert {row.variant for row in table.rows} == {"", "with alignment"}
    assert (
        next(row for row in table.rows if row.key == "cl-vrex").cells["rotated-mnist"].mean == 62.4
    )
    assert (
        next(row for row in table.rows if row.key == "cl-vrex with alignment").label
        == "★-CL-VREX, with alignment"
    )


def test_the_fastest_is_the_best_of_the_run_times() -> None:
    table = printed_table("runtime")
    assert table.unit == "minutes"
    assert next(row for row in table.rows if row.method == "snr").average.place == 1
    assert table.significance is None


def test_experiments_without_numbers_in_the_paper() -> None:
    assert PAPER.numbers("small") is None
    with pytest.raises(FarshoreError, match="small"):
        printed_table("small")


@pytest.mark.parametrize("experiment", sorted(SOURCES))
def test_only_the_papers_overlay_has_its_numbers(experiment: str) -> None:
    assert NO_OVERLAY.numbers(experiment) is None
    assert NO_OVERLAY.beside(experiment) is None
    paper = PAPER.numbers(experiment)
    assert paper is not None
    assert paper.search == (None if experiment == "adaptation" else (20, 3))


def test_labels_and_orders_of_the_paper() -> None:
    assert PAPER.label("cl-coral") == "★-CL-CORAL"
    assert PAPER.label("naive-cl-fishr") == "Naïve-CL-Fishr"
    assert PAPER.label("er-ace") == "ER-ACE"
    assert PAPER.group_label("tailored") == "Tailored (★)"
    assert PAPER.group_label("latent-replay") == "Latent replay"
    assert PAPER.datasets_in_order(["own", "wm811k", "cifar10-c"]) == ["cifar10-c", "wm811k", "own"]
    given = ["adaptation", "mine", "main.tiny", "main", "naive"]
    ordered = ["main.tiny", "main", "mine", "naive", "adaptation"]
    assert PAPER.tables_in_order(given) == ordered


def test_without_an_overlay_everything_keeps_its_typed_name() -> None:
    assert NO_OVERLAY.label("naive-cl-coral") == "naive-cl-coral"
    assert NO_OVERLAY.dataset_label("heart-hospitals") == "heart-hospitals"
    assert NO_OVERLAY.group_label("latent-replay") == "Latent replay"
    assert NO_OVERLAY.tables_in_order(["b", "main", "a"]) == ["b", "main", "a"]
    assert NO_OVERLAY.example("orders") == ""


def test_another_project_can_define_its_own_overlay() -> None:
    class Mine(Overlay):
        baseline = "er"

        def label(self, method: str) -> str:
            return method.title()

    assert (Mine().label("er"), Mine().numbers("main"), Mine().baseline) == ("Er", None, "er")


def test_the_methods_of_the_paper() -> None:
    assert set(catalog.names()) - set(paper_methods()) == {
        *("er", "er-kd", "der++", "cl-mix", "trees", "joint", "majority"),
        *("ridge", "ncm", "slda", "best"),
    }
    compared = PAPER.numbers(COMPARISON)
    assert compared is not None
    assert {method for method, _, _ in compared.numbers} == set(paper_methods())
