"""Target against source validation score over all trials: whether what selection looks at says
anything of the target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ... import catalog
from ..names import method_group
from .runs import Shown
from .shape import LINES, OTHER, Drawing, View, canvas, data_set, group_name, named

NAME = "selection"
TITLE = "Does selection by the sources work?"
LEAST_TRIALS = 4


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """A row a finished trial. Diverged ones have no scores and are left out; adaptations are
    too, for they all start from one model.
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
    """Spearman's correlation of the two scores: of the ranks, ties averaged; None where one of
    them does not move.
    """
    ranks = frame[["source_validation_score", "target_score_unseen"]].rank()
    if len(frame) < 3 or (ranks.nunique() < 2).any():
        return None
    return float(ranks.corr().to_numpy()[0, 1])


def within(frame: pd.DataFrame) -> float | None:
    """The mean correlation inside methods: selection chooses among one method's trials, not
    among methods.
    """
    found = [
        value
        for _, part in frame.groupby(["benchmark", "method"])
        if (value := correlation(part)) is not None
    ]
    return float(np.mean(found)) if found else None


def draw(frame: pd.DataFrame) -> go.Figure:
    """A point a trial, in the colour of its group; the selected ones are filled."""
    figure = canvas(
        x="on the sources (validation rows), %", y="on the unseen target, %", height=440
    )
    groups: dict[str, list[str]] = defaultdict(list)
    for method in frame["method"].unique():
        groups[method_group(str(method))[0]].append(str(method))
    known = list(catalog.GROUPS)
    for group in sorted(
        groups, key=lambda name: known.index(name) if name in known else len(known)
    ):
        for chosen in (False, True):
            part = frame[frame["method"].isin(groups[group]) & (frame["selected"] == chosen)]
            if part.empty:
                continue
            colour = LINES.get(group, OTHER)
            figure.add_scatter(
                x=[round(100 * value, 2) for value in part["source_validation_score"]],
                y=[round(100 * value, 2) for value in part["target_score_unseen"]],
                mode="markers",
                name=group_name(group),
                legendgroup=group,
                showlegend=chosen,
                marker={
                    "color": colour,
                    "size": 9 if chosen else 7,
                    "symbol": "circle" if chosen else "circle-open",
                    "opacity": 0.85,
                },
                customdata=[
                    f"{named(method)}, seed {seed}, trial {trial}{', selected' if chosen else ''}"
                    for method, seed, trial in zip(
                        part["method"], part["seed"], part["trial"], strict=True
                    )
                ],
                hovertemplate="%{customdata}: %{x:.1f}% on the sources, %{y:.1f}% on the "
                "target<extra></extra>",
            )
    return figure


def drawing(runs: Sequence[Shown]) -> Drawing | None:
    """The figure, where there was something to select from: a method with several trials."""
    frame = collect(runs)
    if frame.empty or frame["selected"].all() or len(frame) < LEAST_TRIALS:
        return None
    says = (
        "Every trial of every method: what selection could see (the sources) against what it "
        "could not (the target). "
        "Filled points were selected. Where the cloud does not rise, the best trial on the "
        "sources need not be the best one on the target."
    )
    views = []
    for benchmark in frame["benchmark"].unique():
        part = frame[frame["benchmark"] == benchmark]
        views.append(View(data_set(benchmark), draw(part), note=_note(part)))
    return Drawing(NAME, TITLE, says, views, frame)


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
