"""The figures: one module each, imported only if the runs can have data for it.

In a module, `collect` turns runs into numbers, `draw` numbers into a picture, and `drawing` does
both, or returns None if the runs have no data for the figure after all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pandas as pd

from ...errors import FarshoreError, unknown
from .shape import Drawing, finished

SCORES, DIAGRAM = "scores", "critical-difference"


@dataclass(frozen=True)
class Figure:
    """What a figure needs, in words, and a quick test that rules out most runs without it."""

    needs: str
    possible: Callable[[pd.DataFrame], bool]


def _several(*columns: str) -> Callable[[pd.DataFrame], bool]:
    """Whether the runs differ in any of these columns."""
    return lambda runs: any(runs[name].nunique() > 1 for name in columns)


# In the order of the page, after the main figure. The module of a figure has its name.
FIGURES = {
    "in-domain": Figure("methods of at least two groups", _several("group")),
    "naive-tailored": Figure(
        "a tailored method and its naive form under the same conditions",
        lambda runs: {"naive", "tailored"} <= set(runs["group"]),
    ),
    "memory": Figure("runs of a method with more than one size of memory", _several("memory")),
    "selection": Figure(
        "several trials per method, of which some were not selected",
        lambda runs: not runs["selected"].all(),
    ),
    "orders": Figure("runs with more than one order of the sources", _several("sources")),
    "sensitivity": Figure(
        "runs that vary penalty_weight or alignment_weight alone",
        _several("variant", "trial", "run"),
    ),
    "accuracy-matrix": Figure("runs over at least two domains", lambda runs: len(runs) > 0),
    "features": Figure(
        "runs that saved their features", lambda runs: bool((runs["features"] != "").any())
    ),
    "step-time": Figure("runs over at least two domains", lambda runs: len(runs) > 0),
}


def draw_all(frame: pd.DataFrame, folder: Path) -> list[Drawing]:
    """All figures that the runs of a folder have data for, but for the main one."""
    runs = finished(frame, folder)
    drawings = (_draw(name, runs) for name in FIGURES)
    return [drawing for drawing in drawings if drawing is not None]


def draw_one(name: str, frame: pd.DataFrame, folder: Path) -> Drawing:
    """One figure by name; the error for missing data says what the figure needs."""
    check_figure(name)
    drawing = _draw(name, finished(frame, folder))
    if drawing is None:
        raise no_data(name, FIGURES[name].needs)
    return drawing


def no_data(name: str, needs: str) -> FarshoreError:
    """The error for runs without the data for a figure."""
    return FarshoreError(f"these runs have no data for the figure {name}: it needs {needs}")


def _draw(name: str, runs: pd.DataFrame) -> Drawing | None:
    if not FIGURES[name].possible(runs):
        return None
    drawn: Drawing | None = import_module(f".{name.replace('-', '_')}", __package__).drawing(runs)
    return drawn


def check_figure(name: str) -> None:
    """Raise an error if no figure has this name."""
    if name not in (*FIGURES, SCORES):
        raise unknown("figure", name, [*FIGURES, SCORES, DIAGRAM])
