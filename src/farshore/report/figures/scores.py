"""The main figure: every method's score on the unseen target, ranked, with its interval."""

import math
from collections.abc import Hashable
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from ...results.select import observed
from ...results.summary import Estimate, Ranking, Standing, Unit, guess_level, metric_of
from ...results.verdict import UPPER_BOUND
from ...tasks.metrics import Metric, guess_words, several
from ..cells import line
from .shape import WHISKER, Drawing, View, canvas, estimates, on_target, text, transparent

NAME = "scores"
TITLE = "Scores on the unseen target"
# Room beside the lowest and the highest score or interval end, as a share of the metric's scale.
MARGIN = 0.03
DOTS = {
    Unit.DATASET: "target and order of a data set",
    Unit.TARGET: "target and order",
    Unit.LAST_SOURCE: "order of the sources",
    Unit.ORDER: "order of the sources",
    Unit.SEED: "seed",
}
STYLES = {"Dotted": "dot", "Dashed": "dash"}


def drawing(frame: pd.DataFrame, ranking: Ranking, shows: str) -> Drawing:
    """The figure. `shows` is the line with the conditions."""
    metric = ranking.metric
    numbers = collect(frame, ranking)
    lines = reference_lines(frame, ranking)
    dot, units = DOTS[ranking.unit], several(numbers["units"].max(), ranking.unit)
    says = [f"Methods by rank. The large mark is the mean, each small dot one {dot}."]
    if numbers["low"].notna().any():
        says.append(
            f"Bars are 95% intervals of the mean over {units}; the verdict does not compare them "
            "but the methods pair by pair."
        )
    for style, (words, value) in zip(STYLES, lines.items(), strict=False):
        says.append(f"{style} line: {words}, {metric.text(value)}{metric.unit}.")
    view = View("", draw(numbers, ranking, lines))
    return Drawing(NAME, TITLE, " ".join(says), [view], numbers, shows=shows)


def _drawn(ranking: Ranking) -> list[tuple[Standing, Estimate]]:
    """The ranked rows with their means; all rows if none is ranked."""
    rows = ranking.ranked or ranking.standings
    return [(each, each.estimate) for each in rows if each.estimate is not None]


def collect(frame: pd.DataFrame, ranking: Ranking) -> pd.DataFrame:
    """One row per dot: a method at a target in an order, or with a seed if only seeds differ."""
    column = ranking.metric.name if ranking.metric.name in frame else "score"
    runs = observed(frame).assign(score=lambda runs: runs[column].astype(float))
    by = ["row", "benchmark", "target", "order", *(["seed"] if ranking.unit is Unit.SEED else [])]
    dots = estimates(runs, by, "score").drop(columns=["standard_error", "unit", "units"])
    rows = [
        {
            "rank": each.rank,
            "method": each.row,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "unit": str(found.unit),
            "units": found.units,
            "guessing": each.guessing,
        }
        for each, found in _drawn(ranking)
    ]
    numbers = pd.DataFrame(rows).merge(dots, on="method")
    return numbers[["rank", *dots, *(name for name in numbers if name not in ("rank", *dots))]]


def reference_lines(frame: pd.DataFrame, ranking: Ranking) -> dict[str, float]:
    """What always predicting the most frequent class and training on all sources at once score."""
    lines = {}
    level = guess_level(frame)
    main = ranking.metric == metric_of(frame)
    if main and level is not None and frame["benchmark"].nunique() == 1:
        words = guess_words(int(observed(frame)["classes"].max()))
        lines[f"always {words.always}".replace("the most", "the target's own most")] = level
    joint = ranking.find(UPPER_BOUND)
    if joint is not None and joint.estimate is not None:
        lines["all sources at once"] = joint.estimate.mean
    return lines


def draw(numbers: pd.DataFrame, ranking: Ranking, lines: dict[str, float]) -> go.Figure:
    """One line per method, the best on top."""
    metric, drawn = ranking.metric, _drawn(ranking)
    figure = canvas(x=on_target(metric), y="", height=130 + 34 * len(drawn), legend=False)
    labels = [_label(each) for each, _ in drawn]
    form = f".{metric.decimals(1)}f" if metric.digits is None else f".{metric.digits}~r"
    hover = f"%{{x:{form}}}{metric.unit}<extra></extra>"
    for label, (each, found) in zip(labels, drawn, strict=True):
        colour, dots = line(each.group), numbers[numbers["method"] == each.row]
        figure.add_scatter(
            x=list(metric.scale * dots["score"]),
            y=[label] * len(dots),
            mode="markers",
            marker={"color": transparent(colour, 0.45), "size": 7},
            customdata=[_words(dot) for dot in dots.to_dict("records")],
            hovertemplate=f"{text(each.row)}, %{{customdata}}: {hover}",
        )
        symbol = "x-open" if each.guessing else "diamond"
        figure.add_scatter(
            x=[metric.scale * found.mean],
            y=[label],
            mode="markers",
            error_x=_interval(found, metric, colour),
            marker={"color": colour, "size": 13, "symbol": symbol},
            hovertemplate=f"{text(each.row)}, mean: {hover}",
        )
    _add_lines(figure, {words: metric.scale * value for words, value in lines.items()})
    ends = numbers[["low", "high"]].stack().dropna()
    shown = [*numbers["score"], *numbers["mean"], *ends, *lines.values()]
    margin = MARGIN if math.isfinite(metric.span) else 2 * MARGIN * (max(shown) - min(shown))
    low, high = max(metric.low, min(shown) - margin), min(metric.high, max(shown) + margin)
    figure.update_xaxes(range=[metric.scale * low, metric.scale * high])
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=labels[::-1], showgrid=True
    )
    figure.update_layout(margin={"t": 48})
    return figure


def _label(each: Standing) -> str:
    number = f"{each.rank}. " if each.rank is not None else ""
    return number + text(each.row) + (" (guessing)" if each.guessing else "")


def _words(dot: dict[Hashable, Any]) -> str:
    seed = f", seed {dot['seed']}" if "seed" in dot else ""
    return text(f"{dot['benchmark']}, target {dot['target']}, order {dot['order']}{seed}")


def _interval(found: Estimate, metric: Metric, colour: str) -> dict[str, object]:
    if found.low is None or found.high is None:
        return {"visible": False}
    return {
        "type": "data",
        "symmetric": False,
        "array": [metric.scale * (found.high - found.mean)],
        "arrayminus": [metric.scale * (found.mean - found.low)],
        "thickness": 2,
        "width": 5,
        "color": colour,
    }


def _add_lines(figure: go.Figure, lines: dict[str, float]) -> None:
    for index, (words, value) in enumerate(lines.items()):
        dash = list(STYLES.values())[index]
        figure.add_vline(value, line={"color": WHISKER, "width": 1.5, "dash": dash})
        place = {"x": value, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 17 * index}
        font = {"size": 11, "color": WHISKER}
        figure.add_annotation(**place, text=words, showarrow=False, font=font)
