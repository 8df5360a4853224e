"""The accuracy matrix as a heat map: scores on all sources after each domain, and on the target."""

from collections.abc import Iterator, Sequence

import pandas as pd
import plotly.graph_objects as go

from ...results.summary import metric_of, rank
from ...runs.result import Result
from .shape import OF_ROW, Drawn, View, canvas, comparable, estimates, places, text

# From low to high, without a bright middle, so that the numbers stay readable.
SCALE = [[0.0, "#fbf3e4"], [0.35, "#c9dcc0"], [0.7, "#6ba58f"], [1.0, "#1f5f6b"]]
CELL = ["stage", "learned", "position", "domain", "unseen_target"]


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, target, method, stage and scored domain.

    Scores are means over the seeds on validation rows; the target is scored after the last stage.
    """
    cells = [(index, *cell) for index, result in runs["result"].items() for cell in _cells(result)]
    known = runs[[*OF_ROW, "last_source", "order", "seed"]]
    lines = pd.DataFrame(cells, columns=["of", *CELL, "score"]).join(known, on="of")
    frame = estimates(lines, [*OF_ROW, *CELL], "score")
    return frame.drop(columns=["standard_error", "unit"]) if len(frame) else frame


def _cells(result: Result) -> Iterator[tuple[int, str, int, str, bool, float | None]]:
    matrix = result.matrices["validation"]
    stages = result.stages or list(result.sources[: len(matrix)])
    for number, (stage, row) in enumerate(zip(stages, matrix, strict=False), start=1):
        for position, (domain, score) in enumerate(zip(result.sources, row, strict=True)):
            yield number, stage, position, domain, False, score
    if result.target is not None and matrix:
        last = len(matrix), stages[-1], len(result.sources)
        yield *last, result.target.name, True, result.target_score


def draw(frame: pd.DataFrame) -> go.Figure:
    """Stages from top to bottom, domains from left to right, the unseen target last."""
    table = (100 * frame.pivot(index="stage", columns="position", values="score")).round(2)
    stages = dict(zip(frame["stage"], frame["learned"], strict=True))
    domains = dict(zip(frame["position"], frame["domain"], strict=True))
    unseen = set(frame.loc[frame["unseen_target"], "position"])
    scores = [[None if pd.isna(score) else score for score in row] for row in table.to_numpy()]
    return heat_map(
        [text(domains[at]) + (" (unseen)" if at in unseen else "") for at in table.columns],
        [f"{stage}. {text(stages[stage])}" for stage in table.index],
        scores,
        titles=("scored on", "after learning"),
        hover="after %{y}, on %{x}: %{z:.1f}%",
        height=130 + 46 * len(table),
    )


def drawing(runs: pd.DataFrame) -> Drawn | None:
    """The figure, if a run learned several domains; the first of the ranking is shown first."""
    runs = comparable(runs)
    frame = collect(runs)
    if metric_of(runs).scale != 100 or frame.empty or frame["stage"].max() < 2:
        return None
    # A method that lacks a score is not ranked.
    ranked = {name: rank(part[part["complete"]]).ranked for name, part in places(runs)}
    leaders = {name: of[0].row for name, of in ranked.items() if of}
    says = (
        "Each line shows the scores on all sources' validation rows after one more domain was "
        "learned. Below the diagonal are past domains, above it future ones; the last column is "
        "the unseen target."
    )
    shown = []
    for place, part in places(frame):
        methods, leader = list(part["method"].unique()), leaders.get(place, "")
        if leader in methods:
            methods.insert(0, methods.pop(methods.index(leader)))
        for method in methods:
            label = f"{method} (best here)" if method == leader and len(methods) > 1 else method
            shown.append(View(label, draw(part[part["method"] == method]), of=place))
    return says, shown, frame, runs


def heat_map(
    x: Sequence[str],
    y: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    titles: tuple[str, str],
    hover: str,
    height: int,
    cells: Sequence[Sequence[str]] | None = None,
) -> go.Figure:
    """Values in % as a heat map with a number, or the text of `cells`, in every cell."""
    figure = canvas(x=titles[0], y=titles[1], height=height, legend=False)
    figure.add_heatmap(
        x=x,
        y=y,
        z=values,
        text=cells or [["" if each is None else f"{each:.0f}" for each in row] for row in values],
        texttemplate="%{text}",
        zmin=0,
        zmax=100,
        colorscale=SCALE,
        xgap=2,
        ygap=2,
        hoverongaps=False,
        colorbar={"thickness": 12, "ticksuffix": "%", "outlinewidth": 0},
        hovertemplate=f"{hover}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return figure
