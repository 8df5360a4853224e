"""What a figure is: a title, one plain sentence, one or more views to choose from, and the
numbers behind it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from ..names import dataset_label, method_label
from ..table import COLOURS, GROUP_LABELS

# Fills are the paper's colours of the groups.
FILLS = COLOURS
# The paper's hues of the groups, strong enough for a line or a point on white and on black.
LINES = {
    "finetune": "#8a8a8a",
    "optimization": "#dc5c86",
    "regularization": "#b9764e",
    "replay": "#3d8fa1",
    "latent-replay": "#5b79c7",
    "tailored": "#5f9a43",
    "naive": "#9257dc",
    "adaptation": "#cc6600",
    "upper-bound": "#a8932b",
}
OTHER = "#8a8a8a"
WHISKER = "#80868c"
# For domains and orders, which have no group: told apart by people who do not see all colours, too.
SERIES = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8f8f2a",
    "#7a5cc0",
    "#996633",
    "#5c8a8a",
)
# Members of a group share its colour, and are told apart by these.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
# Lines of single methods are named in the legend up to here; with more of them only their groups
# are.
NAMED_LINES = 8


@dataclass(frozen=True)
class View:
    """One picture. `of` is what views are sorted under in the list to choose from; `note` is a
    sentence about this view alone.
    """

    label: str
    figure: go.Figure
    of: str = ""
    note: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure as the page shows it. There is none where its data are not there."""

    name: str
    title: str
    says: str
    views: Sequence[View]
    frame: pd.DataFrame


def text(value: object) -> str:
    """A name for plotly, which reads labels as HTML: names of domains come from users."""
    return html.escape(str(value), quote=False)


def named(method: object) -> str:
    """A method as the tables name it."""
    return text(method_label(str(method)))


def group_name(group: str) -> str:
    """A group as the tables name it."""
    return text(GROUP_LABELS.get(group, group))


def data_set(benchmark: object) -> str:
    """A data set as the tables name it, with the target where it is not the usual one."""
    name, comma, rest = str(benchmark).partition(", ")
    return f"{dataset_label(name)}{comma}{rest}"


def canvas(*, x: str, y: str, height: int = 380, legend: bool = True) -> go.Figure:
    """An empty figure without colours of its own: the page gives those of light or dark."""
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
    """Whiskers; where a standard error is not defined there is none."""
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
    """A hexadecimal colour, seen through."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"
