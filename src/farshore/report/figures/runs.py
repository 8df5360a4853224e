"""The runs behind the figures, with experiment, seed, trial, and whether they were selected."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...benchmarks import BENCHMARKS
from ...benchmarks.source import make_benchmark
from ...errors import FarshoreError
from ...runs.averages import mean, standard_error
from ...runs.result import Result
from ...runs.search.selection import Rule, Trial, select
from ...runs.store.folder import FEATURES
from ..names import method_group


@dataclass(frozen=True)
class Shown:
    """A run with its experiment, seed and trial, and the file of its features if it saved them."""

    name: str
    result: Result
    experiment: str = ""
    seed: int = 0
    trial: int = 0
    selected: bool = False
    features: Path | None = None

    @property
    def method(self) -> str:
        """The name of its method."""
        return self.result.run.method

    @property
    def group(self) -> str:
        """The group of its method."""
        return method_group(self.method)[0]

    @property
    def benchmark(self) -> str:
        """The benchmark, with the target if it is not the default one."""
        run, title = self.result.run, self.result.title
        return title if run.target is None else f"{title}, target {run.target}"

    @property
    def order(self) -> tuple[str, ...]:
        """The order of the sources."""
        return tuple(self.result.sources)

    @property
    def listed(self) -> bool:
        """Whether the sources were in the benchmark's own order."""
        run = self.result.run
        if run.order is None:
            return True
        if run.benchmark not in BENCHMARKS:
            return False
        try:
            benchmark = make_benchmark(run.benchmark, run.options)
            usual = benchmark.listed(benchmark.choose_target(run.target))
        except FarshoreError:  # the user's own data, which may have been deleted or changed
            return False
        return tuple(usual) == tuple(run.order)

    @property
    def condition(self) -> tuple[Any, ...]:
        """What must be equal for scores to be comparable."""
        return (
            self.benchmark,
            self.order,
            self.result.steps,
            self.result.memory,
            self.result.run.scenario_seed,
        )


def shown(
    runs: Iterable[tuple[str, Result, dict[str, Any]]],
    folder: Path | None = None,
    rules: Mapping[str, Rule] | None = None,
) -> list[Shown]:
    """Runs from the store, with the selected trial of each seed marked.

    `rules` are the selection rules of the experiments by name.
    """
    trials: list[Shown] = []
    held_out: list[Shown] = []
    for name, result, config in runs:
        planned = config.get("planned") or {}
        features = folder / name / FEATURES if folder is not None else None
        run = Shown(
            name=name,
            result=result,
            experiment=str(planned.get("experiment") or ""),
            seed=int(planned["seed"] if planned.get("seed") is not None else result.run.seed),
            trial=int(planned.get("trial") or 0),
            features=features if features is not None and features.is_file() else None,
        )
        (held_out if result.run.held_out else trials).append(run)
    return mark_selected(trials, held_out, rules or {})


def mark_selected(
    runs: Sequence[Shown],
    held_out: Sequence[Shown] = (),
    rules: Mapping[str, Rule] = MappingProxyType({}),
) -> list[Shown]:
    """Mark the best trial per experiment, method, condition and seed, by the experiment's rule."""
    judging: dict[tuple[Any, ...], dict[str, Result]] = defaultdict(dict)
    for run in held_out:
        judging[_trial_key(run)][run.result.run.target or run.name] = run.result
    by_seed: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        by_seed[(run.experiment, run.method, run.condition, run.seed)].append(index)
    marked = list(runs)
    for (experiment, *_), indices in by_seed.items():
        in_order = sorted(indices, key=lambda index: runs[index].trial)
        trials = [
            Trial(number, runs[index].result, judging.get(_trial_key(runs[index]), {}))
            for number, index in enumerate(in_order)
        ]
        best = select(trials, rules.get(experiment, "source-validation"))
        if best is not None:
            marked[in_order[best.number]] = replace(runs[in_order[best.number]], selected=True)
    return marked


def _trial_key(run: Shown) -> tuple[Any, ...]:
    """A key that a trial shares with the runs that judge it, each with a source left out."""
    config = run.result.run
    return (
        run.experiment,
        run.result.title,
        config.method,
        config.seed,
        config.scenario_seed,
        config.steps,
        config.memory,
        json.dumps(config.settings, sort_keys=True),
    )


def plain(runs: Sequence[Shown]) -> list[Shown]:
    """The selected runs under one condition per benchmark: the one with the most methods.

    Runs in the listed order are preferred. If experiments share a condition (an ablation repeats it
    with a fixed setting), the one with more methods counts.
    """
    chosen = [run for run in runs if run.selected]
    broadest: dict[str, tuple[Any, ...]] = {}
    for benchmark in dict.fromkeys(run.benchmark for run in chosen):
        methods: dict[tuple[Any, ...], set[str]] = defaultdict(set)
        for run in chosen:
            if run.benchmark == benchmark:
                methods[run.condition].add(run.method)
        listed = {
            run.condition for run in chosen if run.benchmark == benchmark and run.listed
        } or set(methods)
        broadest[benchmark] = max(
            listed, key=lambda condition: (len(methods[condition]), str(condition))
        )
    return first_experiment([run for run in chosen if run.condition == broadest[run.benchmark]])


def first_experiment(runs: Sequence[Shown]) -> list[Shown]:
    """Of runs that differ only in their experiment, those of the one with the most methods."""
    breadth = Counter(
        experiment for experiment, _ in {(run.experiment, run.method) for run in runs}
    )
    best: dict[tuple[Any, ...], str] = {}
    for run in runs:
        key = (run.method, run.condition)
        if key not in best or (breadth[run.experiment], run.experiment) > (
            breadth[best[key]],
            best[key],
        ):
            best[key] = run.experiment
    return [run for run in runs if run.experiment == best[(run.method, run.condition)]]


def over_orders(runs: Sequence[Shown]) -> list[Shown]:
    """The selected runs of all orders of the sources, under one set of other conditions each.

    Of several sizes of memory or numbers of steps, the one with the most methods counts.
    """
    chosen = [run for run in runs if run.selected]

    def condition(run: Shown) -> tuple[Any, ...]:
        benchmark, _, *others = run.condition
        return (benchmark, *others)

    methods: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for run in chosen:
        methods[condition(run)].add(run.method)
    broadest: dict[str, tuple[Any, ...]] = {}
    for key, of_key in methods.items():
        benchmark = str(key[0])
        if benchmark not in broadest or len(of_key) > len(methods[broadest[benchmark]]):
            broadest[benchmark] = key
    return first_experiment([run for run in chosen if condition(run) == broadest[run.benchmark]])


def describe(runs: Sequence[Shown]) -> str:
    """The conditions of the runs behind a figure, in one line."""
    if not runs:
        return ""
    benchmarks = list(dict.fromkeys(run.benchmark for run in runs))
    orders = {name: {run.order for run in runs if run.benchmark == name} for name in benchmarks}
    most = max(map(len, orders.values()))
    seeds = len({run.seed for run in runs})
    steps = {run.result.steps for run in runs}
    if most > 1:
        order = f"{most} orders of the sources"
    elif len(benchmarks) > 1:
        order = "one order of the sources each"
    else:
        order = f"order of the sources: {' → '.join(runs[0].order)}"
    parts = [
        benchmarks[0] if len(benchmarks) == 1 else f"{len(benchmarks)} data sets",
        order,
        f"{seeds} seed{'' if seeds == 1 else 's'}",
        *([f"{steps.pop()} steps per domain"] if len(steps) == 1 else []),
    ]
    return "Shown: " + "; ".join(parts) + "."


def average(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Mean and standard error of the values that are not None."""
    numbers = [value for value in values if value is not None]
    return mean(numbers), standard_error(numbers)
