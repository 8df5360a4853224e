"""The page: one HTML file with tables, figures, style and scripts; it loads no other files."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import needs
from .conditions import conditions
from .overlay import NO_OVERLAY, Overlay
from .page_ranking import PageRanking, page_ranking
from .page_table import PageTable, number, page_table
from .ranking import rankings
from .table import Report, Significance, Table
from .verdict import Verdict, judge

if TYPE_CHECKING:
    from jinja2 import Environment

    from .figures.shape import Drawing

FILES = Path(__file__).parent / "files"
# https://www.npmjs.com/package/plotly.js-cartesian-dist-min, version 4.1.1, MIT licence.
PLOTLY = "plotly-cartesian.min.js.gz"


def needed() -> None:
    """Raise an error with the command to type if plotly or Jinja2 is not installed."""
    try:
        import jinja2  # noqa: F401
        import plotly  # noqa: F401
    except ImportError:
        raise needs("report", "the page needs plotly and Jinja2") from None


@dataclass(frozen=True)
class PageDrawing:
    """A figure as the template shows it; `choices` are the views by their heading."""

    name: str
    title: str
    says: str
    views: Sequence[str]
    choices: list[tuple[str, list[tuple[int, str]]]]
    command: str
    height: int
    shows: str


@dataclass
class ShownTable:
    """A table with the results of the test on its ranks."""

    page: PageTable
    diagram: Any = None
    sentences: tuple[str, ...] = ()
    intervals: tuple[tuple[str, str, str], ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)


@dataclass(frozen=True)
class Opening:
    """The first screen: the verdict, its conditions, the main figure and the ranking."""

    table: Table
    verdict: Verdict
    conditions: str
    drawing: Drawing
    rankings: list[PageRanking]


def page(
    report: Report,
    drawings: Sequence[Drawing] = (),
    *,
    source: str = "",
    overlay: Overlay = NO_OVERLAY,
) -> str:
    """The whole page as text.

    `source` names the runs in the commands below the figures, quoted for the shell.
    """
    needed()
    from markupsafe import Markup

    opening = _opening(report, overlay)
    if opening is not None:  # the verdict's table comes first
        main = opening.table
        report = replace(
            report, tables=tuple(sorted(report.tables, key=lambda table: table is not main))
        )
        drawings = [opening.drawing, *drawings]
    tables = [_table(page_table(table), Markup) for table in report.tables]
    return (
        page_templates()
        .get_template("page.html")
        .render(
            report=report,
            problems=report.problems,
            opening=opening,
            first_figure=int(opening is not None),
            tables=tables,
            drawings=[drawn(drawing, source) for drawing in drawings],
            contents=_contents(report, drawings),
            paper=report.has_paper,
            version=__version__,
            css=Markup(page_file("page.css")),
            js=Markup(page_file("page.js")),
            plotly=plotly_script() if drawings else "",
            data=Markup(figure_data(drawings)) if drawings else "",
        )
    )


def _opening(report: Report, overlay: Overlay) -> Opening | None:
    """The first screen; None if no table is about scores on the target."""
    from .contest_scores import drawing

    table = report.main_table
    if table is None or table.contest is None:
        return None
    verdict = judge(table.contest)
    if not verdict.standings:
        return None
    line = conditions(table.contest)
    ranked = rankings(table.contest, verdict)
    return Opening(
        table,
        verdict,
        line,
        drawing(table.contest, ranked[0], overlay, line),
        [page_ranking(each, overlay) for each in ranked],
    )


def page_templates() -> Environment:
    """The templates of all pages; texts are escaped, and a forgotten name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(FILES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def figure_data(drawings: Iterable[Drawing]) -> str:
    """The figures as JSON inside a page: no NaN, and no characters that could end the script."""
    figures = [
        {
            "name": drawing.name,
            "views": [
                {"note": view.note, **_plain(json.loads(view.figure.to_json()))}
                for view in drawing.views
            ],
        }
        for drawing in drawings
    ]
    text = json.dumps(figures, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(figure: dict[str, Any]) -> dict[str, Any]:
    figure["layout"].pop("template", None)
    return {"data": _finite(figure["data"]), "layout": _finite(figure["layout"])}


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value


@cache
def plotly_script() -> str:
    """Plotly's script for cartesian figures, compressed; the page unpacks it.

    It is a third of the whole library, which the Python package contains, and compressed a tenth.
    """
    return b64encode((FILES / PLOTLY).read_bytes()).decode()


@cache
def page_file(name: str) -> str:
    """A file of the page's style or script."""
    return (FILES / name).read_text(encoding="utf-8")


def _table(shown: PageTable, markup: Any) -> ShownTable:
    from ..results import data_sets
    from .figures.critical_difference import svg

    significance = shown.table.significance
    if significance is None:
        return ShownTable(shown)
    labels = {name: significance.labels.get(name, name) for name in significance.mean_ranks}
    diagram = svg(
        data_sets.Significance(
            datasets=significance.datasets,
            mean_ranks={labels[name]: rank for name, rank in significance.mean_ranks.items()},
            friedman=None,
            critical=significance.critical_difference,
            cliques=tuple(
                tuple(labels[name] for name in clique) for clique in significance.cliques
            ),
            pairs=(),
            sentences=(),
        )
    )
    return ShownTable(
        shown,
        markup(diagram) if diagram else None,
        significance.sentences,
        _intervals(significance),
    )


def _intervals(test: Significance) -> tuple[tuple[str, str, str], ...]:
    def interval(pair: tuple[float, float] | None, sign: bool) -> str:
        return (
            f"{number(pair[0], sign=sign)} to {number(pair[1], sign=sign)}"
            if pair is not None
            else "–"
        )

    return tuple(
        (
            test.labels.get(name, name),
            interval(test.bootstrap.get(name), False),
            interval(test.bootstrap_difference.get(name), True),
        )
        for name in sorted(test.bootstrap, key=lambda name: test.mean_ranks.get(name, math.inf))
    )


def drawn(drawing: Drawing, source: str) -> PageDrawing:
    """A figure for the template; `source` names the runs in the command below it, if any."""
    choices: dict[str, list[tuple[int, str]]] = {}
    for index, view in enumerate(drawing.views):
        choices.setdefault(view.of, []).append((index, view.label))
    command = (
        f"farshore report {source} --figure {drawing.name} -o {drawing.name}.csv" if source else ""
    )
    views = [view.label for view in drawing.views]
    height = int(drawing.views[0].figure.layout.height or 0)
    return PageDrawing(
        drawing.name,
        drawing.title,
        drawing.says,
        views,
        list(choices.items()),
        command,
        height,
        drawing.shows,
    )


def _contents(report: Report, drawings: Sequence[Drawing]) -> list[tuple[str, str]]:
    entries = [(f"table-{table.name}", table.title) for table in report.tables]
    entries += [(f"figure-{drawing.name}", drawing.title) for drawing in drawings]
    return (
        [*entries, ("provenance", "Where the numbers come from")]
        if report.provenance.facts
        else entries
    )
