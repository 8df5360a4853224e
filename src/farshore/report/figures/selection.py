"""Target score against source validation score, which selection uses, over all trials."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ...results.summary import metric_of
from ..cells import line
from .shape import OF_ROW, Drawn, View, canvas, on_target, places, text

LEAST_TRIALS = 4
SCORES = ["source_validation_score", "target_score_unseen"]


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per finished trial; adaptations are left out because all start from one model."""
    # A run of several experiments counts once, and as selected if one of them selected it.
    selected = runs["selected"].astype(bool).groupby(runs["run"]).transform("any")
    trials = runs.assign(selected=selected).drop_duplicates("run")
    known = trials[SCORES].map(math.isfinite).all(axis=1)
    trials = trials[known & (trials["kind"] != "adaptation")]
    trials = trials[[*OF_ROW, "seed", "trial", "selected", *SCORES]]
    return trials.rename(columns={"row": "method"}).reset_index(drop=True)


def correlation(frame: pd.DataFrame) -> float | None:
    """Spearman's correlation of the two scores, ties averaged; None if one of them is constant."""
    ranks = frame[SCORES].rank()
    if len(frame) < 3 or (ranks.nunique() < 2).any():
        return None
    return float(ranks.corr().to_numpy()[0, 1])


def within(frame: pd.DataFrame) -> float | None:
    """The mean correlation within methods: selection chooses among the trials of one method."""
    parts = [correlation(part) for _, part in frame.groupby(["benchmark", "target", "method"])]
    known = [value for value in parts if value is not None]
    return float(np.mean(known)) if known else None


def draw(frame: pd.DataFrame) -> go.Figure:
    """One point per trial, in the colour of its group; the selected ones are filled."""
    metric = metric_of(frame)
    figure = canvas(x="on the sources (validation rows), %", y=on_target(metric), height=440)
    for (group, chosen), part in frame.groupby(["group", "selected"], sort=False):
        size, symbol = (9, "circle") if chosen else (7, "circle-open")
        words = [
            f"{text(method)}, seed {seed}, trial {trial}" + (", selected" if chosen else "")
            for method, seed, trial in zip(part["method"], part["seed"], part["trial"], strict=True)
        ]
        figure.add_scatter(
            x=list((metric.scale * part[SCORES[0]]).round(2)),
            y=list((metric.scale * part[SCORES[1]]).round(2)),
            mode="markers",
            name=text(group),
            legendgroup=group,
            showlegend=chosen,
            marker={"color": line(str(group)), "size": size, "symbol": symbol, "opacity": 0.85},
            customdata=words,
            hovertemplate="%{customdata}: %{x:.1f}% on the sources, %{y:.1f}% on the "
            "target<extra></extra>",
        )
    return figure


def drawing(runs: pd.DataFrame) -> Drawn | None:
    """The figure, if selection had a choice: a method with several trials."""
    frame = collect(runs)
    if frame["selected"].all() or len(frame) < LEAST_TRIALS:
        return None
    says = (
        "Every trial of every method: the score that selection sees (sources) against the one "
        "that it does not (target). Filled points were selected. Where the points do not rise, "
        "the best trial on the sources need not be the best on the target."
    )
    shown = [View(place, draw(part), note=_note(part)) for place, part in places(frame)]
    return says, shown, frame, runs


def _note(frame: pd.DataFrame) -> str:
    """The correlations in words."""
    overall, inside = correlation(frame), within(frame)
    number = f"{len(frame)} trials"
    found = f"Spearman correlation over all {number}: "
    parts = [f"{found}{overall:+.2f}" if overall is not None else number]
    if inside is not None:
        parts.append(f"mean correlation within a method: {inside:+.2f}")
    return "; ".join(parts) + "."
