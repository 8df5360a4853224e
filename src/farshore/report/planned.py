"""The cells of an experiment: its plan is made again, and finished runs are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..plan.experiment import Book, Experiment, Part
from ..plan.plan import Condition, Plan, Planned, make_plan
from ..search.selection import Trial
from .measures import Measure, Seed, data_notes, make_cell
from .overlay import Overlay
from .reading import ReadingStore
from .table import Cell

# Parts of an experiment that hold the same method on the same data set become variants, named by
# what differs.
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
        """Of every planned run."""
        return set(self.plan.unique())

    def keys(self) -> dict[str, tuple[str, str]]:
        """Benchmark and order behind each column."""
        return {
            group.key: (group.condition.benchmark, group.condition.order) for group in self.groups
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
        """What readers must know of the data."""
        results = (
            trial.result
            for group in self.groups
            for seed in group.seeds.values()
            for trial in seed.trials
        )
        return data_notes(results, overlay)

    def cells(self, measure: Measure) -> Entries:
        """Every cell by this measure."""
        entries: Entries = {}
        for group in self.groups:
            cell = make_cell(group.seeds, self.experiment.selection, measure)
            entries.setdefault((group.condition.method, group.variant), {})[group.key] = cell
        return entries


def gather(experiment: Experiment, store: ReadingStore, book: Book) -> Gathered:
    """The finished runs of an experiment, whichever machine carried them out."""
    plan = make_plan(experiment, store, book, available_only=False)
    gathered = Gathered(experiment, plan)
    conditions: dict[Condition, list[Planned]] = {}
    for planned in plan.runs:
        conditions.setdefault(planned.condition, []).append(planned)
    seen: dict[tuple[str, str, str], tuple[int, set[str]]] = {}
    for condition, runs in conditions.items():
        listed = condition.order == "listed"
        key = condition.benchmark if listed else f"{condition.benchmark} {condition.order}"
        variant = condition.varied
        names = {planned.name for planned in runs}
        first = seen.setdefault((condition.method, variant, key), (condition.part, names))
        if first[0] != condition.part:
            if first[1] == names:  # the same runs under another part
                continue
            variant = ", ".join(
                filter(
                    None,
                    (
                        variant,
                        _difference(experiment.parts[first[0]], experiment.parts[condition.part]),
                    ),
                )
            )
        gathered.groups.append(Group(condition, key, variant, read_seeds(runs, store)))
    return gathered


def read_seeds(runs: list[Planned], store: ReadingStore) -> dict[int, Seed]:
    """The finished trials of each seed. A trial that other runs judge counts once all of those
    have finished.
    """
    wanted: dict[tuple[int, int], list[Planned]] = {}
    for planned in runs:
        wanted.setdefault((planned.seed, planned.trial), []).append(planned)
    trials: dict[int, list[Trial]] = {}
    counts: dict[int, int] = {}
    for (seed, number), of_trial in wanted.items():
        counts[seed] = counts.get(seed, 0) + 1
        trials.setdefault(seed, [])
        results = {planned.held_out: store.find(planned.name) for planned in of_trial}
        result = results.pop(None, None)
        if result is not None and all(each is not None for each in results.values()):
            trials[seed].append(
                Trial(
                    number,
                    result,
                    {str(name): each for name, each in results.items() if each is not None},
                )
            )
    return {seed: Seed(trials[seed], counts[seed]) for seed in trials}


def _difference(first: Part, other: Part) -> str:
    differing = [name for name in CONDITIONS if getattr(first, name) != getattr(other, name)]
    return ", ".join(f"{name} {_value(getattr(other, name))}" for name in differing) or "again"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={each}" for key, each in value.items())
    return "as usual" if value is None else str(value)
