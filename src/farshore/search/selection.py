"""Selection: the best trial of each seed, then mean and standard error over the seeds.

- `source-validation`: the mean score on the sources' validation rows at the end of the sequence
  (the default).
- `leave-one-source-out`: the mean score on each source when it was held out as an unseen domain.
  The runs behind it never see the real target, neither to learn nor to measure.
- `oracle`: the score on the target itself. It says what selection costs; it is no result.

The first two cannot look at the target: `source-validation` reads the matrices of the sources, and
the runs that `leave-one-source-out` reads hold no score of the real target.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..evaluation.averages import mean, standard_error
from ..evaluation.transfer import average
from ..protocol import Result

Rule = Literal["source-validation", "leave-one-source-out", "oracle"]


@dataclass(frozen=True)
class Trial:
    """One trial: the run on all sources and, where they were planned, the runs with one source
    held out.
    """

    number: int
    result: Result
    held_out: Mapping[str, Result] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """The selected trials of one method on one benchmark, a seed each; a seed whose trials all
    diverged has none.
    """

    trials: Mapping[int, Trial]
    seeds: int

    @property
    def results(self) -> list[Result]:
        """The selected results, in the order of the seeds."""
        return [self.trials[seed].result for seed in sorted(self.trials)]

    def target(self) -> tuple[float | None, float | None]:
        """Mean target score over the seeds and its standard error (divisor n)."""
        scores = [score for result in self.results if (score := result.target_score) is not None]
        return mean(scores), standard_error(scores)

    def best_seed(self, rule: Rule) -> int | None:
        """The seed whose selected trial has the best score by the rule; the first of equals."""
        scores = {seed: score(trial, rule) for seed, trial in sorted(self.trials.items())}
        there = {seed: value for seed, value in scores.items() if value is not None}
        return max(there, key=lambda seed: there[seed]) if there else None


def select(trials: Sequence[Trial], rule: Rule) -> Trial | None:
    """The best trial by the rule. Diverged trials never win; of equals the first wins, so the
    defaults before a draw.
    """
    best: Trial | None = None
    best_score = -math.inf
    for trial in sorted(trials, key=lambda each: each.number):
        value = score(trial, rule)
        if value is not None and value > best_score:
            best, best_score = trial, value
    return best


def score(trial: Trial, rule: Rule) -> float | None:
    """What the rule ranks a trial by; None for a trial that cannot win."""
    if trial.result.status != "done":
        return None
    if rule == "source-validation":
        value: float | None = average(trial.result.matrices["validation"])
    elif rule == "leave-one-source-out":
        value = _held_out_score(trial)
    else:
        value = trial.result.target_score
    return value if value is not None and math.isfinite(value) else None


def _held_out_score(trial: Trial) -> float | None:
    """Mean over the sources, each scored by the run that never saw it; None unless all of them
    gave a number.
    """
    scores = [result.target_score for result in trial.held_out.values()]
    there = [value for value in scores if value is not None]
    return sum(there) / len(there) if there and len(there) == len(scores) else None


def select_by_seed(trials: Mapping[int, Sequence[Trial]], rule: Rule) -> Chosen:
    """Selection of each seed on its own."""
    found = {seed: select(of_seed, rule) for seed, of_seed in trials.items()}
    return Chosen(
        {seed: trial for seed, trial in found.items() if trial is not None}, seeds=len(trials)
    )
