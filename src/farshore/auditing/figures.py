"""The figures of an audit, in the order of its page: what to expect at a new site comes first."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..deployment.unlike import SiteShift
from ..report.figures import scores
from ..report.figures.accuracy_matrix import heat_map
from ..report.figures.shape import Drawing, View, calm, canvas, on_target, text, transparent
from ..results.select import observed
from ..results.summary import Unit, by_unit, scores_of
from ..runs.result import Result
from .curve import Curve
from .designs import UNPROTECTED
from .findings import FEWEST_OF_CLASS, Findings, runs_at

ACCENT, OTHER, REFERENCE = "#0072b2", "#80868c", "#d55e00"
# A curve of a site has a point where at least so many rows have about the same confidence.
FEWEST_ROWS = 5
# More sites are not drawn as lines one over the other, and not one view each.
MOST_SITES = 30
ALL = "all sites"


def figures(findings: Findings, frame: pd.DataFrame) -> list[Drawing]:
    """The figures in the order of the page."""
    frame = observed(frame)
    sites = {site: runs_at(frame, site, findings.choice) for site in findings.scores}
    at = {site: list(runs["result"]) for site, runs in sites.items()}
    curve = findings.curve
    return [
        expected_scores(findings),
        scores.drawing(frame, findings.ranking, findings.title),
        *_classes(at),
        *_reliability(at),
        *_residuals(findings, at),
        *([_curve(findings, curve)] if curve is not None else []),
        *_orders(findings, frame),
        *_columns(findings.shifts),
    ]


def _heat(
    x: Sequence[str],
    y: Sequence[str],
    shares: np.ndarray,
    *,
    titles: tuple[str, str],
    hover: str,
    cells: Sequence[Sequence[str]] | None = None,
) -> go.Figure:
    """Shares as a heat map with a number in every cell; an empty cell is NaN."""
    values = [[None if math.isnan(each) else 100 * each for each in row] for row in shares]
    x, y, height = [text(name) for name in x], [text(name) for name in y], 150 + 30 * len(y)
    return heat_map(x, y, values, titles=titles, hover=hover, height=height, cells=cells)


def _counts(results: Sequence[Result], names: Sequence[str]) -> np.ndarray:
    """The mean table of true and predicted classes, for all classes of the audit."""
    table = np.zeros((len(names), len(names)))
    for result in results:
        assert result.target is not None
        own = [names.index(name) for name in result.classes]
        confusion = np.asarray(result.target.confusion)[: len(own), : len(own)]
        table[np.ix_(own, own)] += confusion / len(results)
    return table


def _confusion(names: Sequence[str], table: np.ndarray) -> go.Figure:
    return _heat(
        names,
        names,
        table / np.where(rows := table.sum(axis=1, keepdims=True), rows, math.nan),
        titles=("predicted", "true class"),
        hover="%{z:.1f}% of the rows of %{y} are taken for %{x}",
        cells=[[f"{count:.0f}" if count else "" for count in row] for row in table],
    )


def _classes(at: Mapping[str, list[Result]]) -> list[Drawing]:
    """The confusion per site, and how well each class is recognised at each site."""
    names = list(dict.fromkeys(name for of in at.values() for each in of for name in each.classes))
    if not names:  # labels are numbers
        return []
    counts = {site: _counts(results, names) for site, results in at.items()}
    shown = {ALL: np.sum(list(counts.values()), axis=0)}
    shown |= counts if len(counts) <= MOST_SITES else {}
    confusions = [View(site, _confusion(names, table)) for site, table in shown.items()]
    tables = np.array(list(counts.values()))
    rows = tables.sum(axis=2)
    hits = np.diagonal(tables, axis1=1, axis2=2)
    recognised = hits / np.where(rows >= FEWEST_OF_CLASS, rows, math.nan)  # NaN with too few rows
    lines = [
        {"site": site, "true": true, "predicted": predicted, "rows": float(table[k, p])}
        for site, table in counts.items()
        for k, true in enumerate(names)
        for p, predicted in enumerate(names)
    ]
    hover = "%{y}: %{z:.1f}% of the rows of %{x} are recognised"
    by_class = _heat(names, list(counts), recognised, titles=("class", ""), hover=hover)
    return [
        Drawing(
            "confusion",
            "Which classes are taken for which?",
            "Rows at left-out sites by true and predicted class; the colour is the share of the "
            "true class. Means over the runs at a site.",
            confusions,
            pd.DataFrame(lines),
        ),
        Drawing(
            "classes",
            "How well is each class recognised at each site?",
            "The share of a class's rows at a left-out site that are recognised, in %; empty with "
            f"fewer than {FEWEST_OF_CLASS} such rows.",
            [View("", by_class)],
            pd.DataFrame(recognised, columns=names).assign(site=list(counts)),
        ),
    ]


def _reliability(at: Mapping[str, list[Result]]) -> list[Drawing]:
    """Confidence and the share of right answers, for all sites together and for each of them."""
    lines = [
        {"site": site, "rows": rows, "confidence": confidence, "right": right}
        for site, results in at.items()
        for result in results
        if result.target is not None
        for rows, confidence, right in result.target.reliability
    ]
    if not lines:
        return []
    frame = pd.DataFrame(lines)
    views = []
    for site in [ALL, *(at if len(at) <= MOST_SITES else ())]:
        part = _pooled(frame if site == ALL else frame[frame["site"] == site])
        figure = canvas(x="confidence, %", y="right, %", height=360, legend=False)
        figure.add_scatter(
            x=[0, 100], y=[0, 100], mode="lines", line={"color": OTHER, "dash": "dot"}
        )
        figure.add_scatter(
            x=100 * part["confidence"],
            y=100 * part["right"],
            mode="lines+markers",
            line={"color": ACCENT},
            customdata=part["rows"],
            hovertemplate="%{customdata:.0f} rows: %{x:.0f}% sure, %{y:.0f}% right<extra></extra>",
        )
        figure.update_xaxes(range=[-2, 102])
        figure.update_yaxes(range=[-2, 102])
        views.append(View(site, figure))
    says = (
        "How many answers are right, by how sure the model says it is, at sites that it never saw. "
        "On the dotted line, stated and true probability agree; below it, the model is too sure. "
        f"Points stand for at least {FEWEST_ROWS} rows."
    )
    return [Drawing("reliability", "Can the probabilities be trusted?", says, views, frame)]


def _residuals(findings: Findings, at: Mapping[str, list[Result]]) -> list[Drawing]:
    """Of numbers: the errors by site, and predictions beside labels."""
    lines = [
        {"site": site, "label": label, "predicted": predicted, "error": predicted - label}
        for site, of in at.items()
        for label, predicted in (of[0].target.examples if of and of[0].target else ())
    ]
    if not lines:
        return []
    frame = pd.DataFrame(lines)
    unit = findings.ranking.metric.unit
    sites = list(dict.fromkeys(frame["site"]))[:MOST_SITES]
    errors = canvas(x="prediction - label" + unit, y="", height=140 + 26 * len(sites), legend=False)
    for site in sites:
        own = frame[frame["site"] == site]["error"]
        errors.add_box(x=own, name=text(site), orientation="h", marker={"color": ACCENT})
    errors.add_vline(x=0, line={"color": OTHER, "dash": "dot"})
    errors.update_yaxes(type="category", autorange="reversed")
    views = []
    ends = [float(edge) for edge in (frame["label"].min(), frame["label"].max())]
    for site in [ALL, *sites]:
        part = frame if site == ALL else frame[frame["site"] == site]
        figure = canvas(x="label" + unit, y="prediction" + unit, height=360, legend=False)
        figure.add_scatter(x=ends, y=ends, mode="lines", line={"color": OTHER, "dash": "dot"})
        figure.add_scatter(
            x=part["label"],
            y=part["predicted"],
            mode="markers",
            marker={"color": ACCENT, "size": 5, "opacity": 0.5},
            text=[text(name) for name in part["site"]],
            hovertemplate="%{text}: %{x:.4g}, predicted %{y:.4g}<extra></extra>",
        )
        views.append(View(site, figure))
    says = "Rows at sites that the model never saw, at most 200 of each, in the label's unit."
    off = (
        f"{says} A box that is beside the dotted line is a site at which all predictions are too "
        "high or too low."
    )
    same = f"{says} On the dotted line, both are the same."
    title = "How far off are the predictions at each site?"
    return [
        Drawing("residuals", title, off, [View("", errors)], frame),
        Drawing("predicted", "Do predictions follow the labels?", same, views, frame),
    ]


def _pooled(frame: pd.DataFrame) -> pd.DataFrame:
    """Bins of several runs and sites as one curve, weighed by rows; small ones are left out."""
    shares = ["confidence", "right"]
    weighed = frame[["rows"]].join(frame[shares].mul(frame["rows"], axis=0))
    total = weighed.groupby(np.ceil(10 * frame["confidence"])).sum()
    total = total[total["rows"] >= FEWEST_ROWS]
    return total.assign(**{name: total[name] / total["rows"] for name in shares})


def _orders(findings: Findings, frame: pd.DataFrame) -> list[Drawing]:
    """The score at each left-out site in every order: of the chosen method, and of fine-tuning."""
    metric, views, lines = findings.ranking.metric, [], []
    for row in dict.fromkeys((findings.choice.method, UNPROTECTED)):
        by_site = {
            site: by_unit(scores_of(frame[frame["target"] == site], row), Unit.ORDER)
            for site in findings.scores
        }
        if all(len(of) < 2 for of in by_site.values()):
            continue
        figure = canvas(x=on_target(metric), y="", height=140 + 26 * len(by_site), legend=False)
        for site, of in by_site.items():
            figure.add_scatter(
                x=[metric.scale * value for value in of.values()],
                y=[text(site)] * len(of),
                mode="lines+markers",
                line={"color": OTHER, "width": 2},
                marker={"size": 10, "color": ACCENT},
                text=[text(order) for order in of],
                hovertemplate="%{y}: %{x:.4g}, order %{text}<extra></extra>",
            )
        figure.update_yaxes(type="category", autorange="reversed")
        views.append(View(row, figure))
        lines += [
            {"method": row, "site": site, "order": order, "score": value}
            for site, of in by_site.items()
            for order, value in of.items()
        ]
    if not views:
        return []
    says = (
        "One dot per order of the other sites. The longer the line, the more an order decides "
        "that nobody chooses in practice."
    )
    title = "How much does the order of the sites matter?"
    return [Drawing("order", title, says, views, pd.DataFrame(lines))]


def _columns(shifts: Sequence[SiteShift]) -> list[Drawing]:
    """The columns that differ most, by site, with their missing values."""
    sites = [shift.site for shift in shifts]
    names = list(dict.fromkeys(each.column for shift in shifts for each in shift.columns))
    if not names or len(names) > 3 * MOST_SITES:
        return []
    lines = [{"site": shift.site, **vars(each)} for shift in shifts for each in shift.columns]
    frame, views = pd.DataFrame(lines), []
    for label, value in (("gap", "distance"), ("missing values", "missing")):
        wide = frame.pivot(index="site", columns="column", values=value)
        table = wide.reindex(index=sites, columns=names)
        hover = f"%{{y}}, %{{x}}: {label} %{{z:.0f}}%"
        figure = _heat(names, sites, table.to_numpy(), titles=("", ""), hover=hover)
        views.append(View(label, figure))
    says = (
        "The columns that differ most at each site, in %: the largest gap between the distribution "
        "functions of the site and of all others, and the share of rows without a value. Empty: "
        "not among the columns that differ most there."
    )
    title = "Which columns differ, and where are values missing?"
    return [Drawing("columns", title, says, views, frame)]


def expected_scores(findings: Findings) -> Drawing:
    """The scores at the left-out sites, and the interval for a new one."""
    ordered = sorted(findings.scores, key=lambda site: findings.scores[site])
    metric = findings.ranking.metric
    scale = metric.scale
    figure = canvas(x=on_target(metric), y="", height=140 + 26 * len(ordered), legend=False)
    expected = findings.expectation
    if expected is not None:
        figure.add_vrect(
            x0=scale * expected.low,
            x1=scale * expected.high,
            fillcolor=transparent(ACCENT, 0.12),
            line_width=0,
        )
        figure.add_vline(x=scale * expected.mean, line={"color": ACCENT, "width": 2})
    if findings.majority is not None:
        figure.add_vline(
            x=scale * findings.majority, line={"color": REFERENCE, "dash": "dot", "width": 1.5}
        )
    figure.add_scatter(
        x=[scale * findings.scores[site] for site in ordered],
        y=[text(site) for site in ordered],
        mode="markers",
        marker={"size": 11, "color": ACCENT},
        hovertemplate=f"%{{y}}: %{{x:.4g}}{metric.unit}<extra></extra>",
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
    metric = findings.ranking.metric
    scale = metric.scale
    figure = canvas(x="sites learned", y=on_target(metric), height=340, legend=False)
    most = max(curve.means)
    ahead = list(range(most, 2 * most + 1))
    for end in (curve.low, curve.high):
        figure.add_scatter(
            x=ahead,
            y=[scale * (curve.means[most] + end * math.log2(sites / most)) for sites in ahead],
            mode="lines",
            line={"width": 0},
            fill="tonexty" if end == curve.high else None,
            fillcolor=transparent(ACCENT, 0.15),
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=list(curve.means),
        y=[scale * value for value in curve.means.values()],
        mode="lines+markers",
        line={"color": ACCENT},
        hovertemplate=f"%{{x}} sites: %{{y:.4g}}{metric.unit}<extra></extra>",
    )
    figure.update_xaxes(dtick=1 if len(ahead) < 15 else None)
    calm(figure)
    return Drawing(
        "curve",
        "Would more sites help?",
        f"Mean score of {findings.choice.method} at sites that it had not learned yet, by the "
        "number of sites learned so far. The band is where the trend leads: the "
        f"{100 * curve.level:.0f}% interval of what more sites would change.",
        [View("", figure)],
        pd.DataFrame({"learned": list(curve.means), "score": list(curve.means.values())}),
    )
