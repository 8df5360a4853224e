"""The figures of an audit: what to expect, the methods, more sites, and which sites differ."""

from __future__ import annotations

import pandas as pd

from ..report.figures import scores
from ..report.figures.shape import Drawing, View, calm, canvas, on_target, text, transparent
from .curve import Curve
from .findings import Findings

ACCENT, OTHER, REFERENCE = "#0072b2", "#80868c", "#d55e00"


def figures(findings: Findings, frame: pd.DataFrame) -> list[Drawing]:
    """The figures in the order of the page."""
    shown = [_sites(findings), scores.drawing(frame, findings.ranking, findings.title)]
    if findings.curve is not None:
        shown.append(_curve(findings, findings.curve))
    return [*shown, _shifts(findings)]


def _sites(findings: Findings) -> Drawing:
    ordered = sorted(findings.scores, key=lambda site: findings.scores[site])
    figure = canvas(
        x=on_target(findings.ranking.metric), y="", height=140 + 26 * len(ordered), legend=False
    )
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


def _curve(findings: Findings, curve: Curve) -> Drawing:
    figure = canvas(
        x="sites learned", y=on_target(findings.ranking.metric), height=340, legend=False
    )
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


def _shifts(findings: Findings) -> Drawing:
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
