"""A study: the trials of one method under one condition with one seed, of which each is drawn when
those before have ended.

It lives in the folders of its runs and nowhere else. Walked from its first trial, it draws the same
settings again, hence the same names, hence finds the results that are there: a sweep that was
killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..benchmarks.benchmark import Benchmark
from ..benchmarks.source import make_benchmark
from ..errors import StateError
from ..evaluation.transfer import average
from ..protocol import Run
from ..randomness import derive
from ..search.optuna_search import RANDOM_TRIALS, Past, find_optuna, propose, seen_scores
from ..search.space import capped, defaults, distributions, trial_settings
from ..store.identity import run_name
from ..store.store import Store
from .experiment import Data, Experiment, Part, Search

# The scores of each earlier trial, one a source seen.
Scores = tuple[tuple[float, ...], ...]


@dataclass
class Study:
    """`run` is the trials' run without settings; `fixed` hold in all of them, `at_most` are
    upper bounds.
    """

    run: Run
    seed: int
    trials: int
    search_seed: int
    fixed: Mapping[str, Any] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    _past: list[Past] = field(default_factory=list, init=False)
    _drawn: dict[str, Any] | None = field(default=None, init=False)
    # The name of the trial that was drawn last.
    newest: str = field(default="", init=False)
    _known: int = field(default=0, init=False)

    @property
    def ahead(self) -> int:
        """How many trials are not drawn yet."""
        return self.trials - self._known

    def advance(self, store: Store) -> Iterator[tuple[int, Run, Scores]]:
        """The trials that have become known since the last time, up to one without a result:
        number, run, scores of those before.
        """
        while self.ahead and (self._drawn is None or self._ended(store)):
            self._drawn = self._draw()
            settings = capped(
                self.run.method, self._benchmark, {**self._drawn, **self.fixed}, self.at_most
            )
            # The defaults have nobody to fall behind: they are run whole, as in every other search.
            run = self.run.model_copy(update={"settings": settings, "halving": self._known > 0})
            self.newest = run_name(run)
            self._known += 1
            yield self._known - 1, run, tuple(past.scores for past in self._past)

    def _ended(self, store: Store) -> bool:
        """Note what the newest trial scored; False as long as it has no whole result."""
        assert self._drawn is not None
        try:
            result = store.read(self.newest)
        except StateError:
            return False
        matrix = result.matrices["validation"]
        self._past.append(
            Past(
                self._standing(self._drawn),
                seen_scores(matrix),
                average(matrix) if result.status == "done" else None,
            )
        )
        return True

    def _draw(self) -> dict[str, Any]:
        method, benchmark, trial = self.run.method, self._benchmark, len(self._past)
        searched = {
            name: search
            for name, search in distributions(method, benchmark).items()
            if name not in self.fixed
        }
        if trial < RANDOM_TRIALS or not searched:
            return trial_settings(
                method,
                benchmark,
                search_seed=self.search_seed,
                number=self.seed,
                trial=trial,
                fixed=self.fixed,
            )
        condition = (benchmark.name, method, self.run.target or "", ",".join(self.run.order or ()))
        return propose(
            searched,
            self._past,
            seed=derive(self.search_seed, "optuna", *condition, self.seed, trial),
        )

    def _standing(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Drawn settings; of the first trial, the defaults."""
        return {**defaults(self.run.method, self._benchmark), **drawn}

    @property
    def _benchmark(self) -> Benchmark:
        return make_benchmark(self.run.benchmark, self.run.options)


def begin_studies(
    experiment: Experiment,
    part: Part,
    search: Search,
    data: Data,
    method: str,
    orders: Mapping[str, tuple[str, ...] | None],
    device: str,
) -> Iterator[tuple[str, Study]]:
    """A study for each seed and order."""
    find_optuna()  # if it is absent, that is said before anything runs
    for seed, number in search.run_seeds.items():
        for order, arranged in orders.items():
            run = Run.build(
                benchmark=data.benchmark,
                options=part.options_of(data),
                network=part.network,
                network_settings=part.network_settings,
                method=method,
                seed=number,
                scenario_seed=experiment.scenario_seed,
                target=part.target,
                order=arranged,
                steps=part.steps,
                memory=part.memory,
                device=device,
            )
            yield order, Study(run, seed, search.trials, search.seed, part.settings, part.at_most)
