"""Features of sources and target in a plane, and a measure of how distinguishable domains are."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import plotly.graph_objects as go

from ...results.describe import conditions
from ..cells import SERIES
from ..overlap import measure, project, read_features
from .shape import PLACE, Drawing, View, canvas, places, text

NAME = "features"
TITLE = "Features of sources and target"
NEEDS = "runs that saved their features"
TARGET_COLOUR = "#d7263d"


def draw(frame: pd.DataFrame) -> go.Figure:
    """Points in the colour of their domain, the target in red.

    The number of each class is at its centre over all sources.
    """
    figure = canvas(x="", y="", height=520)
    sources = 0
    for domain in frame["domain"].unique():
        part = frame[frame["domain"] == domain]
        target = bool(part["target"].iloc[0])
        colour = TARGET_COLOUR if target else SERIES[sources % len(SERIES)]
        sources += not target
        figure.add_scatter(
            x=part["x"].to_numpy("float32"),
            y=part["y"].to_numpy("float32"),
            mode="markers",
            name=f"{'target' if target else 'source'} {text(domain)}",
            marker={
                "color": colour,
                "size": 5 if target else 4,
                "opacity": 0.7,
                "symbol": "x" if target else "circle",
            },
            customdata=list(part["class"]),
            hovertemplate=f"{text(domain)}, class %{{customdata}}<extra></extra>",
        )
    centres = frame[~frame["target"]].groupby("class")[["x", "y"]].median()
    figure.add_scatter(
        x=list(centres["x"]),
        y=list(centres["y"]),
        mode="text",
        text=[f"<b>{number}</b>" for number in centres.index],
        textfont={"size": 18},
        name="class",
        showlegend=False,
        hoverinfo="skip",
    )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def drawing(runs: pd.DataFrame) -> Drawing | None:
    """The figure, if features were saved; one run per data set, target and method."""
    runs = runs[runs["features"] != ""].sort_values("selected", ascending=False, kind="stable")
    runs = runs.drop_duplicates([*PLACE, "row"]).sort_index().assign(selected=True)
    shown, frames, projections = [], [], set()
    for place, part in places(runs):
        for run in part.to_dict("records"):
            saved = read_features(Path(run["features"]))
            if saved is None:  # damaged
                continue
            named = {"benchmark": run["benchmark"], "target_name": run["target"]}
            frame = saved.frame().assign(**named, method=run["row"])
            plane, projection = project(saved.features)
            frame[["x", "y"]] = plane.round(2)
            note = measure(saved).sentence()
            shown.append(View(run["row"], draw(frame), of=place, note=note))
            projections.add(projection)
            frames.append(frame)
    if not shown:
        return None
    says = (
        "Features that the frozen model computes for every source (validation rows) and for the "
        f"unseen target, projected onto a plane by {' or '.join(sorted(projections))}; numbers "
        "mark the centres of the sources' classes. A picture alone proves nothing, so a "
        "classifier tries to predict the domain: the closer its accuracy is to chance, the less "
        "the features reveal where a row comes from."
    )
    numbers = pd.concat(frames, ignore_index=True)
    return Drawing(NAME, TITLE, says, shown, numbers, shows=conditions(runs))
