"""A study: the trials of one method under one condition with one seed.

Each trial is drawn when the previous ones have ended. A study is not stored anywhere: replayed from
its first trial, it draws the same settings, gets the same run names and finds the existing results.
A sweep that was killed therefore continues where it stopped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ...base.randomness import derive
from ...benchmarks import make_benchmark
from ...benchmarks.benchmark import Benchmark
from ...errors import StateError
from ..result import average
from ..run import NormalRun, Run
from ..search.optuna_search import RANDOM_TRIALS, Past, find_optuna, propose, seen_scores
from ..search.space import capped, defaults, distributions, trial_settings
from ..store.identity import NamedRun, name_run
from ..store.store import Store
from .experiment import Data, Experiment, Part, Search
from .select import Aim

# The scores of each earlier trial, one per source learned.
EarlierScores = tuple[tuple[float, ...], ...]


@dataclass
class Study:
    """A sequence of trials in which earlier trials guide later ones.

    run: the run of every trial, without its settings.
    fixed: settings that are the same in all trials; `at_most` gives upper bounds.
    """

    run: Run
    seed: int
    trials: int
    search_seed: int
    fixed: Mapping[str, Any] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    _past: list[Past] = field(default_factory=list, init=False)
    _drawn: dict[str, Any] | None = field(default=None, init=False)
    # The run name of the trial that was drawn last.
    newest: str = field(default="", init=False)
    _known: int = field(default=0, init=False)

    @property
    def ahead(self) -> int:
        """How many trials are not drawn yet."""
        return self.trials - self._known

    def advance(self, store: Store) -> Iterator[tuple[int, NamedRun, EarlierScores]]:
        """Further trials up to one without a result: number, run, scores of those before."""
        while self.ahead and (self._drawn is None or self._ended(store)):
            self._drawn = self._draw()
            chosen = {**self._drawn, **self.fixed}
            settings = capped(self.run.method, self._benchmark, chosen, self.at_most)
            # Nothing precedes the defaults: they run to the end, as in every other search.
            run = self.run.model_copy(update={"settings": settings, "halving": self._known > 0})
            named = name_run(run.normal())
            self.newest = named.name
            self._known += 1
            yield self._known - 1, named, tuple(past.scores for past in self._past)

    def _ended(self, store: Store) -> bool:
        """Record the scores of the newest trial; False while it has no complete result."""
        assert self._drawn is not None
        try:
            result = store.read(self.newest)
        except StateError:
            return False
        matrix = result.matrices["validation"]
        # The drawn settings over the defaults, which are all that the first trial has.
        settings = {**defaults(self.run.method, self._benchmark), **self._drawn}
        final = average(matrix) if result.status == "done" else None
        self._past.append(Past(settings, seen_scores(matrix), final))
        return True

    def _draw(self) -> dict[str, Any]:
        method, benchmark, trial = self.run.method, self._benchmark, len(self._past)
        known = distributions(method, benchmark)
        searched = {name: search for name, search in known.items() if name not in self.fixed}
        if trial < RANDOM_TRIALS or not searched:
            return trial_settings(method, benchmark, self.search_seed, self.seed, trial, self.fixed)
        condition = (benchmark.name, method, self.run.target or "", ",".join(self.run.order or ()))
        seed = derive(self.search_seed, "optuna", *condition, self.seed, trial)
        return propose(searched, self._past, seed=seed)

    @property
    def _benchmark(self) -> Benchmark:
        return make_benchmark(self.run.benchmark, self.run.options)


@dataclass(frozen=True)
class PartOnData:
    """A part of an experiment on one of its data sets, with one target."""

    experiment: Experiment
    number: int
    data: Data
    aim: Aim
    benchmark: Benchmark
    device: str

    @property
    def part(self) -> Part:
        """The part of the experiment."""
        return self.experiment.parts[self.number]

    @property
    def search(self) -> Search:
        """The search of the part."""
        return self.part.search or self.experiment.search

    def run(
        self,
        method: str,
        seed: int,
        order: tuple[str, ...] | None,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> NormalRun:
        """A run under the conditions of this place."""
        part, data, aim = self.part, self.data, self.aim
        return Run.build(
            benchmark=data.benchmark,
            options=part.options_of(data),
            network=part.network,
            network_settings=part.network_settings,
            method=method,
            seed=seed,
            scenario_seed=self.experiment.scenario_seed,
            target=aim.target,
            left_out=aim.left_out,
            order=order,
            steps=part.steps,
            memory=part.memory,
            settings=dict(settings),
            device=self.device,
        )


def begin_studies(
    place: PartOnData, method: str, orders: Mapping[str, tuple[str, ...] | None]
) -> Iterator[tuple[str, Study]]:
    """A study per seed and order."""
    find_optuna()  # reports a missing Optuna before anything runs
    part, search = place.part, place.search
    for seed, number in search.run_seeds.items():
        for order, arranged in orders.items():
            run = place.run(method, number, arranged)
            yield order, Study(run, seed, search.trials, search.seed, part.settings, part.at_most)
