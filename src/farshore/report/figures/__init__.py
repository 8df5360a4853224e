"""The figures: one module each.

`collect` turns runs into numbers, `draw` numbers into a picture, and `drawing` does both, or
returns None if the runs have no data for the figure.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ...errors import FarshoreError, unknown
from ...results.conditions import conditions
from ...results.select import main_runs
from ...results.summary import rank
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
from .comparable import finished
from .shape import Drawing

# In the order of the page, after the main figure.
FIGURES = {
    module.NAME: module
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


def draw_all(frame: pd.DataFrame, folder: Path) -> list[Drawing]:
    """All figures that the runs of a folder have data for, but for the main one."""
    runs = finished(frame, folder)
    drawings = (figure.drawing(runs) for figure in FIGURES.values())
    return [drawing for drawing in drawings if drawing is not None]


def draw_one(name: str, frame: pd.DataFrame, folder: Path) -> Drawing:
    """One figure by name; the error for missing data says what the figure needs."""
    check_figure(name)
    if name == scores.NAME:
        drawing, needs = _main(main_runs(frame)), scores.NEEDS
    else:
        drawing, needs = FIGURES[name].drawing(finished(frame, folder)), FIGURES[name].NEEDS
    if drawing is None:
        raise FarshoreError(f"these runs have no data for the figure {name}: it needs {needs}")
    return drawing


def _main(runs: pd.DataFrame) -> Drawing | None:
    return scores.drawing(runs, rank(runs), conditions(runs)) if len(runs) else None


def check_figure(name: str) -> None:
    """Raise an error if no figure has this name."""
    if name not in (*FIGURES, scores.NAME):
        raise unknown("figure", name, [*FIGURES, scores.NAME, critical_difference.NAME])
