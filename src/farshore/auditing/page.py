"""The page of an audit: the verdict, an answer per question, tables and figures, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from .. import __version__
from ..report.page import drawn, figure_data, needed, page_file, page_templates, plotly_script
from ..results.verdict import interval
from ..results.words import percent
from .findings import Findings

if TYPE_CHECKING:
    from ..report.figures.shape import Drawing
    from .audit import Audit

ACCENT, OTHER, REFERENCE = "#0072b2", "#80868c", "#d55e00"


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

    drawings = [
        drawing
        for drawing in (_sites(findings), _methods(findings), _curve(findings), _shifts(findings))
        if drawing is not None
    ]
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


def _axis(findings: Findings) -> str:
    return f"{findings.ranking.metric.label} in %"


def _sites(findings: Findings) -> Drawing:
    from ..report.figures.shape import Drawing, View, canvas, text, transparent

    ordered = sorted(findings.scores, key=lambda site: findings.scores[site])
    figure = canvas(x=_axis(findings), y="", height=140 + 26 * len(ordered), legend=False)
    expected = findings.expectation
    if expected is not None:
        figure.add_vrect(
            x0=100 * expected.low,
            x1=100 * expected.high,
            fillcolor=transparent(ACCENT, 0.12),
            line_width=0,
        )
        figure.add_vline(x=100 * expected.mean, line={"color": ACCENT, "width": 2})
    if findings.majority is not None:
        figure.add_vline(
            x=100 * findings.majority, line={"color": REFERENCE, "dash": "dot", "width": 1.5}
        )
    figure.add_scatter(
        x=[100 * findings.scores[site] for site in ordered],
        y=[text(site) for site in ordered],
        mode="markers",
        marker={"size": 11, "color": ACCENT},
        hovertemplate="%{y}: %{x:.1f}%<extra></extra>",
    )
    figure.update_yaxes(type="category")
    return Drawing(
        "sites",
        "What to expect at a new site",
        "One dot per left-out site: the score of the method chosen without it. The band is the "
        "interval for a new site, the solid line the expected score, and the dotted line that of "
        "majority, which ignores the inputs.",
        [View("", figure)],
        pd.DataFrame({"site": ordered, "score": [findings.scores[site] for site in ordered]}),
    )


def _methods(findings: Findings) -> Drawing:
    from ..report.figures.shape import Drawing, View, canvas, text

    methods = {
        each.row: each.estimate
        for each in reversed(findings.ranking.standings)
        if each.estimate is not None
    }
    figure = canvas(x=_axis(findings), y="", height=140 + 30 * len(methods), legend=False)
    for row, found in methods.items():
        colour = ACCENT if row == findings.choice.method else OTHER
        figure.add_scatter(
            x=[100 * value for value in found.values.values()],
            y=[text(row)] * found.units,
            text=[text(site) for site in found.values],
            mode="markers",
            marker={"size": 6, "color": colour, "opacity": 0.5},
            hovertemplate="%{text}: %{x:.1f}%<extra></extra>",
        )
        error = {"type": "data", "array": [100 * (found.error or 0.0)], "thickness": 2}
        figure.add_scatter(
            x=[100 * found.mean],
            y=[text(row)],
            mode="markers",
            marker={"size": 12, "color": colour, "symbol": "diamond"},
            error_x={**error, "color": colour},
            hovertemplate="mean %{x:.1f}%<extra></extra>",
        )
    figure.update_yaxes(type="category")
    return Drawing(
        "methods",
        "Methods at left-out sites",
        "Diamonds: mean over sites with its standard error; dots: one per site. The chosen method "
        "is blue.",
        [View("", figure)],
        pd.DataFrame({"method": [*methods], "mean": [each.mean for each in methods.values()]}),
    )


def _curve(findings: Findings) -> Drawing | None:
    from ..report.figures.shape import Drawing, View, calm, canvas

    curve = findings.curve
    if curve is None:
        return None
    figure = canvas(x="sites learned", y=_axis(findings), height=340, legend=False)
    figure.add_scatter(
        x=list(curve.means),
        y=[100 * value for value in curve.means.values()],
        mode="lines+markers",
        line={"color": ACCENT},
        hovertemplate="%{x} sites: %{y:.1f}%<extra></extra>",
    )
    figure.update_xaxes(dtick=1 if len(curve.means) < 15 else None)
    calm(figure)
    return Drawing(
        "curve",
        "Would more sites help?",
        f"Mean score of {findings.choice.method} at sites that it had not learned yet, by the "
        "number of sites learned so far.",
        [View("", figure)],
        pd.DataFrame({"learned": list(curve.means), "score": list(curve.means.values())}),
    )


def _shifts(findings: Findings) -> Drawing | None:
    from ..report.figures.shape import Drawing, View, canvas, text

    if not findings.shifts:
        return None
    shifts = findings.shifts[::-1]
    figure = canvas(x="area under the ROC curve", y="", height=140 + 26 * len(shifts), legend=False)
    figure.add_bar(
        x=[shift.area - 0.5 for shift in shifts],
        base=0.5,
        y=[text(shift.site) for shift in shifts],
        orientation="h",
        marker={"color": [REFERENCE if shift.different else OTHER for shift in shifts]},
        customdata=[shift.area for shift in shifts],
        hovertemplate="%{y}: %{customdata:.2f}<extra></extra>",
    )
    figure.update_xaxes(range=[0.4, 1.02])
    figure.update_yaxes(type="category")
    return Drawing(
        "unlike",
        "Which site is unlike the others?",
        "How well a classifier tells each site from the others; 0.5 is chance. Orange: more than "
        "chance explains.",
        [View("", figure)],
        pd.DataFrame({"site": [s.site for s in shifts], "area": [s.area for s in shifts]}),
    )
