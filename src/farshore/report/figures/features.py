"""Features of sources and target in a plane, and a measure of how distinguishable domains are."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..colours import SERIES
from ..names import methods_in_order
from ..overlap import Overlap, measure, project, read_features
from ..overlay import Overlay
from .runs import Shown, describe
from .shape import Drawing, View, canvas, data_set, text

NAME = "features"
TITLE = "Features of sources and target"
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


def points(run: Shown) -> tuple[pd.DataFrame, Overlap, str] | None:
    """The features of a run in a plane, their overlap, and the projection's name.

    None if no features were saved or they are damaged.
    """
    saved = read_features(run.features) if run.features is not None else None
    if saved is None:
        return None
    frame = saved.frame()
    plane, projection = project(saved.features)
    frame[["x", "y"]] = plane.round(2)
    return frame, measure(saved), projection


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if features were saved; one run per method and data set."""
    chosen: dict[tuple[str, str], Shown] = {}
    for run in runs:
        key = (run.benchmark, run.method)
        if (
            run.features is not None
            and run.result.status == "done"
            and (key not in chosen or (run.selected and not chosen[key].selected))
        ):
            chosen[key] = run
    views, frames, projections = [], [], set()
    for benchmark in dict.fromkeys(name for name, _ in chosen):
        for method in methods_in_order(name for of, name in chosen if of == benchmark):
            projected = points(chosen[(benchmark, method)])
            if projected is not None:
                frame, overlap, projection = projected
                projections.add(projection)
                views.append(
                    View(
                        overlay.label(method),
                        draw(frame),
                        of=data_set(benchmark, overlay),
                        note=overlap.sentence(),
                    )
                )
                frames.append(frame.assign(benchmark=benchmark, method=method))
    if not views:
        return None
    says = (
        "Features that the frozen model computes for every source (validation rows) and for the "
        f"unseen target, projected onto a plane by {' or '.join(sorted(projections))}; numbers "
        "mark the centres of the sources' classes. A picture alone proves nothing, so a "
        "classifier tries to predict the domain: the closer its accuracy is to chance, the less "
        "the features reveal where a row comes from."
    )
    return Drawing(
        NAME,
        TITLE,
        says,
        views,
        pd.concat(frames, ignore_index=True),
        shows=describe(list(chosen.values())),
    )
