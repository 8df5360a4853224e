"""Search by Optuna: earlier trials guide the draws, and successive halving stops poor trials.

Needs the extra `search`.

A study is one method on one benchmark with one seed and one order. Its trials run one after
another, and each is drawn from a fresh sampler with the trial's own seed. What is drawn and what is
stopped depends only on the previous trials, so a study is not stored: it is rebuilt from the scores
of its trials.

- The first trials are those of the paper's search: the defaults, then random draws. From trial
  `RANDOM_TRIALS` on, Optuna's TPE draws.
- After 1, 2, 4, ... sources a trial continues only if it is in the better half of the trials so
  far, by the mean validation score on the sources learned (Optuna's SuccessiveHalvingPruner). The
  target is not used.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import needs
from ...settings import Choice, Distribution, Power, UniformInt
from ..result import Matrix, measured

# Optuna's default: with fewer trials TPE has too little to learn from.
RANDOM_TRIALS = 10


@dataclass(frozen=True)
class Past:
    """A trial that ended: settings, scores after each source, final one, None if stopped."""

    settings: Mapping[str, Any]
    scores: tuple[float, ...]
    value: float | None


def seen_scores(validation: Matrix) -> tuple[float, ...]:
    """After each source: the mean validation score over the sources learned so far."""
    rows = [measured(row[:seen]) for seen, row in enumerate(validation, start=1)]
    return tuple(sum(row) / len(row) for row in rows)


def propose(
    searched: Mapping[str, Distribution], past: Sequence[Past], *, seed: int
) -> dict[str, Any]:
    """TPE's next draw: values more frequent among the better trials than among the others."""
    optuna = find_optuna()
    scales = {name: _scale(optuna, search) for name, search in searched.items()}
    sampler = optuna.samplers.TPESampler(n_startup_trials=0, seed=seed % 2**32)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    state = optuna.trial.TrialState
    for trial in past:
        known = {
            name: point
            for name, search in searched.items()
            if name in trial.settings
            and (point := _point(search, trial.settings[name])) is not None
        }
        ended = optuna.trial.create_trial(
            state=state.COMPLETE if trial.value is not None else state.PRUNED,
            value=trial.value,
            params=known,
            distributions={name: scales[name] for name in known},
            intermediate_values=dict(enumerate(trial.scores, start=1)),
        )
        study.add_trial(ended)
    drawn = study.ask(scales).params
    return {name: _value(search, drawn[name]) for name, search in searched.items()}


def promising(earlier: Sequence[Sequence[float]], scores: Sequence[float]) -> bool:
    """Whether a trial with these scores per source should continue, after `earlier` ones."""
    optuna = find_optuna()
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=1, reduction_factor=2, min_early_stopping_rate=0
    )
    study = optuna.create_study(direction="maximize", pruner=pruner)
    stop = False
    for trial_scores in (*earlier, scores):
        trial = study.ask()
        for step, score in enumerate(trial_scores, start=1):
            trial.report(score, step)
            stop = trial.should_prune()
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return not stop


def find_optuna() -> Any:
    """Import Optuna, which only this search needs."""
    try:
        import optuna
    except ImportError as error:
        raise needs("search", f"search by optuna needs Optuna ({error})") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _scale(optuna: Any, search: Distribution) -> Any:
    """The scale on which a distribution is uniform: exponents of a power, indices of a choice."""
    if isinstance(search, Choice):
        return optuna.distributions.CategoricalDistribution(range(len(search.options)))
    whole = isinstance(search, UniformInt)
    kinds = optuna.distributions
    return (kinds.IntDistribution if whole else kinds.FloatDistribution)(search.low, search.high)


def _point(search: Distribution, value: Any) -> float | int | None:
    """The point of a value on that scale; None for a default that cannot be drawn."""
    if isinstance(search, Choice):
        return search.options.index(value) if value in search.options else None
    if isinstance(search, Power):
        if value <= 0:
            return None
        # Rounding, or truncation to a whole number, may put the point just below the lowest one.
        point = math.log(value) / math.log(search.base)
        slack = math.log((value + 1) / value) / math.log(search.base) if search.whole else 1e-9
        inside = search.low - slack <= point <= search.high + slack
        return min(max(point, search.low), search.high) if inside else None
    return value if search.low <= value <= search.high else None


def _value(search: Distribution, point: Any) -> Any:
    """The value at a point of that scale, as the distribution itself draws it."""
    if isinstance(search, Choice):
        return search.options[point]
    if isinstance(search, Power):
        value = search.base**point
        return int(value) if search.whole else value
    return point
