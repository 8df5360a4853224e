"""The plan: every run of an experiment, in the order in which they are carried out."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ...benchmarks import BENCHMARKS, make_benchmark
from ...benchmarks.benchmark import Benchmark
from ...data.scenario import arrange
from ...errors import FarshoreError
from ...networks import is_large
from .. import catalog
from ..run import NormalRun
from ..search.selection import Chosen, Rule, Trial, select_by_seed
from ..search.space import capped, distributions, grid, trial_settings
from ..store.identity import NamedRun, name_run
from ..store.store import Store
from .experiment import Book, Experiment, Part, Search, check_dependencies
from .select import DRAWN, arrange_sources, draw_order, select_targets
from .study import EarlierScores, PartOnData, Study, begin_studies

# More than any table needs, and planned within a minute.
MOST_RUNS = 100_000


@dataclass(frozen=True)
class Condition:
    """What is averaged over seeds: a method on a benchmark, in one order.

    varied: the one setting that is varied, and its value; empty if there is none.
    target: the name of the target if every domain is one in turn; otherwise empty.
    """

    part: int
    benchmark: str
    method: str
    order: str = "listed"
    varied: str = ""
    target: str = ""


@dataclass(frozen=True)
class Planned:
    """A run and its position in the experiment; `held_out` takes the target's place, if any."""

    named: NamedRun
    condition: Condition
    seed: int
    trial: int
    held_out: str | None = None
    features: bool = False
    # In a search by successive halving: the scores of the earlier trials of its study.
    earlier: EarlierScores = ()

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.named.name

    @property
    def run(self) -> NormalRun:
        """The run."""
        return self.named.run


@dataclass(frozen=True)
class Missing:
    """Why nothing is selected: runs without a result, or an unavailable benchmark."""

    runs: int
    planned: int
    unavailable: str = ""

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.unavailable:
            return f"its benchmark is not available here ({self.unavailable})"
        return f"{self.runs} of {self.planned} runs are missing"


# By benchmark, method and target.
Selections = dict[tuple[str, str, str], Chosen | Missing]


@dataclass(frozen=True)
class WaitingMethod:
    """A method whose settings another experiment has yet to select."""

    method: str
    benchmark: str
    experiment: str
    missing: Missing

    @property
    def sentence(self) -> str:
        """The same in words."""
        what = f"{self.method} on {self.benchmark}"
        return f"{what} waits for {self.experiment}: {self.missing.sentence}"


@dataclass(frozen=True)
class Absent:
    """A benchmark that cannot be run here: why not, and how many runs are left out."""

    why: str
    runs: int


@dataclass
class Plan:
    """The runs of an experiment, or a single run that belongs to none.

    absent: benchmarks whose data are not available here.
    waiting: methods whose settings another experiment has yet to select.
    studies: searches in which earlier trials guide later ones. Each adds its next run when the
        previous one has ended.
    """

    experiment: Experiment | None = None
    runs: list[Planned] = field(default_factory=list)
    absent: dict[str, Absent] = field(default_factory=dict)
    waiting: list[WaitingMethod] = field(default_factory=list)
    studies: dict[tuple[Condition, int], Study] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the experiment; empty for a single run."""
        return self.experiment.name if self.experiment is not None else ""

    @property
    def selection(self) -> Rule:
        """The rule by which trials are selected."""
        return self.experiment.selection if self.experiment is not None else "source-validation"

    def unique(self) -> dict[str, Planned]:
        """Each run once, by name: parts may share runs; one that saves features is preferred."""
        by_name: dict[str, Planned] = {}
        for planned in self.runs:
            if planned.name not in by_name or planned.features:
                by_name[planned.name] = planned
        return by_name

    def runs_at_once(self) -> int:
        """How many runs this machine carries out at a time, by their threads."""
        cores = os.cpu_count() or 1
        threads = 1
        for planned in self.runs:
            run = planned.run
            kind = BENCHMARKS.get(run.benchmark)
            network = run.network or kind.usual_network()
            # On a frozen backbone, what is trained is small.
            train = run.settings.get("train") or kind.settings.get("train", "all")
            large = is_large(network) and train in ("last-block", "all")
            asked = int(run.settings.get("threads") or (cores if large else 1))
            threads = max(threads, asked)
        return max(1, cores // threads)

    @property
    def ahead(self) -> int:
        """How many runs the studies may still add."""
        return sum(study.ahead for study in self.studies.values())

    def follow(self, ended: str, store: Store) -> list[Planned]:
        """Add the runs that follow from the result of the run named `ended`, and return them."""
        waiting = [key for key, study in self.studies.items() if study.newest == ended]
        new_runs = [run for key in waiting for run in _advance(self.studies[key], *key, store)]
        self.runs += new_runs
        return new_runs

    def over(self, slots: int) -> bool:
        """Whether what is left of a plan with a deadline is given up, with so many runs at a time.

        This one has no deadline.
        """
        return False


def plan_run(run: NormalRun) -> Plan:
    """The plan of a single run that belongs to no experiment."""
    condition = Condition(0, run.benchmark, run.method)
    return Plan(None, [Planned(name_run(run), condition, seed=run.seed, trial=0)])


def make_plan(
    experiment: Experiment,
    store: Store,
    book: Book,
    *,
    device: str = "cpu",
    available_only: bool = True,
) -> Plan:
    """Plan all runs of an experiment.

    Target scores play no part: settings from another experiment were selected on the sources.

    available_only: leave out benchmarks whose data are not on this machine. Without it they are
        planned too: to read their runs, not to carry them out.
    """
    check_dependencies(experiment, book)
    plan = Plan(experiment)
    selections: dict[str, Selections] = {}

    def select(name: str) -> Selections:
        if name not in selections:
            selections[name] = select_all(book(name), store, book, available_only=available_only)
        return selections[name]

    for number, part in enumerate(experiment.parts):
        for data in part.data:
            benchmark = make_benchmark(data.benchmark, part.options_of(data))
            why = benchmark.missing(experiment.scenario_seed, plan_only=not available_only)
            if why is None:
                for aim in select_targets(benchmark, part.target):
                    place = PartOnData(experiment, number, data, aim, benchmark, device)
                    _plan_place(plan, place, store, select)
            else:
                before = plan.absent[data.title].runs if data.title in plan.absent else 0
                count = _count(part, part.search or experiment.search, benchmark)
                plan.absent[data.title] = Absent(why, before + count)
    return plan


def _plan_place(
    plan: Plan, place: PartOnData, store: Store, select: Callable[[str], Selections]
) -> None:
    """Add the runs of a part on one benchmark with one target."""
    part, search, benchmark, aim = place.part, place.search, place.benchmark, place.aim
    orders = arrange_sources(benchmark, part.orders, aim, place.experiment.scenario_seed)
    further = len(part.systems) * len(orders) * _per_method(part, search)
    if (count := len(plan.runs) + plan.ahead + further) > MOST_RUNS:
        raise FarshoreError(
            f"{place.experiment.name} has {count:,} runs or more, and at most {MOST_RUNS:,} are "
            "allowed: use fewer trials, seeds or orders"
        )
    title = place.data.title
    for method in part.systems:
        if part.settings_from is not None:
            taken = _selection(select(part.settings_from), place, method)
            if isinstance(taken, Missing):
                plan.waiting.append(WaitingMethod(method, title, part.settings_from, taken))
                continue
            settings = _taken(place, method, taken)
        elif part.vary:
            settings = _taken(place, method, None)
        elif search.by == "optuna":
            for order, study in begin_studies(place, method, orders):
                condition = Condition(place.number, title, method, order, target=aim.name)
                plan.studies[condition, study.seed] = study
                plan.runs += _advance(study, condition, study.seed, store)
            continue
        else:
            settings = _searched(place, method)
        first = 1 if catalog.find(method).any_order else len(orders)
        for varied, seed, run_seed, trial, values in settings:
            for order, arranged in islice(orders.items(), first):
                if order == DRAWN:
                    drawn = {"search_seed": search.seed, "seed": seed, "trial": trial}
                    arranged = draw_order(benchmark, aim.target, **drawn)
                condition = Condition(place.number, title, method, order, varied, aim.name)
                run = place.run(method, run_seed, arranged, values)
                plan.runs += _with_held_out(run, condition, seed, trial, place)


def select_all(
    experiment: Experiment, store: Store, book: Book, *, available_only: bool = True
) -> Selections:
    """The selected runs by benchmark, method and target, or what is missing.

    They are those in the listed order, or in the orders that were drawn with their settings. The
    target is empty unless every domain is one in turn.
    """
    plan = make_plan(experiment, store, book, available_only=available_only)
    choices: Selections = {}
    for condition, chosen in selected(plan, store).items():
        if condition.order in ("listed", DRAWN) and not condition.varied:
            key = condition.benchmark, condition.method, condition.target
            choices.setdefault(key, chosen)
    for benchmark, absent in plan.absent.items():
        missing = Missing(absent.runs, absent.runs, absent.why)
        for part in experiment.parts:
            if benchmark in [data.title for data in part.data]:
                choices.update({(benchmark, method, ""): missing for method in part.systems})
    return choices


def _selection(selections: Selections, place: PartOnData, method: str) -> Chosen | Missing | None:
    """What another experiment selected for this method and target; None if nothing."""
    title, target = place.data.title, place.aim.target
    only = selections.get((title, method, ""))
    # Settings that were selected for another target saw this one as a source.
    if only is not None and place.aim.in_turn and not isinstance(only, Missing):
        raise FarshoreError(
            f"settings_from: {place.part.settings_from} selected settings for one target, and its "
            "sources are targets here: give it target: each too"
        )
    if only is not None:
        return only
    return selections.get((title, method, place.benchmark.choose_target(target)))


def selected(plan: Plan, store: Store) -> dict[Condition, Chosen | Missing]:
    """The selected runs of every condition of a plan, or how many of its runs are missing."""
    conditions: dict[Condition, list[Planned]] = {}
    for planned in plan.runs:
        conditions.setdefault(planned.condition, []).append(planned)
    choices: dict[Condition, Chosen | Missing] = {}
    for condition, runs in conditions.items():
        ahead = sum(study.ahead for (key, _), study in plan.studies.items() if key == condition)
        missing = ahead + sum(not store.folder(planned.name).finished() for planned in runs)
        choices[condition] = Missing(missing, len(runs) + ahead)
        if not missing:
            choices[condition] = select_by_seed(_trials(runs, store), plan.selection)
    return choices


def _trials(runs: list[Planned], store: Store) -> dict[int, list[Trial]]:
    held_out: dict[tuple[int, int], dict[str, Any]] = {}
    for planned in runs:
        if planned.held_out is not None:
            of_trial = held_out.setdefault((planned.seed, planned.trial), {})
            of_trial[planned.held_out] = store.read(planned.name)
    trials: dict[int, list[Trial]] = {}
    for planned in runs:
        if planned.held_out is None:
            judging = held_out.get((planned.seed, planned.trial), {})
            trial = Trial(planned.trial, store.read(planned.name), judging)
            trials.setdefault(planned.seed, []).append(trial)
    return trials


# (varied setting, seed number, run seed, trial, settings)
TrialSettings = Iterator[tuple[str, int, int, int, dict[str, Any]]]


def _searched(place: PartOnData, method: str) -> TrialSettings:
    """The settings of all trials of all seeds."""
    part, search, benchmark = place.part, place.search, place.benchmark
    for seed, number in search.run_seeds.items():
        for trial in range(search.trials):
            values = trial_settings(method, benchmark, search.seed, seed, trial, part.settings)
            yield "", seed, number, trial, capped(method, benchmark, values, part.at_most)


def _advance(study: Study, condition: Condition, seed: int, store: Store) -> list[Planned]:
    of_study = study.advance(store)
    return [Planned(named, condition, seed, trial, earlier=past) for trial, named, past in of_study]


def _taken(place: PartOnData, method: str, chosen: Chosen | None) -> TrialSettings:
    """The selected settings of another experiment: of each seed, or of the best seed only.

    The defaults if there are none. If the part varies settings, each of them in turn takes the
    values of its grid.
    """
    part, benchmark = place.part, place.benchmark
    if chosen is None:  # no experiment is named, or it does not include this method
        seeds = place.search.run_seeds.items()
        bases = [(seed, number, 0, dict[str, Any]()) for seed, number in seeds]
    else:
        best = chosen.best_seed(place.experiment.selection)
        trials = {seed: chosen.trials[seed] for seed in sorted(chosen.trials)}
        bases = [
            (seed, trial.result.run.seed, trial.number, dict(trial.result.run.settings))
            for seed, trial in trials.items()
            if not part.best_seed or seed == best
        ]
    for seed, number, trial, settings in bases:
        base = capped(method, benchmark, {**settings, **part.settings}, part.at_most)
        if not part.vary:
            yield "", seed, number, trial, base
        for name in part.vary:
            search = distributions(method, benchmark).get(name)
            if search is None:
                raise FarshoreError(f"vary: {name!r} is not a searched setting of {method}")
            for value in grid(search, part.values):
                yield f"{name} = {value:.6g}", seed, number, trial, {**base, name: value}


def _with_held_out(
    run: NormalRun, condition: Condition, seed: int, trial: int, place: PartOnData
) -> list[Planned]:
    """The run and, for selection by leaving sources out, one more run per source.

    In those the source takes the place of the target. The real target is left out: it is neither
    learned nor measured.
    """
    benchmark = place.benchmark
    named = name_run(run, benchmark)
    run = named.run
    planned = [Planned(named, condition, seed, trial, features=place.part.features)]
    if place.experiment.selection != "leave-one-source-out":
        return planned
    target = benchmark.choose_target(run.target)
    names = [name for name in benchmark.domain_names() if name not in run.left_out]
    for source in arrange(names, target, run.order):
        order = run.order and tuple(name for name in run.order if name != source)
        fields = {"target": source, "left_out": (target, *run.left_out), "held_out": True}
        inner = NormalRun(run.model_copy(update={**fields, "order": order}))
        # Its target and its order stay written out.
        named = replace(name_run(inner, benchmark), run=inner)
        planned.append(Planned(named, condition, seed, trial, held_out=source))
    return planned


def _count(part: Part, search: Search, benchmark: Benchmark) -> int:
    """How many runs a part has on one benchmark.

    Runs that leave a source out are not counted, and own data that are missing count as one target,
    because their domains are not known.
    """
    targets = 1 if benchmark.own_data else len(select_targets(benchmark, part.target))
    return targets * len(part.systems) * len(part.orders) * _per_method(part, search)


def _per_method(part: Part, search: Search) -> int:
    """How many runs a method has in one order."""
    seeds = len(search.run_seeds)
    if part.settings_from is not None or part.vary:
        return (1 if part.best_seed else seeds) * (len(part.vary) * part.values or 1)
    return seeds * search.trials
