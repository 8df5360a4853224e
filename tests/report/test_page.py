"""The page: one file, everything escaped, what is missing visible, and the answer first."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from contested import contest, of_cells
from farshore.report.assemble import Frame, assemble
from farshore.report.overlay import NO_OVERLAY
from farshore.report.page_table import Notes, number, page_table
from farshore.report.paper import PAPER
from farshore.report.table import Cell, Column, Provenance, Report, Table
from farshore.report.verdict import judge
from papers_own import printed_table
from pictured import result, shown

from farshore.errors import FarshoreError
from farshore.report import page as module
from farshore.report.figures import draw_all
from farshore.report.markdown_form import as_markdown
from farshore.report.markdown_form import escape as markdown_escape
from farshore.report.page import page

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
    columns = [Column("x", label), Column("y", "Why")]
    frame = Frame("toy", "A toy", "about it", contest=of_cells(entries, columns, PAPER))
    return assemble(frame, columns, entries, PAPER)


def text_of(html: str) -> str:
    """What a reader sees of a page without scripts and styles."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bare).split())


def test_the_page_loads_nothing_and_its_links_have_targets() -> None:
    html = page(
        Report("a title", (printed_table("main"),)),
        draw_all(shown(result(), result("finetune")), Path("runs")),
        source="runs",
    )
    read = Reader(html)
    assert read.loaded == []
    assert set(read.links) <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert html.count('id="plotly"') == 1
    packed = re.search(r'id="plotly">([^<]*)<', html)
    assert packed is not None
    script = gzip.decompress(base64.b64decode(packed[1])).decode()
    assert "plotly.js (cartesian - minified) v" in script[:200]
    assert len(html) < 1_500_000
    assert "default-src 'none'" in html


def test_a_page_without_figures_has_no_plotting_script() -> None:
    assert len(page(Report("a title", (replace(table(), contest=None),)))) < 100_000


def test_names_of_users_are_escaped_everywhere() -> None:
    drawings = draw_all(shown(result(order=(HOSTILE, "b"), name=HOSTILE)), Path("runs"))
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
    assert "Not everything that was planned has run yet." in text


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


def headline(html: str) -> str:
    match = re.search(r'<h2 id="verdict" class="headline">([^<]*)</h2>', html)
    assert match is not None
    return unescape(match[1])


def test_the_verdict_comes_first_and_is_the_same_in_markdown() -> None:
    report = Report(
        "a title",
        (table(er={"x": cell(69.0), "y": cell(44.0)}),),
        next_command="farshore methods er",
        next_reason="to learn more",
    )
    main = report.main_table
    assert main is not None
    assert main.contest is not None
    verdict = judge(main.contest)
    html = page(report)
    assert headline(html) == verdict.sentence
    text = text_of(html)
    assert text.index("No clear winner") < text.index("Ranking") < text.index("about it")
    assert "farshore methods er" in text
    written = as_markdown(report)
    assert markdown_escape(verdict.sentence) in written
    assert written.index("No clear winner") < written.index("## A toy")
    assert "farshore methods er" in written


def test_the_verdict_of_the_papers_main_table() -> None:
    """The paper's best method is not distinguishable from the next ones over six data sets."""
    html = page(Report("a title", (printed_table("main"),)))
    sentence = headline(html)
    assert sentence.startswith("No clear winner over 6 data sets: ★-CL-CORAL, ★-CL-VREX")
    assert "clear winner on" not in sentence


def test_a_row_without_all_data_sets_cannot_lead() -> None:
    html = page(Report("a title", (table(er={"x": cell(99.0), "y": MISSING}),)))
    assert "ER" not in headline(html).split(":")[1]
    assert "Not ranked because some scores are missing" in text_of(html)


def test_the_verdict_is_that_of_the_table_with_the_most_data_sets() -> None:
    one = assemble(
        Frame(
            "one",
            "One",
            "",
            contest=of_cells({("er", ""): {"x": cell(1.0)}}, [Column("x", "X")], PAPER),
        ),
        [Column("x", "X")],
        {("er", ""): {"x": cell(1.0)}},
        PAPER,
    )
    report = Report("a title", (one, table()))
    assert report.main_table is report.tables[1]
    assert page(report).index('id="table-toy"') < page(report).index('id="table-one"')


def test_the_metrics_of_the_ranking_can_be_switched() -> None:
    made = contest(
        {"finetune": {"a>b": [74.5, 74.6, 74.4]}, "er": {"a>b": [70.0, 70.2, 70.1]}},
        balanced={"finetune": 50.7},
        classes=2,
    )
    entries = {("finetune", ""): {"x": cell(74.5)}, ("er", ""): {"x": cell(70.1)}}
    html = page(
        Report(
            "a title",
            (assemble(Frame("t", "T", "", contest=made), [Column("x", "X")], entries, PAPER),),
        )
    )
    assert re.findall(r'<option value="(\w+)"', html)[:2] == ["accuracy", "balanced_accuracy"]
    assert html.count("no better than guessing</span>") == 2
    by_accuracy, by_balanced = re.findall(r'data-metric="\w+".*?</div>', html, flags=re.DOTALL)
    assert by_accuracy.index("finetune") < by_accuracy.index(">er")
    assert by_balanced.index(">er") < by_balanced.index("finetune")


def test_a_report_without_scores_has_no_verdict() -> None:
    assert Report("nothing").main_table is None
    text = text_of(page(Report("a title", problems=("everything is damaged",))))
    assert "everything is damaged" in text
    assert "winner" not in text


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
        "ranking.html",
        "table.html",
        module.PLOTLY,
        "plotly-cartesian.LICENSE.txt",
        "page.css",
        "page.js",
    }
    packaged = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"report/files/*"' in packaged
    assert '"report/paper/files/*"' in packaged
