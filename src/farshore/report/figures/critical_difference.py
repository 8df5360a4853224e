"""The critical-difference diagram: mean ranks on a line; bars join indistinguishable methods."""

import html
import math
from collections.abc import Callable

import pandas as pd

from ...errors import FarshoreError
from ...results.data_sets import Significance

NAME = "critical-difference"
WIDTH, LEFT, RIGHT = 960, 190, 770
LINE, TOP, STEP = 20, 64, 9


def diagram(test: Significance | None) -> tuple[pd.DataFrame, str]:
    """The mean ranks of the methods, and the diagram."""
    drawn = svg(test) if test is not None else None
    if test is None or drawn is None:
        raise FarshoreError(
            f"these runs have no data for the figure {NAME}: it needs ranks of at least three "
            "methods that do better than guessing over at least two data sets"
        )
    return pd.DataFrame(test.mean_ranks.items(), columns=["method", "mean_rank"]), drawn


def svg(test: Significance) -> str | None:
    """An SVG in the text's colour, readable in light and dark; None if there was no test."""
    ranks = sorted(test.mean_ranks.items(), key=lambda pair: (pair[1], pair[0]))
    if test.critical is None:
        return None
    low, high = math.floor(ranks[0][1]), math.ceil(ranks[-1][1])
    low, high = (low, high) if high > low else (low, low + 1)

    def at(rank: float) -> float:
        return LEFT + (RIGHT - LEFT) * (rank - low) / (high - low)

    below = TOP + STEP * len(test.cliques) + 16
    half = math.ceil(len(ranks) / 2)
    height = below + LINE * max(half, len(ranks) - half) + 8
    parts = [_axis(low, high, at), _scale(test.critical, high - low)]
    for index, clique in enumerate(test.cliques):
        members = [test.mean_ranks[name] for name in clique]
        y = TOP + STEP * (index + 1)
        x1, x2 = at(min(members)) - 4, at(max(members)) + 4
        parts.append(f'<line class="bar" x1="{x1:.1f}" y1="{y}" x2="{x2:.1f}" y2="{y}"/>')
    for index, (name, rank) in enumerate(ranks):
        left = index < half
        y = below + LINE * (index if left else len(ranks) - 1 - index)
        end, anchor = (LEFT - 18, "end") if left else (RIGHT + 18, "start")
        label, number = html.escape(name), f'<tspan class="rank">{rank:.1f}</tspan>'
        shown = f"{label} {number}" if left else f"{number} {label}"
        x = f"{at(rank):.1f}"
        parts.append(f'<polyline class="stem" points="{x},{TOP} {x},{y} {end},{y}"/>')
        beside = end + (-6 if left else 6)
        parts.append(f'<text x="{beside}" y="{y + 4}" text-anchor="{anchor}">{shown}</text>')
    joined = "bars join methods that are not distinguishable"
    description = f"Mean ranks of {len(ranks)} methods on a line; {joined}."
    return (
        f'<svg class="diagram" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{description}" '
        'font-family="system-ui, sans-serif" font-size="13" fill="currentColor">'
        "<style>.diagram line,.diagram polyline{stroke:currentColor;fill:none}.diagram "
        ".stem{stroke-width:1;opacity:.55}"
        ".diagram .bar{stroke-width:5;stroke-linecap:round;opacity:.8}.diagram "
        ".rank{opacity:.65;font-size:11px}</style>"
        f"{''.join(parts)}</svg>"
    )


def _axis(low: int, high: int, at: Callable[[float], float]) -> str:
    """The axis of ranks with numbers, the best on the left."""
    step = max(1, math.ceil((high - low) / 10))
    parts = [f'<line x1="{at(low):.1f}" y1="{TOP}" x2="{at(high):.1f}" y2="{TOP}"/>']
    for rank in range(low, high + 1, step):
        parts.append(f'<line x1="{at(rank):.1f}" y1="{TOP - 6}" x2="{at(rank):.1f}" y2="{TOP}"/>')
        parts.append(f'<text x="{at(rank):.1f}" y="{TOP - 11}" text-anchor="middle">{rank}</text>')
    return "".join(parts)


def _scale(difference: float, span: int) -> str:
    """The critical difference at the scale of the axis; a longer one is cut and labelled so."""
    length = (RIGHT - LEFT) * min(1.0, difference / span)
    longer = " (longer than this line)" if difference > span else ""
    return (
        f'<line x1="{LEFT}" y1="24" x2="{LEFT + length:.1f}" y2="24"/><line x1="{LEFT}" y1="19" '
        f'x2="{LEFT}" y2="29"/>'
        f'<line x1="{LEFT + length:.1f}" y1="19" x2="{LEFT + length:.1f}" y2="29"/>'
        f'<text x="{LEFT}" y="13">critical difference {difference:.2f}{longer}</text>'
    )
