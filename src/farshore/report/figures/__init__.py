"""The figures: one module each.

`collect` turns runs into numbers, `draw` numbers into a picture, and `drawing` does both, or
returns None if the runs have no data for the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import FarshoreError, unknown
from ..conditions import conditions
from ..overlay import Overlay
from ..ranking import rankings
from ..table import Report
from ..verdict import judge
from . import (
    accuracy_matrix,
    critical_difference,
    features,
    in_domain,
    memory,
    naive_tailored,
    orders,
    scores,
    selection,
    sensitivity,
    step_time,
)
from .runs import Shown
from .shape import Drawing

SCORES = scores.NAME
# In the order of the page, after the main figure.
FIGURES: dict[str, Callable[[Sequence[Shown], Overlay], Drawing | None]] = {
    module.NAME: module.drawing
    for module in (
        in_domain,
        naive_tailored,
        memory,
        selection,
        orders,
        sensitivity,
        accuracy_matrix,
        features,
        step_time,
    )
}
# The data that each figure needs, for the error message.
NEEDS = {
    in_domain.NAME: "methods of at least two groups",
    naive_tailored.NAME: "a tailored method and its naive form under the same conditions",
    memory.NAME: "runs of a method with more than one size of memory",
    selection.NAME: "several trials per method, of which some were not selected",
    orders.NAME: "runs with more than one order of the sources",
    sensitivity.NAME: "runs that vary penalty_weight or alignment_weight alone",
    accuracy_matrix.NAME: "runs over at least two domains",
    features.NAME: "runs that saved their features",
    step_time.NAME: "runs over at least two domains",
}


def draw_all(runs: Sequence[Shown], overlay: Overlay) -> list[Drawing]:
    """All figures that the runs have data for."""
    drawings = (make(runs, overlay) for make in FIGURES.values())
    return [drawing for drawing in drawings if drawing is not None]


def check_figure(name: str) -> None:
    """Raise an error if no figure has this name."""
    if name not in (*FIGURES, SCORES):
        raise unknown("figure", name, [*FIGURES, SCORES, critical_difference.NAME])


def draw_scores(report: Report, overlay: Overlay) -> Drawing:
    """The main figure of a report."""
    table = report.main_table
    if table is None or table.contest is None:
        raise FarshoreError(f"these runs have no data for the figure {SCORES}: none has a score")
    verdict = judge(table.contest)
    (ranking, *_) = rankings(table.contest, verdict)
    return scores.drawing(table.contest, ranking, overlay, conditions(table.contest))


def draw_one(name: str, runs: Sequence[Shown], overlay: Overlay) -> Drawing:
    """One figure by name; the error for missing data says what the figure needs."""
    check_figure(name)
    drawing = FIGURES[name](runs, overlay)
    if drawing is None:
        example = f" ({overlay.example(name)})" if overlay.example(name) else ""
        raise FarshoreError(
            f"these runs have no data for the figure {name}: it needs {NEEDS[name]}{example}"
        )
    return drawing
