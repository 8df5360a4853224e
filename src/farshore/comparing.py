"""`farshore.compare`: compare methods on your own data or on a benchmark, in Python.

It plans, carries out and records the same runs as `farshore compare`: each can resume the
other's runs, and both give the same numbers for the same data.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from .base.files import write_output
from .benchmarks import BENCHMARKS
from .benchmarks.own.image_folder import ImageFolder
from .benchmarks.own.table import OwnTable
from .errors import FarshoreError, unknown
from .methods.optimization import choose_device
from .report.write import write_report
from .results.over_units import Scores, over_units, paired_difference
from .results.ranking import choose_reference, rank, scores_by_order, scores_by_target
from .runs.engines.carry_out import Progress, carry_out, open_runs
from .runs.engines.engine import Engine
from .runs.engines.inline import InlineEngine
from .runs.engines.local import LocalEngine
from .runs.engines.work import TaskOutcome
from .runs.plan.comparison import make_comparison, plan_comparison
from .runs.plan.plan import Plan, Planned
from .runs.plan.select import select_methods
from .runs.result import Result
from .runs.store.store import Store

# Quick methods of different kinds: no replay, replay, an invariant method, a closed form.
USUAL_METHODS = ("finetune", "er", "cl-coral", "ridge")


@dataclass(frozen=True)
class Comparison:
    """A finished comparison.

    name: the name of its record in the folder `runs`, for `farshore report --experiment`.
    results: the result of every finished run.
    failures: one line per run that failed; calling `compare` again retries them.
    """

    name: str
    runs: Path
    results: list[Result]
    failures: list[str] = field(default_factory=list)
    planned: Mapping[str, int] = field(default_factory=dict)

    @property
    def table(self) -> pd.DataFrame:
        """One row per method, the best mean score on the unseen target first.

        `score` and `error` are the mean and its standard error over targets; with a single target,
        over its runs. `worst` is the score at the `worst_target`. `difference` is paired with
        `reference` by target, order and seed; `low` and `high` are its 95% interval over
        targets, or over orders if there is one target. Scores are fractions.
        """
        units: dict[str, Scores] = dict(scores_by_target(self.results))
        if len({unit for scores in units.values() for unit in scores}) == 1:
            units = dict(scores_by_order(self.results))
        standings = rank(self.results, self.planned)
        with_scores = [standing.method for standing in standings if standing.method in units]
        reference = choose_reference(with_scores)
        by_target = scores_by_target(self.results)
        rows = []
        for standing in standings:
            worst = over_units(by_target.get(standing.method, {}))
            paired = (
                paired_difference(units[standing.method], units[reference])
                if reference in units and standing.method in units and standing.method != reference
                else None
            )
            rows.append(
                {
                    "method": standing.method,
                    "kind": standing.kind,
                    "rank": standing.rank,
                    "score": standing.target,
                    "error": standing.target_error,
                    "targets": standing.targets,
                    "worst": worst.worst if worst is not None else None,
                    "worst_target": " ".join(worst.worst_unit) if worst is not None else "",
                    "reference": reference if paired is not None else "",
                    "difference": paired.mean if paired is not None else None,
                    "low": paired.low if paired is not None else None,
                    "high": paired.high if paired is not None else None,
                    "source_validation": standing.validation,
                    "backward_transfer": standing.backward_transfer,
                    "seconds_per_run": standing.seconds,
                    "runs": standing.runs,
                    "planned": standing.planned,
                }
            )
        return pd.DataFrame(rows).astype({"rank": "Int64"})

    @property
    def targets(self) -> pd.DataFrame:
        """The mean score of every method at every target: a row per target, a column per method."""
        scores = scores_by_target(self.results)
        columns = {
            method: {
                " ".join(unit): sum(runs.values()) / len(runs) for unit, runs in of_method.items()
            }
            for method, of_method in scores.items()
        }
        best_first = [standing.method for standing in rank(self.results)]
        frame = pd.DataFrame(columns)
        return frame[[method for method in best_first if method in frame]].rename_axis("target")

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report of this comparison as .html, .md, .csv or .tex; return the path."""
        write_report(self.runs, Path(path), experiment=self.name)
        return Path(path)


def compare(
    data: pd.DataFrame | str | os.PathLike[str],
    *,
    domain: str | None = None,
    label: str | None = None,
    methods: Sequence[str] | str = USUAL_METHODS,
    target: str | None = None,
    orders: Sequence[str] | str = "listed",
    seeds: int = 3,
    scenario_seed: int = 0,
    steps: int | None = None,
    memory: int | None = None,
    network: str | None = None,
    network_settings: Mapping[str, Any] = MappingProxyType({}),
    settings: Mapping[str, Any] = MappingProxyType({}),
    runs: str | os.PathLike[str] = "runs",
    workers: int = 1,
    device: str = "auto",
    name: str = "frame",
    progress: bool = False,
    **options: Any,
) -> Comparison:
    """Compare methods by their score on domains that they have not seen.

    Runs that are already in the folder `runs` are not repeated, so a call that was stopped resumes.

    data: a data frame, the path of a table or of a folder of images, or the name of a benchmark. A
        frame is written as a table into the folder `runs`, under `name` and a hash of its contents.
    domain, label: the columns of a table with the domain and with the class.
    methods: names of methods and groups.
    target: the domain that stays unseen, or `each`: every domain in turn. The default is the
        benchmark's own target, and `each` for your own data.
    orders: orders of the sources, written as for `farshore compare --orders`.
    seeds: number of run seeds, counted from 0.
    workers: number of runs at a time, each in its own process; 1 runs them in this process.
    device: cpu, cuda, or auto: cuda if there is a GPU, otherwise cpu.
    progress: print a line per run to standard error.
    options: further options of the benchmark, for example `time`, `group` or `drop`.
    """
    folder = Path(runs)
    if seeds < 1 or workers < 1:
        raise FarshoreError(f"seeds = {seeds} and workers = {workers} must be at least 1")
    given = {"domain": domain, "label": label, **options}
    benchmark, chosen = find_data(
        data, {key: value for key, value in given.items() if value is not None}, folder, name
    )
    comparison = make_comparison(
        {
            "benchmark": benchmark,
            "options": chosen,
            "network": network,
            "network_settings": dict(network_settings),
        },
        select_methods([methods] if isinstance(methods, str) else methods),
        seeds=range(seeds),
        orders=[orders] if isinstance(orders, str) else orders,
        scenario_seed=scenario_seed,
        target=target,
        steps=steps,
        memory=memory,
        settings=settings,
    )
    store = Store(folder)
    plan = plan_comparison(comparison, store, device=choose_device(device))
    failures = carry_out_quietly(plan, store, workers, progress)
    results = [store.read(each) for each in plan.unique() if store.folder(each).finished()]
    if failures and not results:
        raise FarshoreError(failures[0])
    planned = Counter(entry.run.method for entry in plan.unique().values())
    return Comparison(plan.name, folder, results, failures, planned)


def find_data(
    data: pd.DataFrame | str | os.PathLike[str], options: dict[str, Any], runs: Path, name: str
) -> tuple[str, dict[str, Any]]:
    """The benchmark that `data` stands for, and its options."""
    if isinstance(data, pd.DataFrame):
        return OwnTable.name, {**_text_columns(data, options), "path": str(_save(data, runs, name))}
    path = Path(data).expanduser()
    if isinstance(data, str) and data in BENCHMARKS.names():
        return data, options
    if not path.exists():
        if isinstance(data, str) and path.name == data and not path.suffix:
            raise unknown("benchmark", data, BENCHMARKS.names())
        raise FarshoreError(f"there is no file or folder {str(data)!r}: check the path")
    kind = ImageFolder if path.is_dir() else OwnTable
    return kind.name, {**options, "path": str(data)}


def _text_columns(frame: pd.DataFrame, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with every column of text among the `categories`.

    A file does not distinguish the text "1" from the number 1; a frame does.
    """
    roles = {options.get(key) for key in ("domain", "label", "time", "group")}
    dropped, declared = (_names(options.get(key, ())) for key in ("drop", "categories"))
    texts = [
        str(column)
        for column in frame.columns
        if not pd.api.types.is_numeric_dtype(frame[column])
        and not pd.api.types.is_datetime64_any_dtype(frame[column])
        and str(column) not in {*roles, *dropped, *declared}
    ]
    return {**options, "categories": (*declared, *texts)} if texts else dict(options)


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(value.split(",")) if isinstance(value, str) else tuple(value)


def _save(frame: pd.DataFrame, runs: Path, name: str) -> Path:
    """Write a frame into the folder of runs; frames with equal contents share one file."""
    contents = frame.to_csv(index=False).encode()
    path = runs / "data" / f"{name}-{hashlib.sha256(contents).hexdigest()[:12]}.csv"
    if not path.is_file():
        write_output(path, contents)
    return path


def carry_out_quietly(plan: Plan, store: Store, workers: int, progress: bool) -> list[str]:
    """Carry out the open runs; return one line per failure."""

    def report(planned: Planned | None, outcome: TaskOutcome | None, state: Progress) -> None:
        if progress and planned is not None and outcome is not None:
            target = f", target {planned.condition.target}" if planned.condition.target else ""
            print(
                f"[{state.done}/{state.total}] {planned.run.method}{target}, seed {planned.seed}: "
                f"{outcome.status} in {outcome.seconds:.1f} s",
                file=sys.stderr,
            )

    todo, _ = open_runs(plan, store)
    if not todo:
        return []
    engine: Engine = InlineEngine() if workers == 1 else LocalEngine(workers)
    with engine:
        return carry_out(plan, store, engine, todo=todo, report=report).failures
