"""The cells of an experiment: its plan is made again, and its finished runs are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..runs.averages import mean, standard_error
from ..runs.plan.experiment import Book, Experiment, Part
from ..runs.plan.plan import Condition, Plan, Planned, make_plan
from ..runs.plan.select import DRAWN
from ..runs.search.selection import Trial
from ..runs.store.read_once import ReadingStore
from .measures import Measure, Seed, data_notes, make_cell
from .overlay import Overlay
from .table import Cell

# Parts of an experiment with the same method on the same data set become variants, named by the
# conditions that differ.
CONDITIONS = (
    "target",
    "steps",
    "memory",
    "settings",
    "at_most",
    "search",
    "settings_from",
    "best_seed",
)
# Cells by method and variant, then by column.
Entries = dict[tuple[str, str], dict[str, Cell]]


@dataclass(frozen=True)
class Group:
    """The runs behind one cell, by seed; `key` is that of its column."""

    condition: Condition
    key: str
    variant: str
    seeds: Mapping[int, Seed]


@dataclass
class Gathered:
    """An experiment with its finished runs and the names of all planned ones."""

    experiment: Experiment
    plan: Plan
    groups: list[Group] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names of all planned runs."""
        return set(self.plan.unique())

    def keys(self) -> dict[str, tuple[str, str]]:
        """The benchmark of each column, and its target or its order in words."""
        return {
            group.key: (
                group.condition.benchmark,
                f"target {group.condition.target}"
                if group.condition.target
                else group.condition.order,
            )
            for group in self.groups
        }

    def metrics(self) -> dict[str, str]:
        """The metric of each column in which something has run."""
        return {
            group.key: trial.result.metric
            for group in self.groups
            for seed in group.seeds.values()
            for trial in seed.trials[:1]
        }

    def notes(self, overlay: Overlay) -> list[str]:
        """Notes about the data."""
        results = (
            trial.result
            for group in self.groups
            for seed in group.seeds.values()
            for trial in seed.trials
        )
        return data_notes(results, overlay)

    def cells(self, measure: Measure) -> Entries:
        """All cells for this measure. The orders of one of several targets share its cell."""
        entries: Entries = {}
        for group in self.groups:
            cells = entries.setdefault((group.condition.method, group.variant), {})
            cell = make_cell(group.seeds, self.experiment.selection, measure)
            cells[group.key] = add_cells(cells.get(group.key), cell)
        return entries


def gather(experiment: Experiment, store: ReadingStore, book: Book) -> Gathered:
    """The finished runs of an experiment, whichever machine carried them out."""
    plan = make_plan(experiment, store, book, available_only=False)
    gathered = Gathered(experiment, plan)
    conditions: dict[Condition, list[Planned]] = {}
    for planned in plan.runs:
        conditions.setdefault(planned.condition, []).append(planned)
    first_parts: dict[tuple[str, str, str, str], tuple[int, set[str]]] = {}
    for condition, runs in conditions.items():
        variant = condition.varied
        names = {planned.name for planned in runs}
        key = column_key(condition)
        first_part, first_names = first_parts.setdefault(
            (condition.method, variant, key, condition.order), (condition.part, names)
        )
        if first_part != condition.part:
            if first_names == names:  # the same runs in another part
                continue
            difference = _difference(experiment.parts[first_part], experiment.parts[condition.part])
            variant = ", ".join(filter(None, (variant, difference)))
        gathered.groups.append(Group(condition, key, variant, read_seeds(runs, store)))
    return gathered


def column_key(condition: Condition) -> str:
    """The key of a column: a data set, one of its targets, or one order of its sources."""
    if condition.target:
        return f"{condition.benchmark} target {condition.target}"
    listed = condition.order in ("listed", DRAWN)
    return condition.benchmark if listed else f"{condition.benchmark} {condition.order}"


def add_cells(first: Cell | None, second: Cell) -> Cell:
    """One cell for the runs of two: the mean over all values, and the counts of both."""
    if first is None:
        return second
    values = (*first.values, *second.values)
    return replace(
        first,
        mean=mean(values),
        error=standard_error(values),
        seeds=first.seeds + second.seeds,
        seeds_planned=first.seeds_planned + second.seeds_planned,
        trials=min(first.trials, second.trials),
        diverged=first.diverged + second.diverged,
        pruned=first.pruned + second.pruned,
        undefined=first.undefined + second.undefined,
        generated=first.generated or second.generated,
        part_of_the_data=first.part_of_the_data or second.part_of_the_data,
        values=values,
    )


def read_seeds(runs: list[Planned], store: ReadingStore) -> dict[int, Seed]:
    """The finished trials of each seed.

    A trial that is judged by runs with held-out sources counts once all of those have finished.
    """
    by_trial: dict[tuple[int, int], list[Planned]] = {}
    for planned in runs:
        by_trial.setdefault((planned.seed, planned.trial), []).append(planned)
    trials: dict[int, list[Trial]] = {}
    counts: dict[int, int] = {}
    for (seed, number), of_trial in by_trial.items():
        counts[seed] = counts.get(seed, 0) + 1
        trials.setdefault(seed, [])
        results = {planned.held_out: store.find(planned.name) for planned in of_trial}
        result = results.pop(None, None)
        held_out = {str(name): other for name, other in results.items() if other is not None}
        if result is not None and len(held_out) == len(results):
            trials[seed].append(Trial(number, result, held_out))
    return {seed: Seed(trials[seed], counts[seed]) for seed in trials}


def _difference(first: Part, other: Part) -> str:
    differing = [name for name in CONDITIONS if getattr(first, name) != getattr(other, name)]
    return ", ".join(f"{name} {_value(getattr(other, name))}" for name in differing) or "again"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return "as usual" if value is None else str(value)
