"""Sensitivity to the weights λ and β: the score as one of them changes and all else is fixed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from ..colours import SERIES
from ..names import method_group, methods_in_order
from ..overlay import Overlay
from .runs import Shown, average, describe
from .shape import Drawing, View, calm, canvas, data_set, named

NAME = "sensitivity"
TITLE = "Sensitivity to λ and β"
GREEK = {"penalty_weight": "λ (penalty_weight)", "alignment_weight": "β (alignment_weight)"}
LEAST_VALUES = 3


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per data set, method, varied setting and value.

    They come from runs of the same seed and trial that differ in one setting.
    """
    families: dict[tuple[Any, ...], list[Shown]] = defaultdict(list)
    for run in runs:
        if run.result.status == "done":
            families[(run.experiment, run.method, run.condition, run.seed, run.trial)].append(run)
    scores: dict[tuple[str, str, str, float], list[tuple[float | None, float | None]]] = (
        defaultdict(list)
    )
    for family in families.values():
        usual = {
            name: Counter(str(run.result.settings.get(name)) for run in family).most_common(1)[0][0]
            for name in family[0].result.settings
        }
        for name in GREEK:
            varied = [run for run in family if _same_except(run, usual, name)]
            values = {run.result.settings.get(name) for run in varied}
            if len(values) < LEAST_VALUES:
                continue
            for run in varied:
                key = (run.benchmark, run.method, name, float(run.result.settings[name]))
                scores[key].append((run.result.target_score, run.result.source_score(1)))
    rows = []
    for (benchmark, method, name, value), pairs in sorted(scores.items()):
        target, error = average(score for score, _ in pairs)
        validation, _ = average(score for _, score in pairs)
        rows.append(
            {
                "benchmark": benchmark,
                "method": method,
                "setting": name,
                "value": value,
                "target_score_unseen": target,
                "standard_error": error,
                "source_validation_score": validation,
            }
        )
    return pd.DataFrame(rows)


def _same_except(run: Shown, usual: dict[str, str], name: str) -> bool:
    settings = run.result.settings
    return settings.get(name) is not None and all(
        str(settings.get(other)) == value for other, value in usual.items() if other != name
    )


def draw(frame: pd.DataFrame, overlay: Overlay) -> go.Figure:
    """One line per method over the values of a setting, logarithmic if they span decades."""
    name = str(frame["setting"].iloc[0])
    figure = canvas(x=GREEK.get(name, name), y="on the unseen target, %")
    for index, method in enumerate(methods_in_order(frame["method"])):
        of_method = frame[frame["method"] == method].sort_values("value")
        figure.add_scatter(
            x=list(of_method["value"]),
            y=list(100 * of_method["target_score_unseen"]),
            name=named(method, overlay),
            mode="lines+markers",
            line={"color": SERIES[index % len(SERIES)], "width": 2},
            customdata=list(100 * of_method["source_validation_score"]),
            hovertemplate=f"{named(method, overlay)}, %{{x:.3g}}: %{{y:.1f}}% on the target, "
            f"%{{customdata:.1f}}% on the sources<extra></extra>",
        )
    calm(figure)
    least, most = frame["value"].min(), frame["value"].max()
    if least > 0 and most > 50 * least:
        figure.update_xaxes(type="log", exponentformat="power", dtick=1)
    return figure


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if a weight was varied over at least three values with all else the same."""
    frame = collect([run for run in runs if method_group(run.method)[1] == "continual"])
    if frame.empty:
        return None
    says = (
        "How the score on the unseen target changes with one weight while everything else stays "
        "as selected. A flat line means that the weight needs no careful tuning."
    )
    views = [
        View(GREEK[str(name)], draw(part, overlay), of=data_set(benchmark, overlay))
        for (benchmark, name), part in frame.groupby(["benchmark", "setting"], sort=False)
    ]
    return Drawing(
        NAME,
        TITLE,
        says,
        views,
        frame,
        shows=describe([run for run in runs if run.result.settings.keys() & GREEK.keys()]),
    )
