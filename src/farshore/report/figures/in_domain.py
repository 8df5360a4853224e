"""In-domain performance: the scores of each group of methods on the sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..names import groups_in_order
from ..overlay import Overlay
from .runs import Shown, average, describe, plain
from .shape import Drawing, View, canvas, data_set, errors, group_name

NAME = "in-domain"
TITLE = "Performance on the sources, by group"


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per group: mean and standard error over its methods and data sets.

    The score of each method on each data set is a mean over seeds.
    """
    cells: dict[tuple[str, str, str], list[float | None]] = defaultdict(list)
    for run in plain(runs):
        if run.result.kind == "adaptation":  # its source score is that of the model it starts from
            continue
        cells[(run.group, run.method, run.benchmark)].append(run.result.source_score(2))
    groups: dict[str, list[float]] = defaultdict(list)
    methods: dict[str, set[str]] = defaultdict(set)
    for (group, method, _), values in cells.items():
        score, _ = average(values)
        if score is not None:
            groups[group].append(score)
            methods[group].add(method)
    rows = []
    for group in groups_in_order(groups):
        score, error = average(groups[group])
        rows.append(
            {
                "group": group,
                "source_score": score,
                "standard_error": error,
                "methods": len(methods[group]),
            }
        )
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame, overlay: Overlay) -> go.Figure:
    """One bar per group, with whiskers."""
    figure = canvas(x="on the sources, %", y="", height=110 + 38 * len(frame), legend=False)
    groups = list(frame["group"])
    figure.add_bar(
        y=[group_name(group, overlay) for group in groups],
        x=list(100 * frame["source_score"]),
        orientation="h",
        error_x=errors(list(100 * frame["standard_error"])),
        marker={
            "color": [overlay.fill(group) for group in groups],
            "line": {"color": [overlay.line(group) for group in groups], "width": 1},
        },
        customdata=list(frame["methods"]),
        hovertemplate="%{y}: %{x:.1f}% (%{customdata} methods)<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def _label(runs: Sequence[Shown], overlay: Overlay) -> str:
    names = {run.benchmark for run in plain(runs)}
    return data_set(names.pop(), overlay) if len(names) == 1 else f"{len(names)} data sets"


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if at least two groups have scores."""
    frame = collect(runs)
    if len(frame) < 2:
        return None
    says = (
        "Scores on the domains that the methods were trained on (training rows, mean over "
        "methods and data sets; whiskers: standard error). They say nothing about unseen domains."
    )
    return Drawing(
        NAME,
        TITLE,
        says,
        [View(_label(runs, overlay), draw(frame, overlay))],
        frame,
        shows=describe(plain(runs)),
    )
