"""In-domain performance: the scores of each group of methods on the sources."""

import pandas as pd
import plotly.graph_objects as go

from ...results.frame import results_in_metric
from ...results.summary import metric_of, unit_of
from ..cells import fill, line
from .shape import Drawn, View, canvas, comparable, error_bars, errors, estimates, text


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per group: the mean over its methods, with its standard error over units."""
    # The source score of an adaptation is that of the model it starts from.
    runs = runs[runs["kind"] != "adaptation"]
    scores = [result.source_score(2) for result in results_in_metric(runs)]
    runs = runs.assign(source_score=pd.Series(scores, index=runs.index, dtype=float))
    methods = runs.groupby("group")["row"].nunique()
    frame = estimates(runs, ["group"], "source_score", unit_of(runs))
    return frame.assign(methods=frame["group"].map(methods)) if len(frame) else frame


def draw(frame: pd.DataFrame) -> go.Figure:
    """One bar per group."""
    figure = canvas(x="on the sources, %", y="", height=110 + 38 * len(frame), legend=False)
    filled, edges = (list(map(colour, frame["group"])) for colour in (fill, line))
    figure.add_bar(
        y=list(map(text, frame["group"])),
        x=list(100 * frame["source_score"]),
        orientation="h",
        error_x=errors(frame["standard_error"]),
        marker={"color": filled, "line": {"color": edges, "width": 1}},
        customdata=list(frame["methods"]),
        hovertemplate="%{y}: %{x:.1f}% (%{customdata} methods)<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def drawing(runs: pd.DataFrame) -> Drawn | None:
    """The figure, if at least two groups have scores."""
    runs = comparable(runs)
    frame = collect(runs)
    if metric_of(runs).scale != 100 or len(frame) < 2:
        return None
    says = (
        "Scores on the domains that the methods were trained on (training rows, mean over the "
        "methods of a group). They say nothing about unseen domains."
    )
    view = View("", draw(frame), note=error_bars(frame))
    return says, [view], frame, runs
