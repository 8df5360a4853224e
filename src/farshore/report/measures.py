"""What a table shows of a run, and how a cell is made of the runs of its seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..benchmarks.corrupted import GENERATED
from ..evaluation.averages import mean, standard_error
from ..protocol import Result
from ..search.selection import Rule, Trial, select
from .names import dataset_label
from .table import Cell

# What results on a part of TinyImageNet or WM-811K say.
PART_OF_THE_DATA = ("not the paper's data", "a part of those without")


@dataclass(frozen=True)
class Measure:
    """A number of a run, in the unit of the table."""

    name: str
    title: str
    read: Callable[[Result], float | None]
    unit: str = "%"
    higher_is_better: bool = True
    # Whether ranks over data sets are made of it.
    ranked: bool = True


def _scaled(value: float | None, scale: float) -> float | None:
    return value * scale if value is not None else None


TARGET = Measure(
    "target", "score on the unseen target", lambda result: _scaled(result.target_score, 100)
)
MEASURES: dict[str, Measure] = {
    "backward transfer": Measure(
        "backward transfer",
        "backward transfer on the sources' validation rows",
        lambda result: _scaled(result.backward_transfer(), 100),
        unit="points",
        ranked=False,
    ),
    "source performance": Measure(
        "source performance",
        "mean score on the sources' training rows",
        lambda result: _scaled(result.source_score(2), 100),
        ranked=False,
    ),
    "run time": Measure(
        "run time",
        "time of a run",
        lambda result: result.seconds["total"] / 60,
        unit="minutes",
        higher_is_better=False,
        ranked=False,
    ),
    "step time": Measure(
        "step time",
        "time of a step",
        lambda result: mean(result.step_milliseconds),
        unit="ms",
        higher_is_better=False,
        ranked=False,
    ),
    "naive and tailored": TARGET,
}


def data_notes(results: Iterable[Result]) -> list[str]:
    """What a table must say of its data: that they were generated, or are a part; each once."""
    return list(
        dict.fromkeys(
            f"{dataset_label(result.run.benchmark)}: {note}"
            for result in results
            for note in result.notes
            if GENERATED in note or _is_part(note)
        )
    )


def _is_part(note: str) -> bool:
    return any(words in note for words in PART_OF_THE_DATA)


def is_generated(rows: Iterable[Mapping[str, Cell]], column: str) -> bool:
    """Whether any cell of a column comes from corruptions that are not the published ones."""
    return any("generated data" in cells[column].notes for cells in rows if column in cells)


@dataclass(frozen=True)
class Seed:
    """What there is of one seed: its finished trials, and how many were planned."""

    trials: Sequence[Trial]
    planned: int


def make_cell(seeds: Mapping[int, Seed], rule: Rule, measure: Measure) -> Cell:
    """Select a trial of each seed by the rule, and average. What is not as planned stands in the
    notes.
    """
    begun = [seed for seed in seeds.values() if seed.trials]
    planned = max((seed.planned for seed in seeds.values()), default=0)
    if not begun:
        return Cell(None, seeds_planned=len(seeds), trials_planned=planned, notes=("missing",))
    chosen = [trial for seed in begun if (trial := select(seed.trials, rule)) is not None]
    values = tuple(value for trial in chosen if (value := measure.read(trial.result)) is not None)
    trials = min(len(seed.trials) for seed in begun)
    notes = []
    if len(begun) < len(seeds):
        notes.append(f"{len(begun)} of {len(seeds)} seeds")
    if trials < planned:
        notes.append(f"{trials} of {planned} trials")
    if len(chosen) < len(begun):
        notes.append(f"diverged: {len(begun) - len(chosen)} of {len(seeds)} seeds")
    if len(values) < len(chosen):  # backward transfer of what learned all sources at once
        notes.append("not defined")
    told = [note for seed in begun for trial in seed.trials for note in trial.result.notes]
    if any(GENERATED in note for note in told):
        notes.append("generated data")
    if any(_is_part(note) for note in told):
        notes.append("part of the data")
    return Cell(
        mean(values),
        standard_error(values),
        seeds=len(values),
        seeds_planned=len(seeds),
        trials=trials,
        trials_planned=planned,
        notes=tuple(notes),
        values=values,
    )
