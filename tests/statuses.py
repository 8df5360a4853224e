"""Table cells in every possible state."""

from __future__ import annotations

from farshore.report.table import Cell, Over, Status

PLAN = {"seeds_planned": 2, "trials_planned": 3}
STATES = [
    (Cell(5.0, seeds=2, trials=3, **PLAN), Status.DONE),
    (Cell(5.0), Status.DONE),
    (Cell(5.0, seeds=1, trials=3, **PLAN), Status.PARTIAL),
    (Cell(5.0, seeds=2, trials=1, **PLAN), Status.PARTIAL),
    (Cell(5.0, seeds=1, diverged=1, trials=2, **PLAN), Status.PARTIAL),
    (Cell(5.0, over=Over(1, 2)), Status.PARTIAL),
    (Cell(5.0, over=Over(2, 2)), Status.DONE),
    (Cell(5.0, seeds=1, diverged=1, trials=3, **PLAN), Status.DIVERGED),
    (Cell(None, diverged=2, trials=3, **PLAN), Status.DIVERGED),
    (Cell(None, diverged=1, trials=3, **PLAN), Status.DIVERGED),
    (Cell(5.0, seeds=1, pruned=1, trials=3, **PLAN), Status.PRUNED),
    (Cell(None, pruned=2, trials=3, **PLAN), Status.PRUNED),
    (Cell(5.0, seeds=1, undefined=1, trials=3, **PLAN), Status.UNDEFINED),
    (Cell(None, undefined=2, trials=3, **PLAN), Status.UNDEFINED),
    (Cell(None, **PLAN), Status.MISSING),
    (Cell(None), Status.MISSING),
]
