"""In-domain performance by group: how well each group's methods do on the sources they were
trained on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ... import catalog
from .runs import Shown, average, plain
from .shape import FILLS, LINES, OTHER, Drawing, View, canvas, data_set, errors, group_name

NAME = "in-domain"
TITLE = "Performance on the sources, by group"


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """A row a group: mean over its methods and data sets, standard error over those values, each
    itself a mean over seeds.
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
    known = list(catalog.GROUPS)
    rows = []
    for group in sorted(
        groups, key=lambda name: known.index(name) if name in known else len(known)
    ):
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


def draw(frame: pd.DataFrame) -> go.Figure:
    """A bar a group, with whiskers."""
    figure = canvas(x="on the sources, %", y="", height=110 + 38 * len(frame), legend=False)
    groups = list(frame["group"])
    figure.add_bar(
        y=[group_name(group) for group in groups],
        x=list(100 * frame["source_score"]),
        orientation="h",
        error_x=errors(list(100 * frame["standard_error"])),
        marker={
            "color": [FILLS.get(group, OTHER) for group in groups],
            "line": {"color": [LINES.get(group, OTHER) for group in groups], "width": 1},
        },
        customdata=list(frame["methods"]),
        hovertemplate="%{y}: %{x:.1f}% (%{customdata} methods)<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def _label(runs: Sequence[Shown]) -> str:
    names = {run.benchmark for run in plain(runs)}
    return data_set(names.pop()) if len(names) == 1 else f"{len(names)} data sets"


def drawing(runs: Sequence[Shown]) -> Drawing | None:
    """The figure, where at least two groups have scores."""
    frame = collect(runs)
    if len(frame) < 2:
        return None
    says = (
        "How well the groups do on the domains they were trained on (training rows, mean over "
        "methods and data sets; whiskers: "
        "standard error). It is the starting point of all, and says nothing of unseen domains."
    )
    return Drawing(NAME, TITLE, says, [View(_label(runs), draw(frame))], frame)
