"""Tables of runs that belong to no recorded experiment, so that their plan is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from ..benchmarks import BENCHMARKS
from ..runs.result import Result
from ..runs.run import Run
from ..runs.search.selection import Trial, select
from .assemble import Frame, assemble
from .contest import Observed, make_contest
from .measures import TARGET, Seed, column_generated, data_notes, make_cell
from .overlay import Overlay
from .table import Cell, Column, Table

UNKNOWN_PLAN = (
    "What was planned is not recorded with these runs, so each cell is compared with the "
    "fullest one in the table."
)
# The name of the table of runs that belong to no experiment.
NO_EXPERIMENT = "runs"
# The fields of a run that distinguish rows of the same method.
NAMES = frozenset({"target", "order", "steps", "memory", "network"})


@dataclass(frozen=True)
class UnplannedRun:
    """A run that belongs to no recorded experiment."""

    name: str
    result: Result
    config: Mapping[str, Any]

    @property
    def planned(self) -> Mapping[str, Any]:
        """Its position in the experiment that planned it, if that is recorded in the run."""
        position = self.config.get("planned", {})
        return position if isinstance(position, Mapping) else {}

    @property
    def experiment(self) -> str:
        """The name of the experiment that planned it."""
        return str(self.planned.get("experiment") or NO_EXPERIMENT)

    @property
    def condition(self) -> str:
        """The options of the run other than benchmark, method and seed.

        Settings are included unless an experiment searched them.
        """
        run = self.result.run
        settings = [f"{name} {value}" for name, value in run.settings.items()]
        return ", ".join(
            filter(None, [condition(run), *(settings if self.experiment == NO_EXPERIMENT else [])])
        )


def unplanned_tables(runs: Sequence[UnplannedRun], overlay: Overlay) -> list[Table]:
    """A table for each experiment that the runs themselves name."""
    by_experiment: dict[str, list[UnplannedRun]] = {}
    for run in runs:
        # A run with a held-out source only judges a trial; it is not a result of its own.
        if not run.result.run.held_out:
            by_experiment.setdefault(run.experiment, []).append(run)
    return [_table(name, of_name, overlay) for name, of_name in sorted(by_experiment.items())]


def _table(name: str, runs: Sequence[UnplannedRun], overlay: Overlay) -> Table:
    seeds: dict[tuple[str, str], dict[str, dict[int, list[Trial]]]] = {}
    conditions: dict[str, set[str]] = {}
    for unplanned in runs:
        conditions.setdefault(unplanned.result.title, set()).add(unplanned.condition)
    for unplanned in runs:
        run, title = unplanned.result.run, unplanned.result.title
        variant = unplanned.condition if len(conditions[title]) > 1 else ""
        of_seed = seeds.setdefault((run.method, variant), {}).setdefault(title, {})
        trials = of_seed.setdefault(int(unplanned.planned.get("seed", run.seed)), [])
        trials.append(Trial(int(unplanned.planned.get("trial", len(trials))), unplanned.result))
    cells = [by_seed for by_benchmark in seeds.values() for by_seed in by_benchmark.values()]
    most_seeds = max(len(by_seed) for by_seed in cells)
    most_trials = max(len(trials) for by_seed in cells for trials in by_seed.values())
    entries = {
        key: {
            benchmark: make_cell(
                _padded(by_seed, most_seeds, most_trials), "source-validation", TARGET
            )
            for benchmark, by_seed in by_benchmark.items()
        }
        for key, by_benchmark in seeds.items()
    }
    metrics = {unplanned.result.title: unplanned.result.metric for unplanned in runs}
    columns = [
        Column(
            benchmark,
            overlay.dataset_label(benchmark),
            metrics[benchmark],
            column_generated(entries.values(), benchmark),
        )
        for benchmark in overlay.datasets_in_order(metrics)
    ]
    for by_column in entries.values():
        for benchmark in metrics:
            by_column.setdefault(
                benchmark,
                Cell(None, seeds_planned=most_seeds, trials_planned=most_trials),
            )
    observed = [
        Observed(method, _variant(chosen.result) if variant else "", number, chosen.result)
        for (method, variant), by_benchmark in seeds.items()
        for by_seed in by_benchmark.values()
        for number, trials in by_seed.items()
        if (chosen := select(trials, "source-validation") or trials[0])
    ]
    frame = replace(
        _frame(name, runs, most_trials, overlay), contest=make_contest(observed, overlay)
    )
    return assemble(frame, columns, entries, overlay, overlay.numbers(name))


def _variant(result: Result) -> str:
    """What distinguishes rows of a method in the verdict, which compares over orders."""
    return condition(result.run, NAMES - {"target", "order"})


def _frame(name: str, runs: Sequence[UnplannedRun], trials: int, overlay: Overlay) -> Frame:
    notes = data_notes([unplanned.result for unplanned in runs], overlay)
    if len(runs) == 1:
        run = runs[0].result.run
        return Frame(
            name,
            f"{overlay.label(run.method)} on {overlay.dataset_label(runs[0].result.title)}",
            f"Score on the unseen target (%) of a single run, seed {run.seed}.",
            ranked=False,
            remarks=tuple(notes),
        )
    selection = ", each with its best trial by source-validation" if trials > 1 else ""
    return Frame(
        name,
        f"{name}: runs without a recorded plan",
        f"Score on the unseen target (%): mean ± standard error over seeds{selection}.",
        remarks=(UNKNOWN_PLAN, *notes),
    )


def _padded(by_seed: Mapping[int, list[Trial]], seeds: int, trials: int) -> dict[int, Seed]:
    """The seeds of a cell, and empty ones up to the number of seeds in the fullest cell."""
    with_runs = {seed: Seed(of_seed, trials) for seed, of_seed in by_seed.items()}
    empty = (-1 - number for number in range(seeds - len(with_runs)))
    return with_runs | {seed: Seed((), trials) for seed in empty}


def condition(run: Run, names: Set[str] = NAMES) -> str:
    """The options of a run other than benchmark, method, seed and settings."""
    changed = run.model_dump(include=set(names), exclude_defaults=True, mode="json")
    paths = (
        BENCHMARKS.get(run.benchmark).path_options if run.benchmark in BENCHMARKS else frozenset()
    )
    options = {name: value for name, value in run.options.items() if name not in paths}
    return ", ".join(
        f"{name} {'>'.join(value) if isinstance(value, list) else value}"
        for name, value in {**changed, **options, **run.network_settings}.items()
    )
