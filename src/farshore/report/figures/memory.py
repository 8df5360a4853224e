"""The score on the target with the full memory and with fractions of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..names import method_group, methods_in_order
from ..overlay import Overlay
from .runs import Shown, average, describe, first_experiment
from .shape import DASHES, Drawing, View, calm, canvas, data_set, errors, named

NAME = "memory"
TITLE = "Less memory"
ALL = "average over data sets"


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per data set, method and memory size, for methods that ran with several sizes.

    The largest size is 100 %.
    """
    chosen = _chosen(runs)
    scores: dict[tuple[str, str, int, int], list[float | None]] = defaultdict(list)
    for run in chosen:
        scores[(run.benchmark, run.method, run.result.steps, run.result.memory)].append(
            run.result.target_score
        )
    sizes: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for benchmark, method, steps, memory in scores:
        sizes[(benchmark, method, steps)].add(memory)
    rows = []
    for (benchmark, method, steps, memory), values in scores.items():
        of_method = sizes[(benchmark, method, steps)]
        score, error = average(values)
        if len(of_method) > 1 and score is not None:
            share = 100 * memory / max(of_method)
            rows.append(
                {
                    "benchmark": benchmark,
                    "method": method,
                    "memory_rows": memory,
                    "memory_percent": round(share, 1),
                    "target_score_unseen": score,
                    "standard_error": error,
                }
            )
    return pd.DataFrame(rows)


def _chosen(runs: Sequence[Shown]) -> list[Shown]:
    return first_experiment([run for run in runs if run.selected and run.listed])


def draw(frame: pd.DataFrame, overlay: Overlay) -> go.Figure:
    """One line per method over the sizes; several data sets are averaged, without whiskers."""
    figure = canvas(x="memory, of the full size", y="on the unseen target, %")
    several = frame["benchmark"].nunique() > 1
    lines_drawn: dict[str, int] = defaultdict(int)
    for method in methods_in_order(frame["method"]):
        group = method_group(method)[0]
        of_method = frame[frame["method"] == method]
        shares = sorted(of_method["memory_percent"].unique(), reverse=True)
        means, spreads = [], []
        for share in shares:
            at = of_method[of_method["memory_percent"] == share]
            score, _ = average(at["target_score_unseen"])
            error = None if several else at["standard_error"].iloc[0]
            means.append(100 * (score or 0.0))
            spreads.append(None if error is None or pd.isna(error) else 100 * error)
        figure.add_scatter(
            x=[f"{share:g}%" for share in shares],
            y=means,
            error_y=errors(spreads),
            name=named(method, overlay),
            mode="lines+markers",
            line={
                "color": overlay.line(group),
                "width": 2,
                "dash": DASHES[lines_drawn[group] % len(DASHES)],
            },
            hovertemplate=f"{named(method, overlay)}, memory %{{x}}: %{{y:.1f}}%<extra></extra>",
        )
        lines_drawn[group] += 1
    figure.update_xaxes(type="category")
    calm(figure)
    return figure


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if a method ran with more than one memory size."""
    frame = collect(runs)
    if frame.empty:
        return None
    says = (
        "How a smaller memory changes the score on the unseen target. Each line is a method, "
        "with its own search at each size."
    )
    views = [
        View(data_set(benchmark, overlay), draw(frame[frame["benchmark"] == benchmark], overlay))
        for benchmark in frame["benchmark"].unique()
    ]
    if len(views) > 1:
        complete = (
            frame.groupby(["method", "memory_percent"])["benchmark"].transform("nunique")
            == frame["benchmark"].nunique()
        )
        views = [View(ALL, draw(frame[complete], overlay)), *views] if complete.any() else views
    return Drawing(NAME, TITLE, says, views, frame, shows=describe(_chosen(runs)))
