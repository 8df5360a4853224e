"""The page of an audit: the verdict, an answer per question, tables and figures, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import __version__
from ..report.page import drawn, figure_data, needed, page_file, page_templates, plotly_script
from ..results.verdict import interval
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
            tables=[_method_table(findings), _class_table(findings), _site_table(findings)],
            drawings=[drawn(drawing, "") for drawing in drawings],
            version=__version__,
            css=Markup(page_file("page.css")),
            js=Markup(page_file("page.js")),
            plotly=plotly_script(),
            data=Markup(figure_data(drawings)),
        )
    )


def _method_table(findings: Findings) -> PlainTable:
    ranking = findings.ranking
    rows = []
    for each in ranking.standings:
        found, difference = each.estimate, each.difference
        error = f" ± {ranking.metric.text(found.error)}" if found and found.error else ""
        notes = [each.kind] if each.kind != "continual" else []
        notes += [f"{each.runs} of {each.planned} runs"] if not each.complete else []
        notes += ["no better than guessing"] if each.guessing else []
        notes += ["chosen"] if each.row == findings.choice.method else []
        rows.append(
            [
                each.row,
                str(each.rank or "–"),
                ranking.metric.text(found.mean) + error if found else "–",
                f"{ranking.metric.text(found.values[found.worst])} ({found.worst})"
                if found
                else "–",
                interval(difference, ranking.metric) if difference is not None else "–",
                ", ".join(notes),
            ]
        )
    return PlainTable(
        "Methods at left-out sites",
        ["method", "rank", "mean ± error", "worst site", f"minus {ranking.reference}", ""],
        rows,
        f"{ranking.metric.label} in %: mean and standard error over sites, and differences paired "
        "by site, order and seed. Only candidates have a rank: majority ignores the inputs, joint "
        "needs all data at once.",
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
