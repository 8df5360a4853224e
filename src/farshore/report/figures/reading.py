"""Reads the runs for figures, each with its position in the experiment that planned it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import FarshoreError
from ...runs.plan.experiment import Book, Experiment
from ...runs.plan.plan import make_plan
from ...runs.plan.record import recorded_experiments
from ...runs.store.read_once import ReadingStore
from ..opening import find_runs
from .runs import Shown, shown

# Experiment, seed and trial by the name of a run, as in a run's config.
Positions = Mapping[str, Mapping[str, Any]]


def read_runs(path: Path, *, experiment: str | None = None) -> list[Shown]:
    """All requested runs that can be read. The report lists those that cannot."""
    requested = find_runs(path, experiment)
    store = ReadingStore(requested.folder, requested.run)
    recorded = recorded_experiments(requested.folder, [])
    runs = list(store.all())
    if requested.experiment is not None:
        chosen = {stem: item for stem, item in recorded.items() if stem == requested.experiment}
        positions = _positions(chosen, store)
        runs = [
            (name, result, {**config, "planned": positions[name]})
            for name, result, config in runs
            if name in positions
        ]
    else:
        # A run that was made on its own may still belong to an experiment.
        names = {planned.name for planned, _ in recorded.values()}
        strays = [name for name, _, config in runs if _experiment(config) not in names]
        positions = _positions(recorded, store) if strays and requested.run is None else {}
        runs = [
            (name, result, {**config, "planned": positions[name]})
            if name in positions and _experiment(config) not in names
            else (name, result, config)
            for name, result, config in runs
        ]
    rules = {planned.name: planned.selection for planned, _ in recorded.values()}
    return shown(runs, requested.folder, rules)


def _experiment(config: Mapping[str, Any]) -> str:
    return str((config.get("planned") or {}).get("experiment") or "")


def _positions(
    recorded: Mapping[str, tuple[Experiment, Book]], store: ReadingStore
) -> dict[str, dict[str, Any]]:
    """The positions of runs in the recorded experiments; the first experiment with a run counts."""
    positions: dict[str, dict[str, Any]] = {}
    for experiment, book in recorded.values():
        try:
            plan = make_plan(experiment, store, book, available_only=False)
        except FarshoreError:
            continue  # the report lists it as an experiment that cannot be planned
        for planned in plan.runs:
            position = {
                "experiment": experiment.name,
                "seed": planned.seed,
                "trial": planned.trial,
            }
            positions.setdefault(planned.name, position)
    return positions
