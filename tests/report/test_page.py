"""The page: one file, everything escaped, what is missing visible, and the answer first."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from framed import frame_of_runs, made_frame, made_run, over_data_sets
from pictured import result, shown
from sections import PUBLISHED, RESULT, SCORES, main_section, section

from farshore.errors import FarshoreError
from farshore.report import page as module
from farshore.report.build import Report, Section
from farshore.report.cells import letter_of
from farshore.report.figures.shape import draw_all
from farshore.report.markdown_form import as_markdown
from farshore.report.markdown_form import escape as markdown_escape
from farshore.report.page import page
from farshore.report.provenance import Provenance
from farshore.results.tables import Cell, Column, Row, Table

HOSTILE = "<script>alert('x')</script> & \"quoted\""
ROOT = Path(__file__).parents[2]
# A run whose data farshore generated.
GENERATED = SimpleNamespace(**{**vars(RESULT), "data": {"corruptions": "generated"}})


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


def visible(html: str) -> str:
    """What a reader sees of a page without scripts and styles."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def headline(html: str) -> str:
    match = re.search(r'<h2 id="verdict" class="headline">([^<]*)</h2>', html)
    assert match is not None
    return unescape(match[1])


def rows(html: str, name: str) -> dict[str, list[str]]:
    """The cells of a table's rows as HTML, by the name of the row."""
    start = html.index(f'id="table-{name}"')
    body = html[start : html.index("</table>", start)]
    found = {}
    for row in re.findall(r'<tr class="row".*?</tr>', body, flags=re.DOTALL):
        title = re.search(r'<th scope="row">(.*?)</th>', row)
        assert title is not None
        found[unescape(title[1])] = re.findall(r"<td.*?</td>", row, flags=re.DOTALL)
    return found


def partial_frame() -> pd.DataFrame:
    """Data sets of which er lacks one, and a seed of another."""
    runs = []
    for method, scores in {"finetune": (50, 40), "cl-coral": (70, 45), "er": (60, 42)}.items():
        for index, score in enumerate(scores):
            for seed in range(3):
                place = {"benchmark": f"data {index}", "condition": f"{method} {index}"}
                run = made_run(method, score / 100, seed=seed, **place)
                gap = method == "er" and (index or seed == 2)
                runs.append(run | ({"status": "missing", "score": None} if gap else {}))
    return frame_of_runs(runs)


def bare_section(*rows: Row, columns: tuple[Column, ...] = (Column("x", "X"),)) -> Section:
    return Section(Table("toy", "A toy", "", columns, rows), frame_of_runs([]))


def test_the_page_loads_nothing_and_its_links_have_targets() -> None:
    frame = shown(result(), result("finetune"))
    sections = (main_section(), main_section(name="second", title="A second table"))
    html = page(Report("a title", sections), draw_all(frame, Path()), source="runs")
    read = Reader(html)
    assert read.loaded == []
    assert len(read.links) > 3
    assert set(read.links) <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert html.count('id="plotly"') == 1
    packed = re.search(r'id="plotly">([^<]*)<', html)
    assert packed is not None
    script = gzip.decompress(base64.b64decode(packed[1])).decode()
    assert "plotly.js (cartesian - minified) v" in script[:200]
    assert len(html) < 1_500_000
    assert "default-src 'none'" in html
    for figure in ("scores", "accuracy-matrix", "step-time"):
        assert f'id="figure-{figure}"' in html
        assert f"farshore report runs --figure {figure} -o {figure}.csv" in html


def test_a_page_without_figures_has_no_plotting_script() -> None:
    assert len(page(Report("a title", (bare_section(),)))) < 100_000


def test_names_of_users_are_escaped_everywhere() -> None:
    drawings = draw_all(shown(result(order=(HOSTILE, "b"), name=HOSTILE)), Path())
    runs = [
        made_run(method, 0.5 + 0.1 * (method == "er"), result=RESULT, benchmark=HOSTILE)
        | {"target": HOSTILE, "order": f"{HOSTILE} → b", "sources": f"{HOSTILE} → b"}
        | {"row": f"{method} ({HOSTILE})", "variant": HOSTILE, "seed": seed}
        for method in ("er", "cl-coral")
        for seed in range(3)
    ]
    hostile = Report(
        HOSTILE,
        (section(frame_of_runs(runs), title=HOSTILE, about=HOSTILE, remarks=(HOSTILE,)),),
        Provenance(((HOSTILE, HOSTILE),), (HOSTILE,)),
        (HOSTILE,),
        HOSTILE,
        HOSTILE,
    )
    html = page(hostile, drawings, source=HOSTILE)
    assert "<script>alert" not in html
    assert Reader(html).tags.count("script") == 3
    assert html.count("&lt;script&gt;alert") >= 20
    assert visible(html).count(HOSTILE) >= 12


def test_published_numbers_stand_below_ours_and_can_be_hidden() -> None:
    html = page(Report("a title", (main_section(),)))
    assert 'id="paper"' in html
    cells = rows(html, "main")
    assert 'published </span>72.8 ± 2.6 <b class="below">−2.8</b>' in cells["cl-coral"][0]
    assert 'published </span>62.0 <b class="above">+1.0</b>' in cells["er"][1]
    assert "published" not in cells["finetune"][0]
    text = visible(html)
    assert "Compared with: Their table" in text
    assert "They had another memory." in text
    without = page(Report("a title", (main_section(None),)))
    assert 'class="no-paper"' in without
    for word in ('id="paper"', 'class="paper"', "published"):
        assert word not in without[without.index("<body") : without.index("<script")]


def test_rows_that_are_never_ranked_have_their_own_section() -> None:
    html = page(Report("a title", (main_section(),)))
    cells = rows(html, "main")
    assert list(cells) == ["cl-coral", "er", "finetune", "urm", "tent"]
    start = html.index('id="table-main"')
    text = visible(html[start : html.index("</table>", start)])
    below = text[text.index("Trained on all sources at once (never ranked)") :]
    assert below.index("urm") < below.index("Adapted to the target's inputs (never ranked) tent")
    assert "finetune" not in below
    assert 'class="best"' in cells["cl-coral"][0]
    assert 'class=""' in cells["urm"][0]


def test_missing_and_partial_cells_are_marked() -> None:
    html = page(Report("a title", (section(partial_frame()),)))
    first, second, average, *_ = rows(html, "main")["er"]
    assert re.search(r'class="\s*partial"', first)
    assert 'aria-label="note a"' in first
    assert re.search(r'class="\s*missing"', second)
    assert "data-value" not in second
    assert visible(second) == "missing"
    assert 'aria-label="note b"' in average
    text = visible(html)
    assert "a 2 of 3 runs" in text
    assert "b complete on 0 of 2 data sets" in text
    assert "The main table (partial)" in text
    assert "Not everything that was planned has run yet." in text


def test_a_cell_that_was_not_planned_is_empty_and_says_so() -> None:
    columns = (Column("x", "X"), Column("y", "Y"))
    row = Row("er", "er", "", "replay", "continual", {"x": Cell(5.0)})
    html = page(Report("a title", (bare_section(row, columns=columns),)))
    _, other = rows(html, "toy")["er"]
    assert 'title="not planned"' in other
    assert visible(other) == ""


def test_a_nan_mean_is_sorted_as_missing() -> None:
    cells = {"x": Cell(float("nan")), "y": Cell(1.0)}
    row = Row("er", "er", "", "replay", "continual", cells)
    columns = (Column("x", "X"), Column("y", "Y"))
    html = page(Report("a title", (bare_section(row, columns=columns),)))
    first, second = rows(html, "toy")["er"]
    assert (visible(first), "data-value" in first) == ("–", False)
    assert (visible(second), 'data-value="1.0"' in second) == ("1.0", True)


def test_generated_data_are_noted_once_in_the_head() -> None:
    runs = [made_run(method, 0.5, result=GENERATED) for method in ("finetune", "er")]
    html = page(Report("a title", (section(frame_of_runs(runs)),)))
    assert not any("<sup>" in cell for cells in rows(html, "main").values() for cell in cells)
    start = html.index('id="table-main"')
    assert "<em>generated data</em>" in html[start : html.index("</thead>", start)]
    assert "the corruptions were generated by farshore" in visible(html)


def test_one_data_set_has_one_rank() -> None:
    frame = made_frame({"finetune": {"a>b": [50]}, "er": {"a>b": [60]}}, result=RESULT)
    html = page(Report("a title", (section(frame),)))
    cells = rows(html, "main")
    assert {name: visible(of_row[1]) for name, of_row in cells.items()} == {
        "er": "1",
        "finetune": "2",
    }
    columns = re.findall(r'<th scope="col" aria-sort', html)
    assert all(len(of_row) == len(columns) - 1 for of_row in cells.values())


def test_the_verdict_comes_first_and_is_the_same_in_markdown() -> None:
    main = main_section()
    assert main.verdict is not None
    report = Report(
        "a title", (main,), next_command="farshore methods er", next_reason="to learn more"
    )
    html = page(report)
    assert headline(html) == main.verdict.sentence
    text = visible(html)
    places = [
        text.index(part)
        for part in (
            main.verdict.sentence,
            main.conditions,
            "Next, to learn more: farshore methods er",
            "Ranking",
            main.verdict.details[0],
            "Its numbers are made up.",
        )
    ]
    assert places == sorted(places)
    written = as_markdown(report)
    assert markdown_escape(main.verdict.sentence) in written
    assert written.index("No clear winner") < written.index("## The main table")
    assert "farshore methods er" in written


def test_a_row_without_all_data_sets_cannot_lead() -> None:
    scores = {name: of for name, of in SCORES.items() if name not in ("urm", "tent")}
    frame = over_data_sets({**scores, "si": [99.0, 99.0]})
    html = page(Report("a title", (section(frame),)))
    assert "si" not in headline(html).replace(",", "").split()
    assert "Not ranked because some scores are missing: si." in visible(html)
    start = html.index('<section class="ranking"')
    ranking = visible(html[start : html.index('id="details"')])
    heading = ranking.index("Not ranked because some scores are missing")
    assert ranking.index("finetune") < heading < ranking.index(" si ")


def test_the_verdict_is_that_of_the_table_with_the_most_data_sets() -> None:
    one = section(made_frame({"er": {"a>b": [60]}}, result=RESULT), name="one", title="One")
    report = Report("a title", (one, main_section()))
    assert report.main is report.sections[1]
    html = page(report)
    assert html.index('id="table-main"') < html.index('id="table-one"')


def test_the_metrics_of_the_ranking_can_be_switched() -> None:
    frame = made_frame(
        {"finetune": {"a>b": [74.5, 74.6, 74.4]}, "er": {"a>b": [70.0, 70.2, 70.1]}},
        balanced={"finetune": 50.7},
        classes=2,
        result=RESULT,
    )
    html = page(Report("a title", (section(frame),)))
    assert re.findall(r'<option value="(\w+)"', html)[:2] == ["accuracy", "balanced_accuracy"]
    assert html.count("no better than guessing</span>") == 2
    by_accuracy, by_balanced = re.findall(r'data-metric="\w+".*?</div>', html, flags=re.DOTALL)
    assert by_accuracy.index("finetune") < by_accuracy.index(">er")
    assert by_balanced.index(">er") < by_balanced.index("finetune")
    assert "hidden" in by_balanced.split(">")[0]
    text = visible(by_accuracy)
    assert "er 2 70.1 ± 0.1" in text
    assert "Minus er" in text
    assert "Intervals are over seeds at one target in one order" in visible(html)


def test_without_intervals_nothing_is_said_about_them() -> None:
    orders = {"a>b": [74.5], "b>a": [74.6]}
    frame = made_frame({"finetune": orders, "er": orders}, result=RESULT, metric="macro_f1")
    text = visible(page(Report("a title", (section(frame),))))
    assert "There are too few last sources for an interval (2 last sources)." in text
    assert "Intervals are over" not in text
    assert "toy, mean over 2 last sources macro F1" in text


def test_the_tests_over_data_sets_are_drawn() -> None:
    html = page(Report("a title", (main_section(),)))
    assert "Which methods are distinguishable" in html
    assert html.count("<svg") == 1
    assert "Methods under one bar are not distinguishable at the 5% level" in html


def test_a_report_without_scores_has_no_verdict() -> None:
    assert Report("nothing").main is None
    text = visible(page(Report("a title", problems=("everything is damaged",))))
    assert "everything is damaged" in text
    assert "winner" not in text
    unranked = replace(main_section(), verdict=None)
    html = page(Report("a title", (unranked,)))
    assert 'id="verdict"' not in html
    assert 'id="table-main"' in html


def test_letters_continue_after_z() -> None:
    known: dict[str, str] = {}
    letters = [letter_of(str(index), known) for index in range(54)]
    assert [letters[index] for index in (0, 25, 26, 27, 52)] == ["a", "z", "aa", "ab", "ba"]
    assert letter_of("0", known) == "a"


def test_missing_packages_of_the_page_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    with pytest.raises(FarshoreError, match=r"pip install '\.\[report\]'"):
        page(Report("a title"))


def test_the_files_of_the_page_exist_and_are_packaged() -> None:
    assert {path.name for path in module.FILES.iterdir()} >= {
        *("page.html", "frame.html", "parts.html"),
        *(module.PLOTLY, "plotly-cartesian.LICENSE.txt", "page.css", "page.js"),
    }
    assert '"report/files/*"' in (ROOT / "pyproject.toml").read_text()


def test_the_title_of_the_published_numbers_needs_numbers() -> None:
    other = replace(PUBLISHED, numbers={("si", "", "data 0"): (1.0, None)})
    html = page(Report("a title", (main_section(other),)))
    assert "Their table" not in visible(html)
