"""The space of a search: the settings of each trial.

Trial 0 is the defaults; every later trial draws all searched settings at random (DomainBed's random
search). Each setting has a stream of its own, so adding one to a method disturbs no other, and
methods share what they have in common: trial 7 of two methods has the same learning rate and batch
size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import catalog
from ..benchmarks.benchmark import Benchmark
from ..errors import FarshoreError
from ..profiles import PROFILES
from ..randomness import derive
from ..settings import Choice, Distribution, Power, UniformInt


def run_seed(search_seed: int, number: int) -> int:
    """The seed of the runs that count as seed `number`. It is no small number, so it never
    equals a search or scenario seed.
    """
    return 1_000_000 + derive(search_seed, "run", number) % 2_000_000_000


def trial_settings(
    method: str,
    benchmark: Benchmark,
    *,
    search_seed: int,
    number: int,
    trial: int,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The settings of trial `trial` for seed `number`. `fixed` are not searched: they hold in
    every trial.
    """
    fixed = dict(fixed or {})
    if trial == 0:
        return fixed
    drawn = {}
    for name, search in distributions(method, benchmark).items():
        if name not in fixed:
            drawn[name] = search.draw(
                np.random.default_rng(derive(search_seed, "draw", number, trial, name))
            )
    return drawn | fixed


def distributions(method: str, benchmark: Benchmark) -> dict[str, Distribution]:
    """What is searched for this method on this benchmark."""
    profile = PROFILES.get(benchmark.profile)
    return catalog.find(method).Settings.distributions(profile, method)


def defaults(method: str, benchmark: Benchmark) -> dict[str, Any]:
    """The settings of this method on this benchmark, where nothing is asked for."""
    profile = PROFILES.get(benchmark.profile)
    return {**catalog.find(method).Settings.defaults(profile, method), **benchmark.settings}


def capped(
    method: str,
    benchmark: Benchmark,
    settings: Mapping[str, Any],
    at_most: Mapping[str, float],
) -> dict[str, Any]:
    """The settings with some of them, defaults too, held at an upper bound."""
    standing = {**defaults(method, benchmark), **settings}
    bounded = {
        name: type(standing[name])(bound)
        for name, bound in at_most.items()
        if name in standing and standing[name] > bound
    }
    return {**settings, **bounded}


def grid(search: Distribution, values: int) -> list[float | int]:
    """Evenly spaced values on the scale on which the distribution is uniform: for a power, the
    exponent.
    """
    if isinstance(search, Choice):
        raise FarshoreError("a choice has no scale: only numbers can be varied")
    places = np.linspace(search.low, search.high, values)
    if isinstance(search, Power):
        powers = [search.base ** float(place) for place in places]
        return [int(value) for value in powers] if search.whole else powers
    return [round(place) if isinstance(search, UniformInt) else float(place) for place in places]
