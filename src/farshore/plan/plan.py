"""The plan: every run of an experiment, in the order in which they are carried out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import catalog
from ..benchmarks import BENCHMARKS
from ..benchmarks.benchmark import Benchmark
from ..benchmarks.source import make_benchmark
from ..data.scenario import arrange
from ..errors import FarshoreError
from ..networks import LARGE
from ..protocol import Run
from ..search.selection import Chosen, Rule, Trial, select_by_seed
from ..search.space import capped, distributions, grid, trial_settings
from ..settings import RunSettings, divide
from ..store.identity import canonical, run_name
from ..store.store import Store
from .experiment import Book, Data, Experiment, Part, Search
from .select import select_orders
from .study import Scores, Study, begin_studies


@dataclass(frozen=True)
class Condition:
    """What is averaged over seeds: one method on one benchmark, in one order, with one setting
    varied or none.
    """

    part: int
    benchmark: str
    method: str
    order: str = "listed"
    varied: str = ""


@dataclass(frozen=True)
class Planned:
    """A run and its place in the experiment. `held_out` names the source that stands in for the
    target.
    """

    name: str
    run: Run
    condition: Condition
    seed: int
    trial: int
    held_out: str | None = None
    features: bool = False
    # In a search by successive halving: what the earlier trials of its study scored.
    earlier: Scores = ()


@dataclass(frozen=True)
class Missing:
    """Why nothing can be selected: so many of the planned runs have no result.

    unavailable: why their benchmark cannot be run here, if that is the reason.
    """

    runs: int
    planned: int
    unavailable: str = ""

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.unavailable:
            return f"its benchmark is not available here ({self.unavailable})"
        return f"{self.runs} of {self.planned} runs are missing"


@dataclass(frozen=True)
class Waiting:
    """A method whose settings another experiment has yet to select."""

    method: str
    benchmark: str
    experiment: str
    missing: Missing

    @property
    def sentence(self) -> str:
        """The same in words."""
        return (
            f"{self.method} on {self.benchmark} waits for {self.experiment}: "
            f"{self.missing.sentence}"
        )


@dataclass(frozen=True)
class Absent:
    """A benchmark that cannot be run here: why, and how many runs are left out for it."""

    why: str
    runs: int


@dataclass
class Plan:
    """The runs; those of benchmarks that are not here; and those whose settings another experiment
    has yet to find. A single run belongs to no experiment.

    Where earlier trials steer later ones, each study adds a run when the one before has ended.
    """

    experiment: Experiment | None = None
    runs: list[Planned] = field(default_factory=list)
    absent: dict[str, Absent] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    studies: dict[tuple[Condition, int], Study] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the experiment; empty for a single run."""
        return self.experiment.name if self.experiment is not None else ""

    @property
    def selection(self) -> Rule:
        """The rule by which trials are selected."""
        return self.experiment.selection if self.experiment is not None else "source-validation"

    def unique(self) -> dict[str, Planned]:
        """Each run once, by name: experiments and parts may share runs. One that is to save
        features wins.
        """
        found: dict[str, Planned] = {}
        for planned in self.runs:
            if planned.name not in found or planned.features:
                found[planned.name] = planned
        return found

    def runs_at_once(self) -> int:
        """How many runs this machine's CPU cores carry out at a time: one per core, unless the
        runs use several threads each.
        """
        cores = os.cpu_count() or 1
        threads = 1
        for planned in self.runs:
            run = planned.run
            network = run.network or BENCHMARKS.get(run.benchmark).network
            asked = int(run.settings.get("threads") or (cores if network in LARGE else 1))
            threads = max(threads, asked)
        return max(1, cores // threads)

    @property
    def ahead(self) -> int:
        """How many runs studies may still add."""
        return sum(study.ahead for study in self.studies.values())

    def follow(self, ended: str, store: Store) -> list[Planned]:
        """The runs that become known now that the one of this name has a result; they are part
        of the plan from now on.
        """
        waiting = [place for place, study in self.studies.items() if study.newest == ended]
        found = [
            planned for place in waiting for planned in _advance(self.studies[place], *place, store)
        ]
        self.runs += found
        return found


def plan_run(run: Run) -> Plan:
    """The plan of a single run that belongs to no experiment."""
    run = canonical(run)
    condition = Condition(0, run.benchmark, run.method)
    return Plan(None, [Planned(run_name(run), run, condition, seed=run.seed, trial=0)])


def check_settings(plan: Plan) -> None:
    """Refuse settings that a planned run does not have, or whose values are not allowed: before
    anything runs.
    """
    checked: set[str] = set()
    for planned in plan.runs:
        run = planned.run
        key = f"{run.method} {sorted(run.settings.items())}"
        if key in checked:
            continue
        checked.add(key)
        kind = catalog.find(run.method).Settings
        try:
            of_method, of_run = divide(run.settings, kind)
            kind.build(of_method)
            RunSettings.build(of_run)
        except FarshoreError as error:
            raise FarshoreError(f"{run.method}: {error}") from None


def make_plan(
    experiment: Experiment, store: Store, book: Book, *, device: str = "cpu", here: bool = True
) -> Plan:
    """All runs of an experiment. Nothing is read of the target: what was selected before was
    selected on the sources.

    With `here=False` benchmarks whose data are not on this machine are planned too: to read runs,
    not to carry them out.
    """
    plan = Plan(experiment)
    chosen: dict[str, dict[tuple[str, str], Chosen | Missing]] = {}
    for number, part in enumerate(experiment.parts):
        search = part.search or experiment.search
        for data in part.data:
            benchmark = make_benchmark(data.benchmark, part.options_of(data))
            why = benchmark.missing(experiment.scenario_seed, plan_only=not here)
            if why is not None:
                before = plan.absent[data.title].runs if data.title in plan.absent else 0
                plan.absent[data.title] = Absent(why, before + _count(part, search))
                continue
            orders = _orders(part, data, experiment.scenario_seed)
            for method in part.systems:
                if part.settings_from is None and search.by == "optuna":
                    for order, study in begin_studies(
                        experiment, part, search, data, method, orders, device
                    ):
                        condition = Condition(number, data.title, method, order)
                        plan.studies[condition, study.seed] = study
                        plan.runs += _advance(study, condition, study.seed, store)
                    continue
                if part.settings_from is None:
                    settings = _searched(part, search, benchmark, method)
                else:
                    if part.settings_from not in chosen:
                        chosen[part.settings_from] = select_all(
                            book(part.settings_from), store, book, here=here
                        )
                    taken = chosen[part.settings_from].get((data.title, method))
                    if isinstance(taken, Missing):
                        plan.waiting.append(Waiting(method, data.title, part.settings_from, taken))
                        continue
                    settings = _taken(part, search, benchmark, method, taken, experiment)
                for varied, seed, run_number, trial, values in settings:
                    for order, arranged in orders.items():
                        condition = Condition(number, data.title, method, order, varied)
                        run = Run.build(
                            benchmark=data.benchmark,
                            options=part.options_of(data),
                            network=part.network,
                            network_settings=part.network_settings,
                            method=method,
                            seed=run_number,
                            scenario_seed=experiment.scenario_seed,
                            target=part.target,
                            order=arranged,
                            steps=part.steps,
                            memory=part.memory,
                            settings=values,
                            device=device,
                        )
                        plan.runs += _with_held_out(
                            canonical(run), condition, seed, trial, experiment, part
                        )
    return plan


def select_all(
    experiment: Experiment, store: Store, book: Book, *, here: bool = True
) -> dict[tuple[str, str], Chosen | Missing]:
    """The selected runs by benchmark and method, in the listed order, or what is missing where
    not all are there.
    """
    plan = make_plan(experiment, store, book, here=here)
    choices: dict[tuple[str, str], Chosen | Missing] = {}
    for condition, chosen in selected(plan, store).items():
        if condition.order == "listed" and not condition.varied:
            choices.setdefault((condition.benchmark, condition.method), chosen)
    for benchmark, absent in plan.absent.items():
        lacking = Missing(absent.runs, absent.runs, absent.why)
        for part in experiment.parts:
            if benchmark in [data.title for data in part.data]:
                choices.update({(benchmark, method): lacking for method in part.systems})
    return choices


def selected(plan: Plan, store: Store) -> dict[Condition, Chosen | Missing]:
    """Selection under every condition of a plan, or how many of its runs are missing."""
    conditions: dict[Condition, list[Planned]] = {}
    for planned in plan.runs:
        conditions.setdefault(planned.condition, []).append(planned)
    choices: dict[Condition, Chosen | Missing] = {}
    for condition, runs in conditions.items():
        ahead = sum(study.ahead for (of, _), study in plan.studies.items() if of == condition)
        lacking = ahead + sum(not store.folder(planned.name).finished() for planned in runs)
        choices[condition] = (
            Missing(lacking, len(runs) + ahead)
            if lacking
            else select_by_seed(_trials(runs, store), plan.selection)
        )
    return choices


def _trials(runs: list[Planned], store: Store) -> dict[int, list[Trial]]:
    held: dict[tuple[int, int], dict[str, Any]] = {}
    for planned in runs:
        if planned.held_out is not None:
            held.setdefault((planned.seed, planned.trial), {})[planned.held_out] = store.read(
                planned.name
            )
    trials: dict[int, list[Trial]] = {}
    for planned in runs:
        if planned.held_out is None:
            trial = Trial(
                planned.trial, store.read(planned.name), held.get((planned.seed, planned.trial), {})
            )
            trials.setdefault(planned.seed, []).append(trial)
    return trials


# (what is varied, number of the seed, seed of the run, trial, settings)
Settings = Iterator[tuple[str, int, int, int, dict[str, Any]]]


def _searched(part: Part, search: Search, benchmark: Benchmark, method: str) -> Settings:
    """All trials of all seeds."""
    for seed, number in search.run_seeds.items():
        for trial in range(search.trials):
            values = trial_settings(
                method,
                benchmark,
                search_seed=search.seed,
                number=seed,
                trial=trial,
                fixed=part.settings,
            )
            yield (
                "",
                seed,
                number,
                trial,
                capped(method, benchmark, values, part.at_most),
            )


def _advance(study: Study, condition: Condition, seed: int, store: Store) -> list[Planned]:
    return [
        Planned(run_name(run), canonical(run), condition, seed, trial, earlier=earlier)
        for trial, run, earlier in study.advance(store)
    ]


def _taken(
    part: Part,
    search: Search,
    benchmark: Benchmark,
    method: str,
    found: Chosen | None,
    experiment: Experiment,
) -> Settings:
    """The selected settings of another experiment, a seed each or the best alone; varied where
    the part says so.
    """
    if found is None:  # that experiment does not hold this method: its defaults
        bases = [(seed, number, 0, dict[str, Any]()) for seed, number in search.run_seeds.items()]
    else:
        best = found.best_seed(experiment.selection)
        seeds = [seed for seed in sorted(found.trials) if not part.best_seed or seed == best]
        bases = [
            (
                seed,
                (run := found.trials[seed].result.run).seed,
                found.trials[seed].number,
                dict(run.settings),
            )
            for seed in seeds
        ]
    for seed, number, trial, settings in bases:
        base = capped(method, benchmark, {**settings, **part.settings}, part.at_most)
        if not part.vary:
            yield "", seed, number, trial, base
        for name in part.vary:
            for value in grid(_distribution(method, benchmark, name), part.values):
                yield f"{name} = {value:.6g}", seed, number, trial, {**base, name: value}


def _distribution(method: str, benchmark: Benchmark, name: str) -> Any:
    search = distributions(method, benchmark).get(name)
    if search is None:
        raise FarshoreError(f"vary: {name!r} is no searched setting of {method}")
    return search


def _orders(part: Part, data: Data, seed: int) -> Mapping[str, tuple[str, ...] | None]:
    """The listed order is that of a run without one, so that runs are shared."""
    if part.orders == ["listed"]:
        return {"listed": None}
    benchmark = make_benchmark(data.benchmark, part.options_of(data))
    words = ["listed", *part.orders]
    listed, *others = select_orders(benchmark, words, target=part.target, seed=seed)
    return {
        word: None if order == listed else order
        for word, order in zip(part.orders, others, strict=True)
    }


def _with_held_out(
    run: Run, condition: Condition, seed: int, trial: int, experiment: Experiment, part: Part
) -> list[Planned]:
    """The run and, for selection that leaves sources out, one for each source that takes the
    target's place.

    The real target is left out of those: it is neither learned nor measured.
    """
    planned = [Planned(run_name(run), run, condition, seed, trial, features=part.features)]
    if experiment.selection != "leave-one-source-out":
        return planned
    benchmark = make_benchmark(run.benchmark, run.options)
    target = benchmark.choose_target(run.target)
    sources = arrange(benchmark.domain_names(), target, run.order)
    for source in sources:
        order = (
            tuple(name for name in run.order if name != source) if run.order is not None else None
        )
        inner = run.model_copy(update={"target": source, "left_out": (target,), "order": order})
        planned.append(Planned(run_name(inner), inner, condition, seed, trial, held_out=source))
    return planned


def _count(part: Part, search: Search) -> int:
    """How many runs a part has on one benchmark; those that leave a source out are not counted,
    for the sources are not known.
    """
    seeds = len(search.run_seeds)
    each = seeds * search.trials
    if part.settings_from is not None:
        each = (1 if part.best_seed else seeds) * (len(part.vary) * part.values or 1)
    return len(part.systems) * len(part.orders) * each
