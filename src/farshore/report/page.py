"""The page: one HTML file with tables, figures, style and scripts; it loads no other files."""

from __future__ import annotations

import json
import math
import string
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import needs
from ..results.summary import Ranking, Standing, metrics_of, rank
from ..results.tables import SECTIONS
from .build import Report, Section
from .cells import cell_text, fill, legend, metric_label, number

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


@dataclass(frozen=True)
class Opening:
    """The first screen: the section of the verdict, the main figure, and a ranking per metric."""

    section: Section
    drawing: Drawing
    rankings: list[Ranking]


def page(report: Report, drawings: Sequence[Drawing] = (), *, source: str = "") -> str:
    """The whole page as text.

    `source` names the runs in the commands below the figures, quoted for the shell.
    """
    needed()
    from markupsafe import Markup

    opening = _opening(report)
    sections = list(report.sections)
    if opening is not None:  # the verdict's table comes first
        sections.sort(key=lambda section: section is not opening.section)
        drawings = [opening.drawing, *drawings]
    return (
        page_templates()
        .get_template("page.html")
        .render(
            report=report,
            problems=report.problems,
            opening=opening,
            first_figure=int(opening is not None),
            sections=sections,
            diagrams=[_diagram(section, Markup) for section in sections],
            drawings=[drawn(drawing, source) for drawing in drawings],
            contents=_contents(sections, drawings, report),
            version=__version__,
            css=Markup(page_file("page.css")),
            js=Markup(page_file("page.js")),
            plotly=plotly_script() if drawings else "",
            data=Markup(figure_data(drawings)) if drawings else "",
        )
    )


def _opening(report: Report) -> Opening | None:
    """The first screen; None if no table is about scores on the target."""
    main = report.main
    drawing = main_figure(report)
    if main is None or drawing is None:
        return None
    return Opening(main, drawing, [rank(main.frame, name) for name in metrics_of(main.frame)])


def main_figure(report: Report) -> Drawing | None:
    """The figure of the scores behind the verdict; None if no table is about them."""
    from .figures.scores import drawing

    main = report.main
    if main is None or main.verdict is None or not main.verdict.ranking.standings:
        return None
    return drawing(main.frame, main.verdict.ranking, main.conditions)


def _diagram(section: Section, markup: Any) -> Any:
    from .figures.critical_difference import svg

    significance = section.verdict.significance if section.verdict is not None else None
    drawn = svg(significance) if significance is not None else None
    return markup(drawn) if drawn is not None else None


def ranked_sections(ranking: Ranking) -> list[tuple[str, list[Standing]]]:
    """The rows of a ranking by the heading above them; the ranked ones have none."""
    sections: dict[str, list[Standing]] = {}
    for each in ranking.standings:
        heading = "" if each.rank is not None else SECTIONS.get(each.kind, each.kind)
        if each.rank is None and each.kind == "continual":
            heading = "Not ranked because some scores are missing"
        sections.setdefault(heading, []).append(each)
    return list(sections.items())


class Notes:
    """Letters for the texts of notes: a, b, ..., z, aa, ab, ..."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def letter(self, text: str) -> str:
        """The letter of a text; a new text gets the next one."""
        if text not in self.letters:
            index, letters = len(self.letters), ""
            while index >= 0:
                letters = string.ascii_lowercase[index % 26] + letters
                index = index // 26 - 1
            self.letters[text] = letters
        return self.letters[text]


def page_templates() -> Environment:
    """The templates of all pages; texts are escaped, and a forgotten name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(FILES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "fill": fill,
        "legend": legend,
        "metric_label": metric_label,
        "notes": Notes,
        "number": number,
        "ranked_sections": ranked_sections,
        "text_of": cell_text,
    }
    return templates


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


def _contents(
    sections: Sequence[Section], drawings: Sequence[Drawing], report: Report
) -> list[tuple[str, str]]:
    entries = [(f"table-{each.table.name}", each.table.title) for each in sections]
    entries += [(f"figure-{drawing.name}", drawing.title) for drawing in drawings]
    return (
        [*entries, ("provenance", "Where the numbers come from")]
        if report.provenance.facts
        else entries
    )
