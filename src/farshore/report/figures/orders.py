"""The score on the target by the order of the domains."""

import pandas as pd
import plotly.graph_objects as go

from ...results.frame import SEPARATOR
from ...results.summary import metric_of
from ..cells import SERIES
from . import shape

SYMBOLS = (
    *("circle", "diamond", "square", "triangle-up"),
    *("triangle-down", "cross", "star", "hexagon"),
)


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, target, method and order."""
    frame = shape.estimates(runs, [*shape.OF_ROW, "sources"], "target_score_unseen")
    if frame.empty:
        return frame
    usual = runs[runs["listed"]].groupby(shape.PLACE)["sources"].first().to_dict()
    words = []
    for *place, order in frame[[*shape.PLACE, "sources"]].itertuples(index=False):
        listed = usual.get((*place,), "")
        backwards = SEPARATOR.join(listed.split(SEPARATOR)[::-1])
        words.append({backwards: "reversed", listed: "listed"}.get(order, "other"))

    return frame.rename(columns={"sources": "order"}).assign(word=words)


def draw(frame: pd.DataFrame) -> go.Figure:
    """One line per method, one point per order."""
    metric = metric_of(frame)
    methods = [shape.text(method) for method in frame["method"].unique()]
    figure = shape.canvas(x=shape.on_target(metric), y="", height=150 + 30 * len(methods))
    for index, ((order, word), part) in enumerate(frame.groupby(["order", "word"], sort=False)):
        colour, symbol = (of[index % len(of)] for of in (SERIES, SYMBOLS))
        figure.add_scatter(
            x=list(metric.scale * part["target_score_unseen"]),
            y=[shape.text(method) for method in part["method"]],
            error_x=shape.errors(part["standard_error"], metric.scale),
            mode="markers",
            name=shape.text(order) if word == "other" else f"{word}: {shape.text(order)}",
            marker={"color": colour, "symbol": symbol, "size": 10},
            hovertemplate=f"%{{y}}, {shape.text(order)}: %{{x:.1f}}{metric.unit}<extra></extra>",
        )
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=methods[::-1])
    figure.update_layout(legend={"orientation": "v", "yanchor": "bottom", "y": 1.02, "x": 0})
    return figure


def drawing(runs: pd.DataFrame) -> shape.Drawn | None:
    """The figure, if a method ran with more than one order."""
    same = [*shape.PLACE, "row", "steps", "memory", "scenario_seed"]
    several = runs.groupby(same)["sources"].transform("nunique") > 1
    frame = collect(shape.comparable(runs[several], "sources"))
    if frame.empty:
        return None
    scores = frame.groupby([*shape.PLACE, "method"])["target_score_unseen"]
    spread = metric_of(frame).scale * (scores.max() - scores.min())
    says = (
        "The same methods with the sources in different orders. On average, a method's score on "
        f"the unseen target differs by {spread.mean():.1f} points between its best and its worst "
        "order."
    )
    return says, shape.views(frame, draw), frame, runs
