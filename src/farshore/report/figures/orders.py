"""The score on the target by the order of the domains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..colours import SERIES
from ..names import methods_in_order
from ..overlay import Overlay
from .runs import Shown, average, describe, first_experiment
from .shape import Drawing, View, canvas, data_set, errors, named, text

NAME = "orders"
TITLE = "The order of the domains"
SYMBOLS = (
    "circle",
    "diamond",
    "square",
    "triangle-up",
    "triangle-down",
    "cross",
    "star",
    "hexagon",
)


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per data set, method and order, for methods that ran with several orders."""
    chosen = _chosen(runs)
    listed = {run.benchmark: run.order for run in chosen if run.listed}
    scores: dict[tuple[str, str, tuple[str, ...], int, int], list[float | None]] = defaultdict(list)
    for run in chosen:
        scores[(run.benchmark, run.method, run.order, run.result.steps, run.result.memory)].append(
            run.result.target_score
        )
    orders: dict[tuple[str, str, int, int], set[tuple[str, ...]]] = defaultdict(set)
    for benchmark, method, order, steps, memory in scores:
        orders[(benchmark, method, steps, memory)].add(order)
    rows = []
    for (benchmark, method, order, steps, memory), values in scores.items():
        score, error = average(values)
        if len(orders[(benchmark, method, steps, memory)]) > 1 and score is not None:
            rows.append(
                {
                    "benchmark": benchmark,
                    "method": method,
                    "order": " → ".join(order),
                    "word": _word(order, listed.get(benchmark)),
                    "target_score_unseen": score,
                    "standard_error": error,
                }
            )
    return pd.DataFrame(rows)


def _chosen(runs: Sequence[Shown]) -> list[Shown]:
    return first_experiment([run for run in runs if run.selected and len(run.order) > 1])


def _word(order: tuple[str, ...], listed: tuple[str, ...] | None) -> str:
    if listed is not None and order == listed:
        return "listed"
    if listed is not None and order == listed[::-1]:
        return "reversed"
    return "other"


def draw(frame: pd.DataFrame, overlay: Overlay) -> go.Figure:
    """One line per method, one point per order."""
    methods = methods_in_order(frame["method"])[::-1]
    figure = canvas(x="on the unseen target, %", y="", height=150 + 30 * len(methods))
    for index, order in enumerate(frame["order"].unique()):
        of_order = (
            frame[frame["order"] == order]
            .set_index("method")
            .reindex(methods)
            .dropna(subset=["target_score_unseen"])
        )
        word = str(of_order["word"].iloc[0])
        figure.add_scatter(
            x=list(100 * of_order["target_score_unseen"]),
            y=[named(method, overlay) for method in of_order.index],
            error_x=errors(list(100 * of_order["standard_error"].astype(float))),
            mode="markers",
            name=text(order) if word == "other" else f"{word}: {text(order)}",
            marker={
                "color": SERIES[index % len(SERIES)],
                "symbol": SYMBOLS[index % len(SYMBOLS)],
                "size": 10,
            },
            hovertemplate=f"%{{y}}, {text(order)}: %{{x:.1f}}%<extra></extra>",
        )
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=[named(method, overlay) for method in methods],
    )
    figure.update_layout(legend={"orientation": "v", "yanchor": "bottom", "y": 1.02, "x": 0})
    return figure


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if more than one order ran."""
    frame = collect(runs)
    if frame.empty:
        return None
    spread = 100 * frame.groupby(["benchmark", "method"])["target_score_unseen"].agg(
        lambda scores: scores.max() - scores.min()
    )
    says = (
        "The same methods with the sources in different orders. On average, a method's score on "
        f"the unseen target differs by {spread.mean():.1f} points between its best and its worst "
        "order."
    )
    views = [
        View(data_set(benchmark, overlay), draw(frame[frame["benchmark"] == benchmark], overlay))
        for benchmark in frame["benchmark"].unique()
    ]
    return Drawing(NAME, TITLE, says, views, frame, shows=describe(_chosen(runs)))
