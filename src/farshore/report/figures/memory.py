"""The score on the target with the full memory and with fractions of it."""

import pandas as pd
import plotly.graph_objects as go

from ...results.summary import metric_of, unit_of
from . import shape


def of_several_sizes(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of methods that ran with several sizes; the largest one at a place is 100%.

    The row is the method alone; of several rows of a method with the same size, the first counts.
    """
    same = [*shape.PLACE, "method", *(name for name in shape.CONDITIONS if name != "memory")]
    runs = shape.comparable(runs[runs.groupby(same)["memory"].transform("nunique") > 1], "memory")
    first = runs.groupby([*same, "memory"])["row"].transform("first")
    runs = runs[runs["row"] == first]
    largest = runs.groupby(same)["memory"].transform("max")
    return runs.assign(row=runs["method"], memory_percent=(100 * runs["memory"] / largest).round(1))


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, target, method and memory size."""
    sizes = {"memory": "memory_rows"}
    by = [*shape.OF_ROW, "memory", "memory_percent"]
    return shape.estimates(runs, by, "target_score_unseen").rename(columns=sizes)


def draw(frame: pd.DataFrame) -> go.Figure:
    """One line per method over the sizes."""
    metric = metric_of(frame)
    figure = shape.canvas(x="memory, of the full size", y=shape.on_target(metric))
    for (group, method), part in frame.groupby(["group", "method"], sort=False):
        part = part.sort_values("memory_percent", ascending=False)
        members = frame.loc[frame["group"] == group, "method"].unique()
        figure.add_scatter(
            x=[f"{share:g}%" for share in part["memory_percent"]],
            y=list(metric.scale * part["target_score_unseen"]),
            error_y=shape.errors(part["standard_error"], metric.scale),
            name=shape.text(method),
            mode="lines+markers",
            line=shape.line_style(str(group), list(members).index(method)),
            hovertemplate=f"{shape.text(method)}, memory %{{x}}: %{{y:.1f}}{metric.unit}"
            "<extra></extra>",
        )
    figure.update_xaxes(type="category")
    shape.calm(figure)
    return figure


def overall(runs: pd.DataFrame) -> list[shape.View]:
    """The means over several data sets or targets, of what ran at every one of them."""
    unit = unit_of(runs)
    runs = shape.everywhere(runs.assign(metric=metric_of(runs).name), ["row", "memory_percent"])
    if runs.empty or runs.groupby(shape.PLACE).ngroups == 1:
        return []
    by = ["metric", "group", "row", "memory_percent"]
    frame = shape.estimates(runs, by, "target_score_unseen", unit)
    return [shape.View(f"mean over {unit}s", draw(frame), note=shape.error_bars(frame))]


def drawing(runs: pd.DataFrame) -> shape.Drawn | None:
    """The figure, if a method ran with more than one memory size."""
    runs = of_several_sizes(runs)
    frame = collect(runs)
    if frame.empty:
        return None
    says = (
        "How a smaller memory changes the score on the unseen target. Each line is a method, "
        "with its own search at each size."
    )
    shown = [*overall(runs), *shape.views(frame, draw)]
    return says, shown, frame, runs
