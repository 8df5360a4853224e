"""The time per step as domains are added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..names import method_group, methods_in_order
from ..overlay import Overlay
from .runs import Shown, average, describe, plain
from .shape import (
    DASHES,
    NAMED_LINES,
    Drawing,
    View,
    canvas,
    data_set,
    group_name,
    named,
    transparent,
)

NAME = "step-time"
TITLE = "Time per step, domain after domain"


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per data set, method and domain: mean milliseconds per step over the seeds."""
    times: dict[tuple[str, str, int], list[float | None]] = defaultdict(list)
    for run in plain(runs):
        if len(run.result.step_milliseconds) > 1 and run.result.kind != "adaptation":
            for index, milliseconds in enumerate(run.result.step_milliseconds):
                times[(run.benchmark, run.method, index + 1)].append(milliseconds)
    rows = []
    for (benchmark, method, domain), values in times.items():
        spent, error = average(values)
        rows.append(
            {
                "benchmark": benchmark,
                "method": method,
                "domain": domain,
                "milliseconds_a_step": spent,
                "standard_error": error,
            }
        )
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame, overlay: Overlay) -> go.Figure:
    """One line per method.

    Many methods get thin lines, with a bold line and a legend entry for the mean of each group.
    """
    figure = canvas(x="domains learned", y="milliseconds per step")
    methods = methods_in_order(frame["method"])
    many = len(methods) > NAMED_LINES
    groups: dict[str, list[str]] = defaultdict(list)
    for method in methods:
        groups[method_group(method)[0]].append(method)
    for group, members in groups.items():
        colour = overlay.line(group)
        for index, method in enumerate(members):
            label = named(method, overlay)
            of_method = frame[frame["method"] == method].sort_values("domain")
            figure.add_scatter(
                x=list(of_method["domain"]),
                y=list(of_method["milliseconds_a_step"]),
                name=label,
                mode="lines" if many else "lines+markers",
                legendgroup=group if many else None,
                showlegend=not many,
                line={"color": transparent(colour, 0.45), "width": 1}
                if many
                else _line(colour, index),
                hovertemplate=f"{label}, domain %{{x}}: %{{y:.3g}} ms<extra></extra>",
            )
        if many:
            middle = (
                frame[frame["method"].isin(members)].groupby("domain")["milliseconds_a_step"].mean()
            )
            figure.add_scatter(
                x=list(middle.index),
                y=list(middle),
                name=group_name(group, overlay),
                mode="lines+markers",
                legendgroup=group,
                line={"color": colour, "width": 3},
                hovertemplate=f"mean of {group_name(group, overlay)}, domain %{{x}}: %{{y:.3g}} "
                "ms<extra></extra>",
            )
    figure.update_xaxes(dtick=1, rangemode="tozero" if frame["domain"].max() > 10 else "normal")
    figure.update_yaxes(rangemode="tozero")
    return figure


def _line(colour: str, index: int) -> dict[str, object]:
    return {"color": colour, "width": 2, "dash": DASHES[index % len(DASHES)]}


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if runs learned more than one domain."""
    frame = collect(runs)
    if frame.empty:
        return None
    says = (
        "Whether a step gets slower as more domains are remembered. Runs that share a machine "
        "slow each other down: compare only runs that were made one at a time."
    )
    views = [
        View(data_set(benchmark, overlay), draw(frame[frame["benchmark"] == benchmark], overlay))
        for benchmark in frame["benchmark"].unique()
    ]
    return Drawing(NAME, TITLE, says, views, frame, shows=describe(plain(runs)))
