"""The main figure: every method's score on the unseen target, ranked, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from ..runs.averages import mean
from .contest import Contest, Place, UnitKind, average, unit_kind
from .figures.shape import Drawing, View, canvas, text, transparent
from .overlay import Overlay
from .ranking import RankedRow, Ranking

NAME = "scores"
TITLE = "Scores on the unseen target"
REFERENCE = "#80868c"
DOTS = {
    UnitKind.DATASET: "data set",
    UnitKind.TARGET: "target and order",
    UnitKind.ORDER: "order of the sources",
    UnitKind.SEED: "seed",
}


def drawing(contest: Contest, ranking: Ranking, overlay: Overlay, shows: str) -> Drawing:
    """The figure. `shows` is the line with the conditions."""
    rows = [row for row in ranking.rows if row.rank is not None] or list(ranking.rows)
    lines = reference_lines(contest)
    kind = unit_kind(contest)
    interval = (
        f" Bars are 95% intervals of the mean over {kind}s; the verdict does not compare them but "
        "the methods pair by pair."
        if any(row.half is not None for row in rows)
        else ""
    )
    says = (
        f"Methods by rank. The large mark is the mean, each small dot one {DOTS[kind]}.{interval} "
        + " ".join(
            f"{style} line: {words}, {value:.1f}%."
            for (words, value), style in zip(lines.items(), ("Dotted", "Dashed"), strict=False)
        )
    )
    return Drawing(
        NAME,
        TITLE,
        says.strip(),
        [View("", draw(contest, rows, overlay, lines))],
        frame(contest, rows),
        shows=shows,
    )


def reference_lines(contest: Contest) -> dict[str, float]:
    """The most frequent class and training on all sources at once, where they are known."""
    lines: dict[str, float] = {}
    shares = [share for facts in contest.facts.values() for share in facts.majority.values()]
    if len(contest.datasets) == 1 and (share := mean(shares)) is not None:
        lines["most frequent class"] = share
    joint = next((one for one in contest.entrants if one.key == "joint"), None)
    if joint is not None and (score := average(contest, joint)) is not None:
        lines["all sources at once"] = score
    return lines


def frame(contest: Contest, rows: Sequence[RankedRow]) -> pd.DataFrame:
    """One row per method, target and order."""
    return pd.DataFrame(
        {
            "rank": row.rank,
            "method": row.entrant.key,
            "benchmark": place.dataset,
            "target": place.target,
            "order": place.sources,
            "score": contest.score(row.entrant, place),
            "mean": row.mean,
            "half_interval": row.half,
            "constant_predictor": row.constant,
        }
        for row in rows
        for place in row.entrant.scores
    )


def draw(
    contest: Contest, rows: Sequence[RankedRow], overlay: Overlay, lines: dict[str, float]
) -> go.Figure:
    """One line per method, the best on top."""
    figure = canvas(x="on the unseen target, %", y="", height=130 + 34 * len(rows), legend=False)
    labels = [_label(row) for row in rows]
    single = unit_kind(contest) is UnitKind.SEED
    shown = [row.mean for row in rows]
    for row, label in zip(rows, labels, strict=True):
        colour = overlay.line(row.entrant.group)
        dots = _dots(contest, row, single)
        shown += [score for _, score in dots]
        figure.add_scatter(
            x=[score for _, score in dots],
            y=[label] * len(dots),
            mode="markers",
            marker={"color": transparent(colour, 0.45), "size": 7},
            customdata=[words for words, _ in dots],
            hovertemplate=f"{text(row.entrant.label)}, %{{customdata}}: %{{x:.1f}}%<extra></extra>",
        )
        figure.add_scatter(
            x=[row.mean],
            y=[label],
            mode="markers",
            error_x={"visible": False}
            if row.half is None
            else {
                "type": "data",
                "symmetric": False,
                # A score has no values below 0 or above 100.
                "array": [min(row.half, 100 - row.mean)],
                "arrayminus": [min(row.half, row.mean)],
                "thickness": 2,
                "width": 5,
                "color": colour,
            },
            marker={
                "color": colour,
                "size": 13,
                "symbol": "x-open" if row.constant else "diamond",
            },
            hovertemplate=f"{text(row.entrant.label)}, mean: %{{x:.1f}}%<extra></extra>",
        )
    _add_lines(figure, lines)
    shown += lines.values()
    figure.update_xaxes(range=[max(0.0, min(shown) - 3), min(100.0, max(shown) + 3)])
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=labels[::-1], showgrid=True
    )
    figure.update_layout(margin={"t": 48})
    return figure


def _label(row: RankedRow) -> str:
    number = f"{row.rank}. " if row.rank is not None else ""
    return number + text(row.entrant.label) + (" (guessing)" if row.constant else "")


def _dots(contest: Contest, row: RankedRow, single: bool) -> list[tuple[str, float]]:
    """What each dot is, and its score: one per place, or per seed if there is one place."""
    if single:
        (place,) = row.entrant.scores
        seeds = row.entrant.values(contest.metric[place.dataset]).get(place, {})
        return [(f"seed {seed}", value) for seed, value in seeds.items()]
    scores = [(place, contest.score(row.entrant, place)) for place in row.entrant.scores]
    return [(_words(place), score) for place, score in scores if score is not None]


def _words(place: Place) -> str:
    return text(f"{place.dataset}, target {place.target}, order {place.sources}")


def _add_lines(figure: go.Figure, lines: dict[str, float]) -> None:
    for index, (words, value) in enumerate(lines.items()):
        figure.add_shape(
            type="line",
            x0=value,
            x1=value,
            y0=0,
            y1=1,
            yref="paper",
            line={"color": REFERENCE, "width": 1.5, "dash": ("dot", "dash")[index]},
        )
        figure.add_annotation(
            x=value,
            y=1,
            yref="paper",
            yanchor="bottom",
            yshift=17 * index,
            text=words,
            showarrow=False,
            font={"size": 11, "color": REFERENCE},
        )
