"""The cells of an experiment: its plan made again, and what has run of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..search.selection import Trial
from ..sweep.experiment import Book, Experiment, Part
from ..sweep.plan import Cell as Place
from ..sweep.plan import Plan, Planned, make_plan
from .measures import Measure, Seed, data_notes, make_cell
from .reading import ReadingStore
from .table import Cell

# Parts of an experiment that hold the same method on the same data set are set apart by what differs.
CONDITIONS = ("target", "steps", "memory", "settings", "at_most", "search", "settings_from", "best_seed")

# Cells by method and variant, then by column.
Entries = dict[tuple[str, str], dict[str, Cell]]


@dataclass
class Measured:
    """The cells, what they are of, and the names of all planned runs."""

    experiment: Experiment
    plan: Plan
    entries: Entries
    names: set[str]
    # Benchmark and order behind each key of a column.
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def measure_plan(experiment: Experiment, store: ReadingStore, book: Book, measure: Measure) -> Measured:
    """Every cell of an experiment, from what has run of it on whatever machine."""
    plan = make_plan(experiment, store, book, here=False)
    made = Measured(experiment, plan, {}, set(plan.unique()))
    places: dict[Place, list[Planned]] = {}
    for planned in plan.runs:
        places.setdefault(planned.cell, []).append(planned)
    seen: dict[tuple[str, str, str], tuple[int, set[str]]] = {}
    for place, runs in places.items():
        key = place.benchmark if place.order == "listed" else f"{place.benchmark} {place.order}"
        made.keys[key] = (place.benchmark, place.order)
        variant = place.varied
        names = {planned.name for planned in runs}
        first = seen.setdefault((place.method, variant, key), (place.part, names))
        if first[0] != place.part:
            if first[1] == names:  # the same runs under another part
                continue
            variant = ", ".join(filter(None, (variant, _difference(experiment.parts[first[0]], experiment.parts[place.part]))))
        cell = make_cell(read_seeds(runs, store), experiment.selection, measure)
        made.entries.setdefault((place.method, variant), {})[key] = cell
        found = [result for planned in runs if (result := store.find(planned.name)) is not None]
        if found:
            made.metrics[key] = found[0].metric
        made.notes += data_notes(found)
    return made


def read_seeds(runs: list[Planned], store: ReadingStore) -> dict[int, Seed]:
    """What has ended of each seed. A trial that other runs judge counts once all of those have ended."""
    wanted: dict[tuple[int, int], list[Planned]] = {}
    for planned in runs:
        wanted.setdefault((planned.seed, planned.trial), []).append(planned)
    trials: dict[int, list[Trial]] = {}
    counts: dict[int, int] = {}
    for (seed, number), of_trial in wanted.items():
        counts[seed] = counts.get(seed, 0) + 1
        trials.setdefault(seed, [])
        found = {planned.held_out: store.find(planned.name) for planned in of_trial}
        result = found.pop(None, None)
        if result is not None and all(each is not None for each in found.values()):
            trials[seed].append(Trial(number, result, {str(name): each for name, each in found.items() if each is not None}))
    return {seed: Seed(trials[seed], counts[seed]) for seed in trials}


def _difference(first: Part, other: Part) -> str:
    differing = [name for name in CONDITIONS if getattr(first, name) != getattr(other, name)]
    return ", ".join(f"{name} {_value(getattr(other, name))}" for name in differing) or "again"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={each}" for key, each in value.items())
    return "as usual" if value is None else str(value)
