"""The page: one HTML file with tables, figures, style and scripts; it loads no other files."""

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import needs
from ..results.summary import Ranking, Standing, metrics_of, rank
from ..results.tables import SECTIONS
from .build import Report
from .cells import cell_text, fill, legend, letter_of, metric_label, number

if TYPE_CHECKING:
    from jinja2 import Environment

    from .figures.shape import Drawing, View

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


def page(report: Report, drawings: "Sequence[Drawing]" = (), *, source: str = "") -> str:
    """The whole page; `source` names the runs in the commands below figures, quoted."""
    from .figures.critical_difference import svg

    first = main_figure(report)
    opening = report.main if first is not None else None
    sections, rankings = list(report.sections), []
    if opening is not None and first is not None:  # the verdict's table and figure come first
        sections.sort(key=lambda section: section is not opening)
        drawings = [first, *drawings]
        rankings = [rank(opening.frame, name) for name in metrics_of(opening.frame)]
    contents = [(f"table-{each.table.name}", each.table.title) for each in sections]
    contents += [(f"figure-{drawing.name}", drawing.title) for drawing in drawings]
    facts = [("provenance", "Where the numbers come from")] if report.provenance.facts else []
    return rendered(
        "page.html",
        drawings,
        report=report,
        problems=report.problems,
        opening=opening,
        rankings=rankings,
        first_figure=int(opening is not None),
        sections=sections,
        diagrams=[svg(each.significance) if each.significance else None for each in sections],
        source=source,
        contents=[*contents, *facts],
    )


def rendered(template: str, drawings: "Sequence[Drawing]", **values: Any) -> str:
    """A page by its template, with the figures, the style and the script inside."""
    needed()
    from markupsafe import Markup

    # Plotly's script for cartesian figures, a third of the whole, stays compressed in the page.
    script = b64encode((FILES / PLOTLY).read_bytes()).decode() if drawings else ""
    data = Markup(figure_data(drawings)) if drawings else ""
    css, js = (Markup(page_file(name)) for name in ("page.css", "page.js"))
    inside = {"version": __version__, "css": css, "js": js, "plotly": script, "data": data}
    return page_templates().get_template(template).render(**values, **inside, drawings=drawings)


def main_figure(report: Report) -> "Drawing | None":
    """The figure of the scores behind the verdict; None if no table is about them."""
    from .figures.scores import drawing

    main = report.main
    if main is None or main.verdict is None or not main.verdict.ranking.standings:
        return None
    return drawing(main.frame, main.verdict.ranking, main.conditions)


def ranked_sections(ranking: Ranking) -> list[tuple[str, list[Standing]]]:
    """The rows of a ranking by the heading above them; the ranked ones have none."""
    sections: dict[str, list[Standing]] = {}
    for each in ranking.standings:
        heading = "" if each.rank is not None else SECTIONS.get(each.kind, each.kind)
        if each.rank is None and each.kind == "continual":
            heading = "Not ranked because some scores are missing"
        sections.setdefault(heading, []).append(each)
    return list(sections.items())


def page_templates() -> "Environment":
    """The templates of all pages; texts are escaped, and a forgotten name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    blocks = partial(Environment, trim_blocks=True, lstrip_blocks=True, autoescape=True)
    templates = blocks(loader=FileSystemLoader(FILES), undefined=StrictUndefined)
    named = (fill, legend, letter_of, metric_label, number, ranked_sections)
    templates.globals |= {each.__name__: each for each in named} | {"text_of": cell_text}
    return templates


def figure_data(drawings: "Iterable[Drawing]") -> str:
    """The figures as JSON inside a page: no NaN, and no characters that could end the script."""

    def shown(view: "View") -> dict[str, Any]:
        figure = json.loads(view.figure.to_json())
        figure["layout"].pop("template", None)
        return {"note": view.note, **{part: _finite(figure[part]) for part in ("data", "layout")}}

    figures = [{"name": each.name, "views": list(map(shown, each.views))} for each in drawings]
    text = json.dumps(figures, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


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
def page_file(name: str) -> str:
    """A file of the page's style or script."""
    return (FILES / name).read_text(encoding="utf-8")
