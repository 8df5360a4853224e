"""The page of an audit: the verdict, an answer per question, tables and figures, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import __version__
from ..report.page import drawn, figure_data, needed, page_file, page_templates, plotly_script
from ..results.summary import metrics_of, rank
from ..results.verdict import judge
from ..results.words import percent
from .findings import Findings

if TYPE_CHECKING:
    from .audit import Audit


@dataclass(frozen=True)
class PlainTable:
    """A table of texts."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def audit_page(done: Audit, findings: Findings) -> str:
    """The whole page as text."""
    needed()
    from markupsafe import Markup

    from .figures import figures

    drawings = figures(findings, done.frame)
    return (
        page_templates()
        .get_template("audit.html")
        .render(
            audit=done,
            tables=[_class_table(findings), _site_table(findings)],
            rankings=[rank(done.frame, name) for name in metrics_of(done.frame)],
            together=judge(done.frame).together,
            drawings=[drawn(drawing, "") for drawing in drawings],
            version=__version__,
            css=Markup(page_file("page.css")),
            js=Markup(page_file("page.js")),
            plotly=plotly_script(),
            data=Markup(figure_data(drawings)),
        )
    )


def _class_table(findings: Findings) -> PlainTable:
    rows = [
        [
            each.name,
            f"{each.rows:,}",
            percent(each.sensitivity),
            f"{percent(each.lowest_sensitivity)} ({each.lowest_at})"
            if each.lowest_at is not None
            else "–",
            percent(each.specificity),
        ]
        for each in findings.classes
    ]
    return PlainTable(
        f"Classes at left-out sites, {findings.choice.method}",
        ["class", "rows", "sensitivity", "lowest", "specificity"],
        rows,
        "In %. Sensitivity: the share of the class's rows that are recognised. Specificity: the "
        "share of the rows of other classes that are not mistaken for it. Means over sites with at "
        "least 5 such rows.",
    )


def _site_table(findings: Findings) -> PlainTable:
    rows = [
        [
            shift.site,
            f"{shift.rows:,}",
            percent(findings.scores.get(shift.site)),
            findings.choice.without.get(shift.site, "–"),
            f"{shift.area:.2f}" + ("" if shift.different else " (chance)"),
            ", ".join(f"{each.column} {each.distance:.2f}" for each in shift.columns[:3]),
        ]
        for shift in findings.shifts
    ]
    return PlainTable(
        "Sites",
        ["site", "rows", "score", "chosen without it", "separation", "columns that differ most"],
        rows,
        "Score: in %, by the method chosen without the site. Separation: how well a classifier "
        "tells rows of the site from rows of other sites, as the area under the ROC curve; 0.50 is "
        "chance. Columns: with the largest gap between their distribution functions.",
    )
