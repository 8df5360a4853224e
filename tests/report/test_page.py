"""The page: one file, everything escaped, what is missing visible, and the answer first."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from papers_own import printed_table
from pictured import result, shown

from farshore.errors import FarshoreError
from farshore.report import page as module
from farshore.report.answer import answer
from farshore.report.assemble import Frame, assemble
from farshore.report.figures import draw_all
from farshore.report.page import page
from farshore.report.page_table import Notes, number, page_table
from farshore.report.table import Cell, Column, Provenance, Report, Table

HOSTILE = "<script>alert('x')</script> & \"quoted\""


class Reader(HTMLParser):
    """Collects the elements of a page, and what would be loaded from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.ids += [found["id"]] if found.get("id") else []
        self.links += [found["href"][1:]] if (found.get("href") or "").startswith("#") else []
        self.loaded += [
            value
            for name, value in attrs
            if name in ("src", "href", "srcset") and not (value or "").startswith("#")
        ]


def cell(mean: float | None, *notes: str, seeds: int = 3) -> Cell:
    return Cell(
        mean,
        0.5 if mean is not None else None,
        seeds=seeds,
        seeds_planned=3,
        trials=2,
        trials_planned=2,
        notes=notes,
    )


def table(label: str = "Toy", **cells: dict[str, Cell]) -> Table:
    found = {
        ("finetune", ""): {"x": cell(50.0), "y": cell(40.0)},
        ("cl-coral", ""): {"x": cell(70.0), "y": cell(45.0)},
    }
    found |= {(name, ""): of for name, of in cells.items()}
    return assemble(
        Frame("toy", "A toy", "about it"), [Column("x", label), Column("y", "Why")], found
    )


def text_of(found: str) -> str:
    """What a reader sees of a page without scripts and styles."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", found, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bare).split())


def test_the_page_loads_nothing_and_its_links_lead_somewhere() -> None:
    found = page(
        Report("a title", (printed_table("main"),)),
        draw_all(shown(result(), result("finetune"))),
        source="runs",
    )
    read = Reader(found)
    assert read.loaded == []
    assert set(read.links) <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert found.count("plotly.js v") == 1
    assert len(found) < 8_000_000
    assert "default-src 'none'" in found


def test_a_page_without_figures_is_without_the_plotting_script() -> None:
    assert len(page(Report("a title", (table(),)))) < 100_000


def test_names_of_users_are_escaped_everywhere() -> None:
    drawings = draw_all(shown(result(order=(HOSTILE, "b"), name=HOSTILE)))
    hostile = Report(
        HOSTILE,
        (replace(table(HOSTILE), notes=(HOSTILE,), about=HOSTILE),),
        Provenance(((HOSTILE, HOSTILE),), (HOSTILE,)),
        (HOSTILE,),
    )
    found = page(hostile, drawings, source=HOSTILE)
    assert "<script>alert" not in found
    assert Reader(found).tags.count("script") == 3
    assert text_of(found).count("&lt;script&gt;alert") >= 8


def test_every_number_of_the_papers_main_table_is_there_with_its_difference() -> None:
    found = page_table(printed_table("main"))
    cells = [cell for _, rows in found.sections for row in rows for cell in row.cells if cell.error]
    assert len(cells) == 113
    assert all(cell.paper and cell.difference == "0.0" for cell in cells)
    assert [column.label for column in found.columns][-5:] == [
        "Average",
        "Rank",
        "Rank",
        "Rank",
        "Gain",
    ]


def test_without_the_paper_neither_its_numbers_nor_the_switch_are_there() -> None:
    report = Report("a title", (printed_table("main"),))
    without = page(report, paper=False)
    assert 'id="paper"' in page(report)
    assert 'id="paper"' not in without
    assert 'class="paper"' not in without
    assert "the paper’s" not in text_of(without)


def test_rows_that_never_rank_stand_apart() -> None:
    found = page_table(
        table(tent={"x": cell(90.0), "y": cell(90.0)}, urm={"x": cell(95.0), "y": cell(95.0)})
    )
    assert [(label, [row.method for row in rows]) for label, rows in found.sections] == [
        ("", ["finetune", "cl-coral"]),
        ("Learned all sources at once (never ranked)", ["urm"]),
        ("Adapted to the target's inputs (never ranked)", ["tent"]),
    ]
    assert [cell.place for cell in found.sections[1][1][0].cells[:2]] == ["", ""]


def test_missing_and_partial_cells_say_so() -> None:
    partial = table(er={"x": cell(60.0, "2 of 3 seeds", seeds=2), "y": cell(None, "missing")})
    found = page_table(partial)
    of_er = next(row for _, rows in found.sections for row in rows if row.method == "er")
    assert (of_er.cells[0].partial, of_er.cells[0].notes) == (True, ("a",))
    assert (of_er.cells[1].text, of_er.cells[1].missing) == ("missing", True)
    assert ("a", "2 of 3 seeds") in found.notes
    text = text_of(page(Report("a title", (partial,))))
    assert "partial" in text
    assert "the table is not whole" in text


def test_a_mean_that_is_no_number_is_sorted_as_missing() -> None:
    made = table(er={"x": cell(2.0), "y": cell(1.0)})
    rows = [
        replace(row, cells={**row.cells, "x": cell(float("nan"))}) if row.method == "er" else row
        for row in made.rows
    ]
    found = page_table(replace(made, rows=tuple(rows)))
    of_er = next(row for _, rows in found.sections for row in rows if row.method == "er")
    assert (of_er.cells[0].text, of_er.cells[0].value) == ("–", None)


def test_generated_data_are_said_once_in_the_head() -> None:
    entries = {(name, ""): {"x": cell(50.0, "generated data")} for name in ("finetune", "er")}
    made = assemble(Frame("toy", "A toy", ""), [Column("x", "X", generated=True)], entries)
    assert all(
        not of.notes for _, rows in page_table(made).sections for row in rows for of in row.cells
    )
    assert "generated data" in text_of(page(Report("a title", (made,))))


def test_one_data_set_has_one_rank() -> None:
    entries = {(name, ""): {"x": cell(score)} for name, score in (("finetune", 50.0), ("er", 60.0))}
    found = page_table(assemble(Frame("toy", "A toy", ""), [Column("x", "X")], entries))
    assert [column.label for column in found.columns].count("Rank") == 1
    for _, rows in found.sections:
        assert all(len(row.cells) == len(found.columns) for row in rows)


def test_the_answer_says_who_leads_by_how_much() -> None:
    found = answer(Report("a title", (table(er={"x": cell(69.0), "y": cell(44.0)}),)))
    assert (
        found.headline
        == "★-CL-CORAL leads on average over 2 data sets: 57.5%, 1.0 points before ER and 12.5 "
        "points above Finetune."
    )
    assert not found.certain


def test_the_answer_of_the_papers_main_table() -> None:
    found = answer(Report("a title", (printed_table("main"),)))
    assert found.headline.startswith(
        "★-CL-CORAL leads on average over 6 data sets: 64.7%, 1.3 points before ★-CL-VREX"
    )
    assert found.verdict == "the lead is not significant"


def test_a_row_without_all_data_sets_cannot_lead() -> None:
    found = answer(Report("a title", (table(er={"x": cell(99.0), "y": cell(None, "missing")}),)))
    assert found.headline.startswith("★-CL-CORAL leads")


def test_level_methods_are_called_level() -> None:
    found = answer(Report("a title", (table(er={"x": cell(70.0), "y": cell(45.0)}),)))
    assert "are level on average over 2 data sets: 57.5%" in found.headline


def test_a_table_that_is_not_ranked_answers_without_a_test() -> None:
    entries = {
        (name, ""): {"x": cell(score), "y": cell(score)}
        for name, score in (("finetune", 50.0), ("er", 60.0))
    }
    orders = assemble(
        Frame("toy", "A toy", "", ranked=False),
        [Column("x", "X, listed"), Column("y", "X, reversed")],
        entries,
    )
    found = answer(Report("a title", (orders,)))
    assert (
        found.headline == "ER leads on average over 2 columns: 60.0%, 10.0 points before Finetune."
    )
    assert found.verdict == "not tested: the columns are no independent data sets"


def test_one_row_gives_no_answer() -> None:
    assert answer(Report("nothing")) is None
    text = text_of(page(Report("a title", problems=("everything is damaged",))))
    assert "everything is damaged" in text


@pytest.mark.parametrize(
    ("value", "sign", "expected"),
    [
        (1.25, False, "1.2"),
        (-0.04, True, "0.0"),
        (-3.0, True, "−3.0"),
        (2.0, True, "+2.0"),
        (None, False, "–"),
        (float("nan"), True, "–"),
    ],
)
def test_numbers_are_written_as_readers_expect(
    value: float | None, sign: bool, expected: str
) -> None:
    assert number(value, sign=sign) == expected


def test_letters_go_on_after_z() -> None:
    notes = Notes()
    letters = [notes.letter(str(place)) for place in range(54)]
    assert (letters[0], letters[25], letters[26], letters[27], letters[52]) == (
        "a",
        "z",
        "aa",
        "ab",
        "ba",
    )
    assert notes.letter("0") == "a"


def test_what_the_page_needs_is_named_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    with pytest.raises(FarshoreError, match=r"pip install '\.\[report\]'"):
        page(Report("a title"))


def test_the_files_of_the_page_are_there_and_packaged() -> None:
    assert {path.name for path in module.FILES.iterdir()} >= {
        "page.html",
        "table.html",
        "page.css",
        "page.js",
    }
    assert '"report/files/*"' in (Path(__file__).parents[2] / "pyproject.toml").read_text()
