"""The time per step as domains are added."""

import pandas as pd
import plotly.graph_objects as go

from ..cells import line
from . import shape

# Up to this many methods, the legend names each line; beyond, it names only the groups.
NAMED_LINES = 8


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, target, method and domain: mean milliseconds per step over seeds."""
    times = [
        (index, domain, milliseconds)
        for index, result in runs.loc[runs["kind"] != "adaptation", "result"].items()
        for domain, milliseconds in enumerate(result.step_milliseconds, start=1)
        if len(result.step_milliseconds) > 1
    ]
    lines = pd.DataFrame(times, columns=["of", "domain", "milliseconds_a_step"])
    lines = lines.join(runs[[*shape.OF_ROW, "last_source", "order", "seed"]], on="of")
    return shape.estimates(lines, [*shape.OF_ROW, "domain"], "milliseconds_a_step")


def draw(frame: pd.DataFrame) -> go.Figure:
    """One line per method; of many, thin lines with a bold one for the mean of each group."""
    figure = shape.canvas(x="domains learned", y="milliseconds per step")
    many = frame["method"].nunique() > NAMED_LINES
    for group in frame["group"].unique():
        of_group = frame[frame["group"] == group]
        faint = {"color": shape.transparent(line(group), 0.45), "width": 1}
        for member, (method, part) in enumerate(of_group.groupby("method", sort=False)):
            figure.add_scatter(
                x=list(part["domain"]),
                y=list(part["milliseconds_a_step"]),
                name=shape.text(method),
                mode="lines" if many else "lines+markers",
                legendgroup=group if many else None,
                showlegend=not many,
                line=faint if many else shape.line_style(group, member),
                hovertemplate=f"{shape.text(method)}, domain %{{x}}: %{{y:.3g}} ms<extra></extra>",
            )
        if many:
            middle = of_group.groupby("domain")["milliseconds_a_step"].mean()
            figure.add_scatter(
                x=list(middle.index),
                y=list(middle),
                name=shape.text(group),
                mode="lines+markers",
                legendgroup=group,
                line={"color": line(group), "width": 3},
                hovertemplate=f"mean of {shape.text(group)}, domain %{{x}}: %{{y:.3g}} ms"
                "<extra></extra>",
            )
    figure.update_xaxes(dtick=1, rangemode="tozero" if frame["domain"].max() > 10 else "normal")
    figure.update_yaxes(rangemode="tozero")
    return figure


def drawing(runs: pd.DataFrame) -> shape.Drawn | None:
    """The figure, if runs learned more than one domain."""
    runs = shape.comparable(runs)
    frame = collect(runs)
    if frame.empty:
        return None
    says = (
        "Whether a step gets slower as more domains are remembered. Runs that share a machine "
        "slow each other down: compare only runs that were made one at a time."
    )
    shown = [shape.View(place, draw(part)) for place, part in shape.places(frame)]
    return says, shown, frame, runs
