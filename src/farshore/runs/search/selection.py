"""Selection: the best trial of each seed.

- `source-validation`: the mean score on the sources' validation rows at the end of the sequence
  (the default).
- `leave-one-source-out`: the mean score on each source when it was held out as an unseen domain.
  The runs behind it never see the real target, neither to learn nor to measure.
- `oracle`: the score on the target itself. It shows what honest selection costs; it is not a valid
  result.

The first two cannot use the target: `source-validation` reads the matrices of the sources, and the
runs that `leave-one-source-out` reads contain no score of the real target.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..result import Result, average

Rule = Literal["source-validation", "leave-one-source-out", "oracle"]


@dataclass(frozen=True)
class Trial:
    """One trial: the run on all sources and, if planned, the runs with one source held out."""

    number: int
    result: Result
    held_out: Mapping[str, Result] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """The selected trials of a method by seed; a seed may have none that did not diverge."""

    trials: Mapping[int, Trial]
    seeds: int

    def best_seed(self, rule: Rule) -> int | None:
        """The seed with the best selected trial by the rule; the first one if tied."""
        scores = {seed: score(trial, rule) for seed, trial in sorted(self.trials.items())}
        known = {seed: value for seed, value in scores.items() if value is not None}
        return max(known, key=lambda seed: known[seed]) if known else None


def select(trials: Sequence[Trial], rule: Rule) -> Trial | None:
    """The best trial by the rule; diverged ones never win, the first of tied ones does."""
    best: Trial | None = None
    best_score = -math.inf
    for trial in sorted(trials, key=lambda trial: trial.number):
        value = score(trial, rule)
        if value is not None and value > best_score:
            best, best_score = trial, value
    return best


def score(trial: Trial, rule: Rule) -> float | None:
    """The score by which the rule ranks a trial; None for a trial that cannot win."""
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
    """Mean score over the sources, each from the run that held it out; None if one is missing."""
    scores = [result.target_score for result in trial.held_out.values()]
    known = [value for value in scores if value is not None]
    return sum(known) / len(known) if known and len(known) == len(scores) else None


def select_by_seed(trials: Mapping[int, Sequence[Trial]], rule: Rule) -> Chosen:
    """Select the best trial of each seed separately."""
    best = {seed: select(seed_trials, rule) for seed, seed_trials in trials.items()}
    found = {seed: trial for seed, trial in best.items() if trial is not None}
    return Chosen(found, seeds=len(trials))
