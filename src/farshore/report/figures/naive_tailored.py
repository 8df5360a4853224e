"""Naive against tailored: each notion of invariance in both frameworks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..names import methods_in_order
from ..overlay import Overlay
from ..page_table import number
from .runs import Shown, average, describe, over_orders
from .shape import Drawing, View, canvas, data_set, errors, named

NAME = "naive-tailored"
TITLE = "Naive against tailored"
ALL = "average over data sets"


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per data set and tailored method, if its naive form ran under the same conditions."""
    scores: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for run in paired(runs):
        scores[(run.benchmark, run.method)].append(run.result.target_score)
    rows = []
    for benchmark in dict.fromkeys(name for name, _ in scores):
        for method in methods_in_order(name for of, name in scores if of == benchmark):
            if (benchmark, f"naive-{method}") not in scores:
                continue
            tailored, tailored_error = average(scores[(benchmark, method)])
            naive, naive_error = average(scores[(benchmark, f"naive-{method}")])
            if tailored is not None and naive is not None:
                rows.append(
                    {
                        "benchmark": benchmark,
                        "method": method,
                        "target_score_tailored": tailored,
                        "tailored_standard_error": tailored_error,
                        "target_score_naive": naive,
                        "naive_standard_error": naive_error,
                        "difference": tailored - naive,
                    }
                )
    return pd.DataFrame(rows)


def paired(runs: Sequence[Shown]) -> list[Shown]:
    """The runs of both forms of a method on the same data set in the same order."""
    chosen = over_orders(runs)
    keys = {(run.method, run.benchmark, run.order) for run in chosen}
    return [
        run
        for run in chosen
        if any(
            (other, run.benchmark, run.order) in keys
            for other in (f"naive-{run.method}", run.method.removeprefix("naive-"))
            if other != run.method
        )
    ]


def draw(frame: pd.DataFrame, overlay: Overlay) -> go.Figure:
    """Two bars per method.

    Several data sets are averaged, without whiskers: the spread would be that of the data sets.
    """
    figure = canvas(x="on the unseen target, %", y="", height=120 + 58 * frame["method"].nunique())
    several = frame["benchmark"].nunique() > 1
    methods = list(dict.fromkeys(frame["method"]))[::-1]
    for kind in ("naive", "tailored"):
        means, spreads = [], []
        for method in methods:
            of_method = frame[frame["method"] == method]
            score, _ = average(of_method[f"target_score_{kind}"])
            means.append(100 * (score or 0.0))
            error = None if several else of_method[f"{kind}_standard_error"].iloc[0]
            spreads.append(None if error is None or pd.isna(error) else 100 * error)
        figure.add_bar(
            y=[named(method, overlay) for method in methods],
            x=means,
            orientation="h",
            name=kind,
            error_x=errors(spreads),
            marker={"color": overlay.fill(kind), "line": {"color": overlay.line(kind), "width": 1}},
            hovertemplate=f"{kind} %{{y}}: %{{x:.1f}}%<extra></extra>",
        )
    figure.update_layout(barmode="group", legend={"traceorder": "reversed"})
    return figure


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if there is at least one pair."""
    frame = collect(runs)
    if frame.empty:
        return None
    ahead = int((frame["difference"] > 0).sum())
    says = (
        "The naive and the tailored form of each notion of invariance, on the unseen target: means "
        "over all orders of the sources that both forms have. "
        f"The tailored form is ahead in {ahead} of {len(frame)} pairs of method and data set; the "
        f"mean difference is {number(100 * float(frame['difference'].mean()), sign=True)} points."
    )
    views = [
        View(data_set(benchmark, overlay), draw(frame[frame["benchmark"] == benchmark], overlay))
        for benchmark in frame["benchmark"].unique()
    ]
    if len(views) > 1:
        complete = (
            frame.groupby("method")["benchmark"].transform("nunique")
            == frame["benchmark"].nunique()
        )
        views = [View(ALL, draw(frame[complete], overlay)), *views] if complete.any() else views
    return Drawing(NAME, TITLE, says, views, frame, shows=describe(paired(runs)))
