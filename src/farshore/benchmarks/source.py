"""Make benchmarks and scenarios from names and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.scenario import Scenario
from . import BENCHMARKS
from .benchmark import Benchmark


def make_benchmark(benchmark: str, options: Mapping[str, Any] | None = None) -> Benchmark:
    """Return the benchmark of this name with these options, validated."""
    return BENCHMARKS.get(benchmark)(options)


def make_scenario(
    benchmark: str,
    options: Mapping[str, Any] | None = None,
    *,
    target: str | None = None,
    order: Sequence[str] | None = None,
    left_out: Sequence[str] = (),
    held_out: bool = False,
    seed: int = 0,
    network: str | None = None,
) -> Scenario:
    """Return the scenario that these arguments describe; `network` replaces the benchmark's own.

    Domains that are `left_out` are never made; not even scales are learned from them. If the target
    is `held_out`, it is a source of a larger run, which knows its classes.
    """
    return make_benchmark(benchmark, options).scenario(
        target=target,
        order=order,
        seed=seed,
        left_out=left_out,
        held_out=held_out,
        network=network,
    )
