"""Scenarios by the name of their benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farshore.benchmarks import make_benchmark
from farshore.data.scenario import Scenario


def make_scenario(
    benchmark: str, options: Mapping[str, Any] | None = None, **conditions: Any
) -> Scenario:
    """The scenario of a benchmark with these options, under these conditions."""
    return make_benchmark(benchmark, options).scenario(**conditions)
