"""The figures: each a file with `collect` (runs to numbers), `draw` (numbers to a picture) and
`drawing` (both, where there are data).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import FarshoreError, unknown
from . import (
    accuracy_matrix,
    critical_difference,
    features,
    in_domain,
    memory,
    naive_tailored,
    orders,
    selection,
    sensitivity,
    step_time,
)
from .runs import Shown
from .shape import Drawing

# In the order of the page.
FIGURES: dict[str, Callable[[Sequence[Shown]], Drawing | None]] = {
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
# What each one needs, for whoever asks for one that is not there.
NEEDS = {
    in_domain.NAME: "methods of at least two groups",
    naive_tailored.NAME: "a tailored method and its naive form under the same conditions "
    "(experiments/naive_vs_tailored.yaml)",
    memory.NAME: "runs of a method with more than one size of memory (experiments/memory_50.yaml)",
    selection.NAME: "several trials a method, of which some were not selected",
    orders.NAME: "runs with more than one order of the sources (experiments/orders.yaml)",
    sensitivity.NAME: "runs that vary penalty_weight or alignment_weight alone "
    "(experiments/sensitivity.yaml)",
    accuracy_matrix.NAME: "runs over at least two domains",
    features.NAME: "runs that saved their features (experiments/feature_space.yaml)",
    step_time.NAME: "runs over at least two domains",
}


def draw_all(runs: Sequence[Shown]) -> list[Drawing]:
    """Every figure whose data are there."""
    found = (make(runs) for make in FIGURES.values())
    return [drawing for drawing in found if drawing is not None]


def check_figure(name: str) -> None:
    """Refuse a name that no figure has."""
    if name not in FIGURES:
        raise unknown("figure", name, [*FIGURES, critical_difference.NAME])


def draw_one(name: str, runs: Sequence[Shown]) -> Drawing:
    """One figure by name; what it needs is said where that is not there."""
    check_figure(name)
    drawing = FIGURES[name](runs)
    if drawing is None:
        raise FarshoreError(
            f"these runs hold nothing for the figure {name}: it needs {NEEDS[name]}"
        )
    return drawing
