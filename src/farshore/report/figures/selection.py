"""Target score against source validation score, which selection uses, over all trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..names import groups_in_order, method_group
from ..overlay import Overlay
from .runs import Shown, describe
from .shape import Drawing, View, canvas, data_set, group_name, named

NAME = "selection"
TITLE = "Does selection by the sources work?"
LEAST_TRIALS = 4


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per finished trial.

    Diverged trials have no scores; adaptations are left out because they all start from one model.
    """
    rows = []
    for run in runs:
        source, target = run.result.source_score(1), run.result.target_score
        if (
            source is None
            or target is None
            or not np.isfinite([source, target]).all()
            or run.result.kind == "adaptation"
        ):
            continue
        rows.append(
            {
                "benchmark": run.benchmark,
                "method": run.method,
                "seed": run.seed,
                "trial": run.trial,
                "selected": run.selected,
                "source_validation_score": source,
                "target_score_unseen": target,
            }
        )
    return pd.DataFrame(rows)


def correlation(frame: pd.DataFrame) -> float | None:
    """Spearman's correlation of the two scores, ties averaged; None if one of them is constant."""
    ranks = frame[["source_validation_score", "target_score_unseen"]].rank()
    if len(frame) < 3 or (ranks.nunique() < 2).any():
        return None
    return float(ranks.corr().to_numpy()[0, 1])


def within(frame: pd.DataFrame) -> float | None:
    """The mean correlation within methods: selection chooses among the trials of one method."""
    correlations = [
        value
        for _, part in frame.groupby(["benchmark", "method"])
        if (value := correlation(part)) is not None
    ]
    return float(np.mean(correlations)) if correlations else None


def draw(frame: pd.DataFrame, overlay: Overlay) -> go.Figure:
    """One point per trial, in the colour of its group; the selected ones are filled."""
    figure = canvas(
        x="on the sources (validation rows), %", y="on the unseen target, %", height=440
    )
    groups: dict[str, list[str]] = defaultdict(list)
    for method in frame["method"].unique():
        groups[method_group(str(method))[0]].append(str(method))
    for group in groups_in_order(groups):
        for chosen in (False, True):
            part = frame[frame["method"].isin(groups[group]) & (frame["selected"] == chosen)]
            if part.empty:
                continue
            colour = overlay.line(group)
            figure.add_scatter(
                x=[round(100 * value, 2) for value in part["source_validation_score"]],
                y=[round(100 * value, 2) for value in part["target_score_unseen"]],
                mode="markers",
                name=group_name(group, overlay),
                legendgroup=group,
                showlegend=chosen,
                marker={
                    "color": colour,
                    "size": 9 if chosen else 7,
                    "symbol": "circle" if chosen else "circle-open",
                    "opacity": 0.85,
                },
                customdata=[
                    f"{named(method, overlay)}, seed {seed}, trial {trial}"
                    + (", selected" if chosen else "")
                    for method, seed, trial in zip(
                        part["method"], part["seed"], part["trial"], strict=True
                    )
                ],
                hovertemplate="%{customdata}: %{x:.1f}% on the sources, %{y:.1f}% on the "
                "target<extra></extra>",
            )
    return figure


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if selection had a choice: a method with several trials."""
    frame = collect(runs)
    if frame.empty or frame["selected"].all() or len(frame) < LEAST_TRIALS:
        return None
    says = (
        "Every trial of every method: the score that selection sees (sources) against the one "
        "that it does not (target). Filled points were selected. Where the points do not rise, "
        "the best trial on the sources need not be the best on the target."
    )
    views = []
    for benchmark in frame["benchmark"].unique():
        part = frame[frame["benchmark"] == benchmark]
        views.append(View(data_set(benchmark, overlay), draw(part, overlay), note=_note(part)))
    return Drawing(NAME, TITLE, says, views, frame, shows=describe(runs))


def _note(frame: pd.DataFrame) -> str:
    """The correlations in words."""
    overall, inside = correlation(frame), within(frame)
    parts = [
        f"Spearman correlation over all {len(frame)} trials: {overall:+.2f}"
        if overall is not None
        else f"{len(frame)} trials"
    ]
    if inside is not None:
        parts.append(f"mean correlation within a method: {inside:+.2f}")
    return "; ".join(parts) + "."
