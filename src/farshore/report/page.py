"""The page: one HTML file with its tables, figures, style and scripts inside. Nothing is loaded
from anywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import FarshoreError
from .answer import answer
from .page_table import PageTable, number, page_table
from .table import Report, Significance

if TYPE_CHECKING:
    from .figures.shape import Drawing

FILES = Path(__file__).parent / "files"
INSTALL = "the page needs plotly and Jinja2: pip install '.[report]' from a checkout"


def needed() -> None:
    """Say how to install what the page is made with, where it is not there."""
    try:
        import jinja2  # noqa: F401
        import plotly  # noqa: F401
    except ImportError:
        raise FarshoreError(INSTALL) from None


@dataclass(frozen=True)
class PageDrawing:
    """A figure as the template shows it: views to choose from, under what they are of."""

    name: str
    title: str
    says: str
    views: Sequence[str]
    choices: list[tuple[str, list[tuple[int, str]]]]
    command: str
    height: int


@dataclass
class ShownTable:
    """A table with what the test on its ranks says."""

    page: PageTable
    diagram: Any = None
    sentences: tuple[str, ...] = ()
    intervals: tuple[tuple[str, str, str], ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)


def page(
    report: Report, drawings: Sequence[Drawing] = (), *, paper: bool = True, source: str = ""
) -> str:
    """The whole page as text. `source` is what to type for the runs, quoted, for the commands
    beside the figures.
    """
    needed()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    answered = answer(report)
    if answered is not None:  # its table stands first
        report = replace(
            report,
            tables=tuple(sorted(report.tables, key=lambda table: table is not answered.table)),
        )
    paper = paper and any(table.has_paper for table in report.tables)
    tables = [
        _table(found, Markup, paper=paper)
        for found in (page_table(table, paper=paper) for table in report.tables)
    ]
    if answered is not None:  # what stands at the top is not said twice
        for shown in tables:
            shown.sentences = () if shown.page.table is answered.table else shown.sentences
    environment = Environment(
        loader=FileSystemLoader(FILES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        report=report,
        problems=report.problems,
        answer=answered,
        tables=tables,
        drawings=[_drawing(drawing, source) for drawing in drawings],
        contents=_contents(report, drawings),
        paper=paper,
        version=__version__,
        css=Markup(_file("page.css")),
        js=Markup(_file("page.js")),
        plotly=Markup(plotly_script()) if drawings else "",
        data=Markup(figure_data(drawings)) if drawings else "",
    )


def figure_data(drawings: Iterable[Drawing]) -> str:
    """The figures as JSON that may stand inside a page: no NaN, and no sign that could end the
    script.
    """
    found = [
        {
            "name": drawing.name,
            "views": [
                {"note": view.note, **_plain(json.loads(view.figure.to_json()))}
                for view in drawing.views
            ],
        }
        for drawing in drawings
    ]
    text = json.dumps(found, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _plain(figure: dict[str, Any]) -> dict[str, Any]:
    figure["layout"].pop("template", None)
    return {"data": _finite(figure["data"]), "layout": _finite(figure["layout"])}


def _finite(value: Any) -> Any:
    """Without NaN and infinity, which are no JSON."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value


@cache
def plotly_script() -> str:
    """Plotly's own script, once a page."""
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script.replace("</script", "<\\/script")


@cache
def _file(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def _table(found: PageTable, markup: Any, *, paper: bool) -> ShownTable:
    from .figures.critical_difference import svg

    significance = found.table.significance
    if significance is None:
        return ShownTable(found)
    drawn = svg(significance)
    return ShownTable(
        found, markup(drawn) if drawn else None, significance.sentences, _intervals(significance)
    )


def _intervals(found: Significance) -> tuple[tuple[str, str, str], ...]:
    def interval(pair: tuple[float, float] | None, sign: bool) -> str:
        return (
            f"{number(pair[0], sign=sign)} to {number(pair[1], sign=sign)}"
            if pair is not None
            else "–"
        )

    return tuple(
        (
            found.labels.get(name, name),
            interval(found.bootstrap.get(name), False),
            interval(found.bootstrap_difference.get(name), True),
        )
        for name in sorted(found.bootstrap, key=lambda each: found.mean_ranks.get(each, math.inf))
    )


def _drawing(drawing: Drawing, source: str) -> PageDrawing:
    choices: dict[str, list[tuple[int, str]]] = {}
    for place, view in enumerate(drawing.views):
        choices.setdefault(view.of, []).append((place, view.label))
    command = (
        f"farshore report {source} --figure {drawing.name} -o {drawing.name}.csv" if source else ""
    )
    views = [view.label for view in drawing.views]
    height = int(drawing.views[0].figure.layout.height or 0)
    return PageDrawing(
        drawing.name, drawing.title, drawing.says, views, list(choices.items()), command, height
    )


def _contents(report: Report, drawings: Sequence[Drawing]) -> list[tuple[str, str]]:
    found = [(f"table-{table.name}", table.title) for table in report.tables]
    found += [(f"figure-{drawing.name}", drawing.title) for drawing in drawings]
    return (
        [*found, ("provenance", "Where the numbers come from")]
        if report.provenance.facts
        else found
    )
