"""Tables of runs that no recorded experiment names, and of comparisons: what was planned is not
known there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..benchmarks import BENCHMARKS
from ..comparison import BETWEEN_NAMES, Comparison, select_orders
from ..errors import FarshoreError, StateError
from ..protocol import Result, Run
from ..search.selection import Trial
from ..settings import explain
from .assemble import Frame, assemble
from .measures import TARGET, Seed, column_generated, data_notes, make_cell
from .overlay import COMPARISON, Overlay
from .table import Cell, Column, Table

UNKNOWN_PLAN = (
    "What was planned is not recorded with these runs, so each cell is compared with the "
    "fullest one in the table."
)
COMPARED = "All methods ran with their defaults or the given settings, without a search."


@dataclass(frozen=True)
class Loose:
    """A run that no recorded experiment names."""

    name: str
    result: Result
    config: Mapping[str, Any]

    @property
    def planned(self) -> Mapping[str, Any]:
        """Its place in the experiment that swept it, if that was written down."""
        found = self.config.get("planned", {})
        return found if isinstance(found, Mapping) else {}

    @property
    def experiment(self) -> str:
        """The experiment that swept it."""
        return str(self.planned.get("experiment") or "runs")


def loose_tables(runs: Sequence[Loose], overlay: Overlay) -> list[Table]:
    """A table for each experiment that is named in the runs themselves."""
    by_experiment: dict[str, list[Loose]] = {}
    for run in runs:
        if (
            not run.result.run.left_out
        ):  # a run that judges a trial by a held-out source is no result of its own
            by_experiment.setdefault(run.experiment, []).append(run)
    return [_table(name, found, overlay) for name, found in sorted(by_experiment.items())]


def _table(name: str, runs: Sequence[Loose], overlay: Overlay) -> Table:
    seeds: dict[tuple[str, str], dict[str, dict[int, list[Trial]]]] = {}
    conditions: dict[str, set[str]] = {}
    for loose in runs:
        conditions.setdefault(loose.result.title, set()).add(condition(loose.result.run))
    for loose in runs:
        run, title = loose.result.run, loose.result.title
        variant = condition(run) if len(conditions[title]) > 1 else ""
        of_seed = seeds.setdefault((run.method, variant), {}).setdefault(title, {})
        trials = of_seed.setdefault(int(loose.planned.get("seed", run.seed)), [])
        trials.append(Trial(int(loose.planned.get("trial", len(trials))), loose.result))
    cells = [by_seed for by_benchmark in seeds.values() for by_seed in by_benchmark.values()]
    most_seeds = max(len(by_seed) for by_seed in cells)
    most_trials = max(len(trials) for by_seed in cells for trials in by_seed.values())
    entries = {
        key: {
            benchmark: make_cell(
                _padded(by_seed, most_seeds, most_trials), "source-validation", TARGET
            )
            for benchmark, by_seed in on.items()
        }
        for key, on in seeds.items()
    }
    metrics = {loose.result.title: loose.result.metric for loose in runs}
    columns = [
        Column(
            benchmark,
            overlay.dataset_label(benchmark),
            metrics[benchmark],
            column_generated(entries.values(), benchmark),
        )
        for benchmark in overlay.datasets_in_order(metrics)
    ]
    for on in entries.values():
        for benchmark in metrics:
            on.setdefault(
                benchmark,
                Cell(None, seeds_planned=most_seeds, trials_planned=most_trials),
            )
    frame = Frame(
        name,
        f"{name}: runs without a recorded plan",
        "Score on the unseen target (%): mean ± standard error over seeds, each with its best "
        "trial by source-validation.",
        remarks=(UNKNOWN_PLAN, *data_notes([loose.result for loose in runs], overlay)),
    )
    return assemble(frame, columns, entries, overlay, overlay.numbers(name))


def _padded(by_seed: Mapping[int, list[Trial]], seeds: int, trials: int) -> dict[int, Seed]:
    """The seeds that are there, and as many empty ones as are missing against the fullest cell."""
    there = {seed: Seed(found, trials) for seed, found in by_seed.items()}
    empty = (-1 - number for number in range(seeds - len(there)))
    return there | {seed: Seed((), trials) for seed in empty}


def condition(run: Run) -> str:
    """What a run was asked for beside benchmark, method, seed and settings."""
    asked = {"target", "order", "steps", "memory", "network"}
    given = run.model_dump(include=asked, exclude_defaults=True, mode="json")
    paths = (
        BENCHMARKS.get(run.benchmark).path_options if run.benchmark in BENCHMARKS else frozenset()
    )
    options = {name: value for name, value in run.options.items() if name not in paths}
    return ", ".join(
        f"{name} {'>'.join(value) if isinstance(value, list) else value}"
        for name, value in {**given, **options, **run.network_settings}.items()
    )


def read_comparison(path: Path) -> Comparison:
    """What `farshore compare` wrote; a damaged one is refused by name."""
    try:
        found = Comparison.model_validate_json(path.read_bytes())
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        raise StateError(f"{path} is not a whole comparison: {explain(error)}") from None
    if not found.results:
        raise StateError(f"{path} is not a whole comparison: it holds no results")
    return found


def comparison_table(found: Comparison, name: str, overlay: Overlay) -> Table:
    """One column, or one an order of the sources: they are no independent data sets, so several
    are not ranked.
    """
    words = order_words(found)
    entries: dict[tuple[str, str], dict[str, Cell]] = {}
    apart: dict[tuple[str, tuple[str, ...]], list[Result]] = {}
    for result in found.results:
        apart.setdefault((result.run.method, tuple(result.sources)), []).append(result)
    for (method, order), results in apart.items():
        key = found.benchmark if len(words) == 1 else f"{found.benchmark} {words[order]}"
        entries.setdefault((method, ""), {})[key] = _cell(results)
    label = overlay.dataset_label(found.benchmark)
    generated = any(
        column_generated(entries.values(), key) for cells in entries.values() for key in cells
    )
    columns = (
        [Column(found.benchmark, label, found.metric, generated)]
        if len(words) == 1
        else [
            Column(f"{found.benchmark} {word}", f"{label}, {word}", found.metric, generated)
            for word in words.values()
        ]
    )
    seeds = max(len(results) for results in apart.values())
    usual = all(is_usual(result.run) for result in found.results) and list(words.values()) == [
        "listed"
    ]
    frame = Frame(
        name,
        f"{label}: {len(entries)} methods compared",
        f"Score on the unseen target ({found.metric.replace('_', ' ')}, %): mean ± standard "
        f"error over {seeds} seeds.",
        ranked=len(words) == 1,
        remarks=(COMPARED, *data_notes(found.results, overlay)),
    )
    return assemble(
        frame, columns, entries, overlay, overlay.numbers(COMPARISON) if usual else None
    )


def is_usual(run: Run) -> bool:
    """Whether a run has the paper's conditions: nothing was asked for but method, seed and
    order.
    """
    own = run.benchmark in BENCHMARKS and BENCHMARKS.get(run.benchmark).own_data
    return not own and not run.settings and not condition(run.model_copy(update={"order": None}))


def order_words(found: Comparison) -> dict[tuple[str, ...], str]:
    """`listed`, `reversed`, `random1`, ... for the orders of a comparison; the names themselves
    where no word fits.
    """
    first = found.results[0].run
    known: dict[tuple[str, ...], str] = {}
    if first.benchmark in BENCHMARKS:
        for word in ("listed", "reversed", *(f"random{number}" for number in range(1, 33))):
            try:
                order = select_orders(
                    first.benchmark,
                    [word],
                    target=first.target,
                    seed=first.scenario_seed,
                    options=first.options,
                )[0]
            except FarshoreError:
                break
            known.setdefault(order, word)
    orders = dict.fromkeys(tuple(result.sources) for result in found.results)
    return {order: known.get(order, BETWEEN_NAMES.join(order)) for order in orders}


def _cell(results: Sequence[Result]) -> Cell:
    """Seeds without a search: diverged ones are counted, and never averaged away in silence."""
    seeds = {place: Seed((Trial(0, result),), 1) for place, result in enumerate(results)}
    return make_cell(seeds, "source-validation", TARGET)
