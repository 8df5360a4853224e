"""The runs of a folder for figures, each with its position in the experiment that planned it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import FarshoreError
from ...plan.experiment import Book, Experiment
from ...plan.plan import make_plan
from ...plan.record import recorded_experiments
from ..opening import find_runs
from ..reading import ReadingStore
from .runs import Shown, shown

# By the name of a run: experiment, seed and trial, as a run's config has them.
Positions = Mapping[str, Mapping[str, Any]]


def read_runs(path: Path, *, experiment: str | None = None) -> list[Shown]:
    """Every readable run that is asked for. What cannot be read is named by the report, not
    here.
    """
    asked = find_runs(path, experiment)
    store = ReadingStore(asked.folder, asked.run)
    recorded = recorded_experiments(asked.folder, [])
    runs = list(store.all())
    if asked.experiment is not None:
        chosen = {stem: of for stem, of in recorded.items() if stem == asked.experiment}
        positions = _positions(chosen, store)
        runs = [
            (name, result, {**config, "planned": positions[name]})
            for name, result, config in runs
            if name in positions
        ]
    else:
        # A run that was carried out on its own may belong to an experiment all the same.
        names = {of.name for of, _ in recorded.values()}
        strays = [name for name, _, config in runs if _experiment(config) not in names]
        positions = _positions(recorded, store) if strays and asked.run is None else {}
        runs = [
            (name, result, {**config, "planned": positions[name]})
            if name in positions and _experiment(config) not in names
            else (name, result, config)
            for name, result, config in runs
        ]
    rules = {of.name: of.selection for of, _ in recorded.values()}
    return shown(runs, asked.folder, rules)


def _experiment(config: Mapping[str, Any]) -> str:
    return str((config.get("planned") or {}).get("experiment") or "")


def _positions(
    recorded: Mapping[str, tuple[Experiment, Book]], store: ReadingStore
) -> dict[str, dict[str, Any]]:
    """Where the recorded experiments have their runs; the first one that has a run counts."""
    positions: dict[str, dict[str, Any]] = {}
    for experiment, book in recorded.values():
        try:
            plan = make_plan(experiment, store, book, available_only=False)
        except FarshoreError:
            continue  # the report says that it cannot be planned again
        for planned in plan.runs:
            position = {
                "experiment": experiment.name,
                "seed": planned.seed,
                "trial": planned.trial,
            }
            positions.setdefault(planned.name, position)
    return positions
