"""Sensitivity to the weights λ and β: the score as one of them changes and all else is fixed."""

import pandas as pd
import plotly.graph_objects as go

from ...results.summary import metric_of, unit_of
from ..cells import SERIES
from . import shape

GREEK = {"penalty_weight": "λ (penalty_weight)", "alignment_weight": "β (alignment_weight)"}
LEAST_VALUES = 3


def varied(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the same seed and trial that differ in one weight; its name and value."""
    runs = runs[runs["kind"] == "continual"].assign(selected=True, row=runs["method"])
    family = ["experiment", "row", *shape.PLACE, *shape.CONDITIONS, "seed", "trial"]
    found = [runs[:0].assign(setting="", value=0.0)]
    several = runs[runs.groupby(family)["run"].transform("size") >= LEAST_VALUES]
    for _, part in several.groupby(family, sort=False):
        settings = [run.settings for run in part["result"]]
        texts = pd.DataFrame(settings, index=part.index, dtype=object).astype(str)
        usual = texts.mode().iloc[0]
        for name in [name for name in GREEK if name in texts]:
            others = texts.columns.drop(name)
            same = (texts[others] == usual[others]).all(axis=1) & (texts[name] != "None")
            if texts.loc[same, name].nunique() >= LEAST_VALUES:
                values = texts.loc[same, name].astype(float)
                found.append(part[same].assign(setting=name, value=values))
    return pd.concat(found, ignore_index=True)


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, target, method, weight and its value: means over orders and seeds."""
    by = [*shape.OF_ROW, "setting", "value"]
    frames = [pd.DataFrame()]
    for _, part in shape.places(runs):
        unit = unit_of(part)
        sources = shape.estimates(part, by, "source_validation_score", unit)
        sources = sources.drop(columns=["standard_error", "unit", "units"])
        frames.append(shape.estimates(part, by, "target_score_unseen", unit).merge(sources))
    return pd.concat(frames, ignore_index=True)


def draw(frame: pd.DataFrame) -> go.Figure:
    """One line per method over the values of a setting, logarithmic if they span decades."""
    metric, name = metric_of(frame), str(frame["setting"].iloc[0])
    figure = shape.canvas(x=GREEK[name], y=shape.on_target(metric))
    for index, (method, part) in enumerate(frame.groupby("method", sort=False)):
        part = part.sort_values("value")
        figure.add_scatter(
            x=list(part["value"]),
            y=list(metric.scale * part["target_score_unseen"]),
            name=shape.text(method),
            mode="lines+markers",
            line={"color": SERIES[index % len(SERIES)], "width": 2},
            customdata=list(metric.scale * part["source_validation_score"]),
            hovertemplate=f"{shape.text(method)}, %{{x:.3g}}: %{{y:.1f}}% on the target, "
            f"%{{customdata:.1f}}% on the sources<extra></extra>",
        )
    shape.calm(figure)
    least, most = frame["value"].min(), frame["value"].max()
    if least > 0 and most > 50 * least:
        figure.update_xaxes(type="log", exponentformat="power", dtick=1)
    return figure


def drawing(runs: pd.DataFrame) -> shape.Drawn | None:
    """The figure, if a weight was varied over at least three values with all else the same."""
    runs = varied(runs)
    frame = collect(runs)
    if frame.empty:
        return None
    says = (
        "How the score on the unseen target changes with one weight while everything else stays "
        "as selected. A flat line means that the weight needs no careful tuning."
    )
    shown = [
        shape.View(GREEK[str(name)], draw(of_name), of=place)
        for place, part in shape.places(frame)
        for name, of_name in part.groupby("setting", sort=False)
    ]
    return says, shown, frame, runs
