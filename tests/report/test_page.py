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
from farshore.report.answer import Verdict, answer
from farshore.report.assemble import Frame, assemble
from farshore.report.figures import draw_all
from farshore.report.overlay import NO_OVERLAY
from farshore.report.page import page
from farshore.report.page_table import Notes, number, page_table
from farshore.report.paper import PAPER
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
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if attributes.get("id") else []
        self.links += (
            [attributes["href"][1:]] if (attributes.get("href") or "").startswith("#") else []
        )
        self.loaded += [
            value
            for name, value in attrs
            if name in ("src", "href", "srcset") and not (value or "").startswith("#")
        ]


def cell(mean: float, *, seeds: int = 3, generated: bool = False) -> Cell:
    return Cell(
        mean,
        0.5,
        seeds=seeds,
        seeds_planned=3,
        trials=2,
        trials_planned=2,
        generated=generated,
    )


MISSING = Cell(None, seeds_planned=3, trials_planned=2)


def table(label: str = "Toy", **cells: dict[str, Cell]) -> Table:
    entries = {
        ("finetune", ""): {"x": cell(50.0), "y": cell(40.0)},
        ("cl-coral", ""): {"x": cell(70.0), "y": cell(45.0)},
    }
    entries |= {(name, ""): of for name, of in cells.items()}
    return assemble(
        Frame("toy", "A toy", "about it"), [Column("x", label), Column("y", "Why")], entries, PAPER
    )


def text_of(html: str) -> str:
    """What a reader sees of a page without scripts and styles."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bare).split())


def test_the_page_loads_nothing_and_its_links_have_targets() -> None:
    html = page(
        Report("a title", (printed_table("main"),)),
        draw_all(shown(result(), result("finetune")), PAPER),
        source="runs",
    )
    read = Reader(html)
    assert read.loaded == []
    assert set(read.links) <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert html.count("plotly.js v") == 1
    assert len(html) < 8_000_000
    assert "default-src 'none'" in html


def test_a_page_without_figures_has_no_plotting_script() -> None:
    assert len(page(Report("a title", (table(),)))) < 100_000


def test_names_of_users_are_escaped_everywhere() -> None:
    drawings = draw_all(shown(result(order=(HOSTILE, "b"), name=HOSTILE)), PAPER)
    hostile = Report(
        HOSTILE,
        (replace(table(HOSTILE), remarks=(HOSTILE,), about=HOSTILE),),
        Provenance(((HOSTILE, HOSTILE),), (HOSTILE,)),
        (HOSTILE,),
    )
    html = page(hostile, drawings, source=HOSTILE)
    assert "<script>alert" not in html
    assert Reader(html).tags.count("script") == 3
    assert text_of(html).count("&lt;script&gt;alert") >= 8


def test_every_number_of_the_papers_main_table_is_shown_with_its_difference() -> None:
    shown = page_table(printed_table("main"))
    cells = [cell for _, rows in shown.sections for row in rows for cell in row.cells if cell.error]
    assert len(cells) == 113
    assert all(cell.paper and cell.difference == "0.0" for cell in cells)
    assert [column.label for column in shown.columns][-5:] == [
        "Average",
        "Rank",
        "Rank",
        "Rank",
        "Gain",
    ]


def test_without_the_paper_its_numbers_and_the_switch_are_missing() -> None:
    without = page(Report("a title", (printed_table("main", NO_OVERLAY),)))
    assert 'id="paper"' in page(Report("a title", (printed_table("main"),)))
    assert "cl-coral" in text_of(without)
    assert 'id="paper"' not in without
    assert 'class="paper"' not in without
    assert "the paper’s" not in text_of(without)


def test_rows_that_are_never_ranked_have_their_own_section() -> None:
    shown = page_table(
        table(tent={"x": cell(90.0), "y": cell(90.0)}, urm={"x": cell(95.0), "y": cell(95.0)})
    )
    assert [(label, [row.method for row in rows]) for label, rows in shown.sections] == [
        ("", ["finetune", "cl-coral"]),
        ("Trained on all sources at once (never ranked)", ["urm"]),
        ("Adapted to the target's inputs (never ranked)", ["tent"]),
    ]
    assert [cell.place for cell in shown.sections[1][1][0].cells[:2]] == ["", ""]


def test_missing_and_partial_cells_are_marked() -> None:
    partial = table(er={"x": cell(60.0, seeds=2), "y": MISSING})
    shown = page_table(partial)
    of_er = next(row for _, rows in shown.sections for row in rows if row.method == "er")
    assert (of_er.cells[0].partial, of_er.cells[0].notes) == (True, ("a",))
    assert (of_er.cells[1].text, of_er.cells[1].missing) == ("missing", True)
    assert ("a", "2 of 3 seeds") in shown.notes
    text = text_of(page(Report("a title", (partial,))))
    assert "partial" in text
    assert "the table is incomplete" in text


def test_a_nan_mean_is_sorted_as_missing() -> None:
    toy = table(er={"x": cell(2.0), "y": cell(1.0)})
    rows = [
        replace(row, cells={**row.cells, "x": cell(float("nan"))}) if row.method == "er" else row
        for row in toy.rows
    ]
    shown = page_table(replace(toy, rows=tuple(rows)))
    of_er = next(row for _, rows in shown.sections for row in rows if row.method == "er")
    assert (of_er.cells[0].text, of_er.cells[0].value) == ("–", None)


def test_generated_data_are_noted_once_in_the_head() -> None:
    entries = {(name, ""): {"x": cell(50.0, generated=True)} for name in ("finetune", "er")}
    toy = assemble(Frame("toy", "A toy", ""), [Column("x", "X", generated=True)], entries, PAPER)
    assert all(
        not of.notes for _, rows in page_table(toy).sections for row in rows for of in row.cells
    )
    assert "generated data" in text_of(page(Report("a title", (toy,))))


def test_one_data_set_has_one_rank() -> None:
    entries = {(name, ""): {"x": cell(score)} for name, score in (("finetune", 50.0), ("er", 60.0))}
    shown = page_table(assemble(Frame("toy", "A toy", ""), [Column("x", "X")], entries, PAPER))
    assert [column.label for column in shown.columns].count("Rank") == 1
    for _, rows in shown.sections:
        assert all(len(row.cells) == len(shown.columns) for row in rows)


def test_the_answer_says_who_leads_by_how_much() -> None:
    answered = answer(Report("a title", (table(er={"x": cell(69.0), "y": cell(44.0)}),)))
    assert (
        answered.headline
        == "★-CL-CORAL leads on average over 2 data sets: 57.5%, 1.0 points ahead of ER and 12.5 "
        "points above Finetune."
    )
    assert not answered.certain


def test_the_answer_of_the_papers_main_table() -> None:
    answered = answer(Report("a title", (printed_table("main"),)))
    assert answered.headline.startswith(
        "★-CL-CORAL leads on average over 6 data sets: 64.7%, 1.3 points ahead of ★-CL-VREX"
    )
    assert answered.verdict is Verdict.NOT_SIGNIFICANT


def test_a_row_without_all_data_sets_cannot_lead() -> None:
    answered = answer(Report("a title", (table(er={"x": cell(99.0), "y": MISSING}),)))
    assert answered.headline.startswith("★-CL-CORAL leads")


def test_level_methods_are_called_level() -> None:
    answered = answer(Report("a title", (table(er={"x": cell(70.0), "y": cell(45.0)}),)))
    assert "are level on average over 2 data sets: 57.5%" in answered.headline


def test_a_table_that_is_not_ranked_answers_without_a_test() -> None:
    entries = {
        (name, ""): {"x": cell(score), "y": cell(score)}
        for name, score in (("finetune", 50.0), ("er", 60.0))
    }
    orders = assemble(
        Frame("toy", "A toy", "", ranked=False),
        [Column("x", "X, listed"), Column("y", "X, reversed")],
        entries,
        PAPER,
    )
    answered = answer(Report("a title", (orders,)))
    assert (
        answered.headline
        == "ER leads on average over 2 columns: 60.0%, 10.0 points ahead of Finetune."
    )
    assert answered.verdict is Verdict.NOT_INDEPENDENT


def test_a_lead_is_certain_only_if_the_table_is_complete() -> None:
    scores = {"finetune": 10.0, "er": 20.0, "cl-coral": 90.0}
    columns = [Column(str(index), str(index)) for index in range(20)]
    entries = {
        (name, ""): {column.key: cell(score) for column in columns}
        for name, score in scores.items()
    }
    whole = assemble(Frame("toy", "A toy", ""), columns, entries, PAPER)
    answered = answer(Report("a title", (whole,)))
    assert (answered.verdict, answered.certain) == (Verdict.SIGNIFICANT, True)
    partial = answer(Report("a title", (replace(whole, partial=True),)))
    assert (partial.verdict, partial.certain) == (Verdict.SIGNIFICANT, False)
    assert "incomplete" in partial.verdict_text


def test_the_headline_of_times_counts_downwards() -> None:
    entries = {
        (name, ""): {"x": cell(value)}
        for name, value in (("finetune", 5.0), ("er", 2.0), ("si", 1.0))
    }
    frame = Frame("toy", "A toy", "", unit="minutes", higher_is_better=False)
    answered = answer(Report("a title", (assemble(frame, [Column("x", "X")], entries, PAPER),)))
    assert answered.headline == (
        "SI leads on X: 1.0 minutes, 1.0 minutes ahead of ER and 4.0 minutes below Finetune."
    )


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


def test_letters_continue_after_z() -> None:
    notes = Notes()
    letters = [notes.letter(str(index)) for index in range(54)]
    assert (letters[0], letters[25], letters[26], letters[27], letters[52]) == (
        "a",
        "z",
        "aa",
        "ab",
        "ba",
    )
    assert notes.letter("0") == "a"


def test_missing_packages_of_the_page_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    with pytest.raises(FarshoreError, match=r"pip install '\.\[report\]'"):
        page(Report("a title"))


def test_the_files_of_the_page_exist_and_are_packaged() -> None:
    assert {path.name for path in module.FILES.iterdir()} >= {
        "page.html",
        "table.html",
        "page.css",
        "page.js",
    }
    packaged = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"report/files/*"' in packaged
    assert '"report/paper/files/*"' in packaged
