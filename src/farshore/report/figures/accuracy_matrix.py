"""The accuracy matrix as a heat map: scores on all sources after each domain, and on the target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..names import method_group, methods_in_order
from ..overlay import Overlay
from .runs import Shown, average, describe, plain
from .shape import Drawing, View, canvas, data_set, text

NAME = "accuracy-matrix"
TITLE = "Scores after each domain"
# From low to high, without a bright middle, so that the numbers stay readable.
SCALE = [[0.0, "#fbf3e4"], [0.35, "#c9dcc0"], [0.7, "#6ba58f"], [1.0, "#1f5f6b"]]


def collect(runs: Sequence[Shown]) -> pd.DataFrame:
    """One row per data set, method, stage and scored domain.

    Scores are means over the seeds on validation rows; the target is scored after the last stage.
    """
    scores: dict[tuple[str, str, int, str, int, str, bool], list[float | None]] = defaultdict(list)
    for run in plain(runs):
        matrix = run.result.matrices["validation"]
        stages = run.result.stages or list(run.result.sources[: len(matrix)])
        for number, (stage, row) in enumerate(zip(stages, matrix, strict=False)):
            for position, (domain, score) in enumerate(zip(run.result.sources, row, strict=True)):
                scores[
                    (run.benchmark, run.method, number + 1, stage, position, domain, False)
                ].append(score)
        if run.result.target is not None and matrix:
            key = (
                run.benchmark,
                run.method,
                len(matrix),
                stages[-1],
                len(run.result.sources),
                run.result.target.name,
                True,
            )
            scores[key].append(run.result.target_score)
    rows = []
    for (benchmark, method, number, learned, position, domain, unseen), values in scores.items():
        rows.append(
            {
                "benchmark": benchmark,
                "method": method,
                "stage": number,
                "learned": learned,
                "position": position,
                "domain": domain,
                "unseen_target": unseen,
                "score": average(values)[0],
            }
        )
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> go.Figure:
    """Stages from top to bottom, domains from left to right, the unseen target last."""
    stages = frame.drop_duplicates("stage").sort_values("stage")
    figure = canvas(x="scored on", y="after learning", height=130 + 46 * len(stages), legend=False)
    domains = frame.drop_duplicates("position").sort_values("position")
    names = [
        f"{text(name)} (unseen)" if unseen else text(name)
        for name, unseen in zip(domains["domain"], domains["unseen_target"], strict=True)
    ]
    scores = {
        (stage, position): score
        for stage, position, score in zip(
            frame["stage"], frame["position"], frame["score"], strict=True
        )
    }
    table = [
        [_percent(scores.get((stage, position))) for position in domains["position"]]
        for stage in stages["stage"]
    ]
    figure.add_heatmap(
        x=names,
        y=[
            f"{stage}. {text(name)}"
            for stage, name in zip(stages["stage"], stages["learned"], strict=True)
        ],
        z=table,
        text=[["" if score is None else f"{score:.0f}" for score in row] for row in table],
        texttemplate="%{text}",
        zmin=0,
        zmax=100,
        colorscale=SCALE,
        xgap=2,
        ygap=2,
        hoverongaps=False,
        colorbar={"thickness": 12, "ticksuffix": "%", "outlinewidth": 0},
        hovertemplate="after %{y}, on %{x}: %{z:.1f}%<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return figure


def _percent(score: float | None) -> float | None:
    return None if score is None or pd.isna(score) else round(100 * score, 2)


def _best(frame: pd.DataFrame, methods: Sequence[str]) -> str:
    """The continual method with the best target score; other kinds have seen more data."""
    target = frame[
        frame["unseen_target"]
        & frame["method"].map(lambda name: method_group(name)[1] == "continual")
    ]
    target = target.dropna(subset=["score"])
    return str(target.sort_values("score")["method"].iloc[-1]) if len(target) else methods[0]


def drawing(runs: Sequence[Shown], overlay: Overlay) -> Drawing | None:
    """The figure, if a run learned several domains; the method with the best target is first."""
    frame = collect(runs)
    if frame.empty or frame["stage"].max() < 2:
        return None
    says = (
        "Each line shows the scores on all sources' validation rows after one more domain was "
        "learned. Below the diagonal are past domains, above it future ones; the last column is "
        "the unseen target."
    )
    views = []
    for benchmark in frame["benchmark"].unique():
        of_benchmark = frame[frame["benchmark"] == benchmark]
        methods = methods_in_order(of_benchmark["method"])
        best = _best(of_benchmark, methods)
        for method in sorted(methods, key=lambda name: name != best):
            of_method = of_benchmark[of_benchmark["method"] == method]
            label = overlay.label(method) + (
                " (best here)" if method == best and len(methods) > 1 else ""
            )
            views.append(View(label, draw(of_method), of=data_set(benchmark, overlay)))
    return Drawing(NAME, TITLE, says, views, frame, shows=describe(plain(runs)))
