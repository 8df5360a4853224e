"""The parts of a figure: a title, an explanation, one or more views, and the numbers behind it."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from ..overlay import Overlay

WHISKER = "#80868c"
# Members of a group share its colour and differ in their dashes.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
# Up to this many methods, the legend names each line; beyond, it names only the groups.
NAMED_LINES = 8


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
    """Escape a label for plotly, which reads labels as HTML; names of domains come from users."""
    return html.escape(str(value), quote=False)


def named(method: object, overlay: Overlay) -> str:
    """The name of a method in the tables."""
    return text(overlay.label(str(method)))


def group_name(group: str, overlay: Overlay) -> str:
    """The name of a group in the tables."""
    return text(overlay.group_label(group))


def data_set(benchmark: object, overlay: Overlay) -> str:
    """The name of a data set in the tables, with the target if it is not the default one."""
    name, comma, rest = str(benchmark).partition(", ")
    return f"{overlay.dataset_label(name)}{comma}{rest}"


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


def errors(values: Sequence[float | None]) -> dict[str, object]:
    """Whiskers, hidden if no standard error is defined."""
    if all(value is None or value != value for value in values):
        return {"visible": False}
    return {"type": "data", "array": list(values), "thickness": 1.4, "width": 4, "color": WHISKER}


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
