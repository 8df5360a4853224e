"""Search by Optuna: draws that earlier trials steer, and successive halving of those that fall
behind. Needs the extra `search`.

A study is one method on one benchmark with one seed and one order. Its trials follow one another,
and each is drawn from a fresh sampler whose seed is the trial's: what is drawn, and what is
stopped, depends on the trials before and on nothing else.
So no study is ever stored: it is made again from what its trials scored.

- The first trials are the paper's: the defaults, then random draws. From trial `RANDOM_TRIALS` on,
  Optuna's TPE draws.
- After 1, 2, 4, ... sources a trial goes on only if it stands in the better half of all that came
  so far, by the mean validation score on the sources seen (Optuna's SuccessiveHalvingPruner). The
  target has no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import needs
from ..evaluation.transfer import Matrix
from ..settings import Choice, Distribution, Power, UniformInt

# Optuna's own number: before, TPE has too little to learn from.
RANDOM_TRIALS = 10


@dataclass(frozen=True)
class Past:
    """A trial that has ended: its settings, its score after each source, and the score of its
    end unless it was stopped.
    """

    settings: Mapping[str, Any]
    scores: tuple[float, ...]
    value: float | None


def seen_scores(validation: Matrix) -> tuple[float, ...]:
    """After each source: the mean validation score over the sources seen so far."""
    return tuple(sum(row[: place + 1]) / (place + 1) for place, row in enumerate(validation))


def propose(
    searched: Mapping[str, Distribution], past: Sequence[Past], *, seed: int
) -> dict[str, Any]:
    """TPE's next draw: values that were more frequent among the better trials than among the
    others.
    """
    optuna = find_optuna()
    scales = {name: _scale(optuna, search) for name, search in searched.items()}
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(n_startup_trials=0, seed=seed % 2**32),
    )
    state = optuna.trial.TrialState
    for trial in past:
        places = {
            name: _place(search, trial.settings[name])
            for name, search in searched.items()
            if name in trial.settings
        }
        known = {name: place for name, place in places.items() if place is not None}
        study.add_trial(
            optuna.trial.create_trial(
                state=state.COMPLETE if trial.value is not None else state.PRUNED,
                value=trial.value,
                params=known,
                distributions={name: scales[name] for name in known},
                intermediate_values=dict(enumerate(trial.scores, start=1)),
            )
        )
    drawn = study.ask(scales).params
    return {name: _value(search, drawn[name]) for name, search in searched.items()}


def promising(earlier: Sequence[Sequence[float]], scores: Sequence[float]) -> bool:
    """Whether a trial with these scores, one a source seen, goes on after its last one.
    `earlier`: those of the trials before.
    """
    optuna = find_optuna()
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=1, reduction_factor=2, min_early_stopping_rate=0
    )
    study = optuna.create_study(direction="maximize", pruner=pruner)
    stop = False
    for each in (*earlier, scores):
        trial = study.ask()
        for step, score in enumerate(each, start=1):
            trial.report(score, step)
            stop = trial.should_prune()
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return not stop


def find_optuna() -> Any:
    """Optuna, which is imported only where a search asks for it."""
    try:
        import optuna
    except ImportError as error:
        raise needs("search", f"search by optuna needs Optuna ({error})") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _scale(optuna: Any, search: Distribution) -> Any:
    """The scale on which the distribution is uniform: the exponent of a power, the number of a
    choice.
    """
    if isinstance(search, Choice):
        return optuna.distributions.CategoricalDistribution(range(len(search.options)))
    kind = (
        optuna.distributions.IntDistribution
        if isinstance(search, UniformInt)
        else optuna.distributions.FloatDistribution
    )
    return kind(search.low, search.high)


def _place(search: Distribution, value: Any) -> float | int | None:
    """Where a value lies on that scale; None for a default that the distribution cannot draw."""
    if isinstance(search, Choice):
        return search.options.index(value) if value in search.options else None
    if isinstance(search, Power):
        if value <= 0:
            return None
        # A whole number was cut to: the place may lie a last bit, or a cut, below the lowest.
        place = math.log(value) / math.log(search.base)
        slack = math.log((value + 1) / value) / math.log(search.base) if search.whole else 1e-9
        return (
            min(max(place, search.low), search.high)
            if search.low - slack <= place <= search.high + slack
            else None
        )
    return value if search.low <= value <= search.high else None


def _value(search: Distribution, place: Any) -> Any:
    """The value at a place of that scale, as the distribution itself draws it."""
    if isinstance(search, Choice):
        return search.options[place]
    if isinstance(search, Power):
        value = search.base**place
        return int(value) if search.whole else value
    return place
