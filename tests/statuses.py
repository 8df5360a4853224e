"""Table cells in every possible state, with the notes that readers see."""

from __future__ import annotations

from farshore.results.tables import Cell, CellStatus, Counts

PLAN = {"planned": 2, "trials_planned": 3}
STATES = [
    (Cell(5.0, counts=Counts(done=2, trials=3, **PLAN)), CellStatus.DONE, ()),
    (Cell(5.0), CellStatus.DONE, ()),
    (Cell(5.0, counts=Counts(done=1, trials=3, **PLAN)), CellStatus.PARTIAL, ("1 of 2 runs",)),
    (Cell(5.0, counts=Counts(done=2, trials=1, **PLAN)), CellStatus.PARTIAL, ("1 of 3 trials",)),
    (
        Cell(5.0, counts=Counts(done=1, diverged=1, trials=2, **PLAN)),
        CellStatus.PARTIAL,
        ("2 of 3 trials", "diverged: 1 of 2 runs"),
    ),
    (
        Cell(5.0, counts=Counts(done=1, diverged=1, trials=3, **PLAN)),
        CellStatus.PARTIAL,
        ("diverged: 1 of 2 runs",),
    ),
    (
        Cell(5.0, counts=Counts(done=1, undefined=1, trials=3, **PLAN)),
        CellStatus.PARTIAL,
        ("not defined",),
    ),
    (Cell(5.0, lacks="something"), CellStatus.PARTIAL, ("something",)),
    (
        Cell(None, counts=Counts(diverged=2, trials=3, **PLAN)),
        CellStatus.DIVERGED,
        ("diverged: 2 of 2 runs",),
    ),
    (
        Cell(None, counts=Counts(diverged=1, trials=3, **PLAN)),
        CellStatus.DIVERGED,
        ("diverged: 1 of 2 runs", "1 of 2 runs"),
    ),
    (
        Cell(None, counts=Counts(pruned=2, trials=3, **PLAN)),
        CellStatus.PRUNED,
        ("stopped early: 2 of 2 runs",),
    ),
    (
        Cell(None, counts=Counts(undefined=2, trials=3, **PLAN)),
        CellStatus.UNDEFINED,
        ("not defined",),
    ),
    (Cell(None, counts=Counts(**PLAN)), CellStatus.MISSING, ("missing",)),
    (
        Cell(5.0, generated=True, part=True),
        CellStatus.DONE,
        ("generated data", "part of the data"),
    ),
]
