"""The parts of a figure: a title, an explanation, one or more views, and the numbers behind it."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from ...tasks.metrics import Metric
from ..colours import line
from .comparable import PLACE, error_bars

WHISKER = "#80868c"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True)
class View:
    """One picture. `of` is its heading in the list of views; `note` is a sentence about it."""

    label: str
    figure: go.Figure
    of: str = ""
    note: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure as the page shows it."""

    name: str
    title: str
    says: str
    views: Sequence[View]
    frame: pd.DataFrame
    # The conditions of the runs that it shows, in one line.
    shows: str = ""


def text(value: object) -> str:
    """Escape a label for plotly, which reads labels as HTML; many names come from users."""
    return html.escape(str(value), quote=False)


def views(frame: pd.DataFrame, draw: Callable[[pd.DataFrame], go.Figure]) -> list[View]:
    """One picture per data set, or per target where a data set has several."""
    return [View(place, draw(part), note=error_bars(part)) for place, part in places(frame)]


def places(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The lines of every data set, or of each of its targets if there are several."""
    targets = frame.groupby("benchmark")["target"].nunique()
    for (benchmark, target), part in frame.groupby(PLACE, sort=False):
        several = targets[str(benchmark)] > 1
        yield f"{benchmark}, target {target}" if several else str(benchmark), part


def on_target(metric: Metric) -> str:
    """The title of an axis with scores on the target."""
    return f"{metric.label} on the unseen target" + (f", {metric.unit}" if metric.unit else "")


def canvas(*, x: str, y: str, height: int = 380, legend: bool = True) -> go.Figure:
    """An empty figure without colours; the page sets light or dark ones."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 56, "r": 12, "t": 12, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13},
        showlegend=legend,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hoverlabel={"namelength": -1},
        xaxis={"title": {"text": x, "font": {"size": 13}}, "automargin": True},
        yaxis={"title": {"text": y, "font": {"size": 13}}, "automargin": True},
    )
    return figure


def errors(values: Iterable[float | None], scale: float = 100.0) -> dict[str, object]:
    """Error bars, hidden if no standard error is defined."""
    scaled = [math.nan if value is None else scale * value for value in values]
    if all(map(math.isnan, scaled)):
        return {"visible": False}
    return {"type": "data", "array": scaled, "thickness": 1.4, "width": 4, "color": WHISKER}


def line_style(group: str, member: int) -> dict[str, object]:
    """The line of one member of a group: members share the colour and differ in their dashes."""
    return {"color": line(group), "width": 2, "dash": DASHES[member % len(DASHES)]}


def calm(figure: go.Figure, least: float = 10.0) -> None:
    """Show at least ten points of the scale, so that small differences look small."""
    values = [
        float(value)
        for trace in figure.data
        for value in trace.y
        if value is not None and math.isfinite(value)
    ]
    if values and max(values) - min(values) < least:
        middle = (max(values) + min(values)) / 2
        figure.update_yaxes(range=[middle - least / 2, middle + least / 2])


def transparent(colour: str, share: float) -> str:
    """A hexadecimal colour with this opacity."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"
