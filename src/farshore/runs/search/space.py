"""The space of a search: the settings of each trial.

Trial 0 uses the defaults; every later trial draws all searched settings at random (DomainBed's
random search). Each setting has its own random stream: adding a setting to a method does not change
the others, and methods share the settings they have in common. Trial 7 of two methods has the same
learning rate and batch size.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...base.randomness import derive
from ...benchmarks.benchmark import Benchmark
from ...errors import FarshoreError
from ...settings import Choice, Distribution, Power, UniformInt
from ...training.profiles import PROFILES
from .. import catalog


def run_seed(search_seed: int, number: int) -> int:
    """The run seed of seed `number`. It is large, so it never equals a search or scenario seed."""
    return 1_000_000 + derive(search_seed, "run", number) % 2_000_000_000


def trial_settings(
    method: str,
    benchmark: Benchmark,
    search_seed: int,
    number: int,
    trial: int,
    fixed: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The settings of a trial of seed `number`; `fixed` ones are the same in all."""
    drawn = {}
    for name, search in distributions(method, benchmark).items() if trial else ():
        if name not in fixed:
            seed = derive(search_seed, "draw", number, trial, name)
            drawn[name] = search.draw(np.random.default_rng(seed))
    return drawn | dict(fixed)


def distributions(method: str, benchmark: Benchmark) -> dict[str, Distribution]:
    """The searched settings of this method on this benchmark, with their distributions."""
    return catalog.find(method).Settings.distributions(PROFILES.get(benchmark.profile), method)


def defaults(method: str, benchmark: Benchmark) -> dict[str, Any]:
    """The default settings of this method on this benchmark."""
    profile = PROFILES.get(benchmark.profile)
    return {**catalog.find(method).Settings.defaults(profile, method), **benchmark.settings}


def capped(
    method: str, benchmark: Benchmark, settings: Mapping[str, Any], at_most: Mapping[str, float]
) -> dict[str, Any]:
    """The settings with upper bounds applied, to defaults as well."""
    effective = {**defaults(method, benchmark), **settings}
    bounded = {
        name: type(effective[name])(bound)
        for name, bound in at_most.items()
        if name in effective and effective[name] > bound
    }
    return {**settings, **bounded}


def grid(search: Distribution, values: int) -> list[float | int]:
    """Evenly spaced values on the scale on which the distribution is uniform."""
    if isinstance(search, Choice):
        raise FarshoreError("a choice has no scale: only numbers can be varied")
    points = np.linspace(search.low, search.high, values)
    if isinstance(search, Power):
        powers = [search.base ** float(point) for point in points]
        return [int(value) for value in powers] if search.whole else powers
    return [round(point) if isinstance(search, UniformInt) else float(point) for point in points]
