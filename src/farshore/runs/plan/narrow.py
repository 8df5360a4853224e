"""Narrow an experiment to some of its benchmarks and methods.

Runs keep their names, so nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ...errors import FarshoreError
from .experiment import Experiment, Part
from .select import Groups, select_methods


def narrow(
    experiment: Experiment,
    benchmarks: Sequence[str] | None,
    methods: Sequence[str] | None,
    groups: Groups = MappingProxyType({}),
) -> Experiment:
    """Keep only these benchmarks and methods of an experiment.

    Methods may be names or groups; `groups` adds groups that the caller knows.
    """
    if benchmarks is None and methods is None:
        return experiment
    chosen = select_methods(methods, groups) if methods is not None else None
    parts: list[Part] = []
    for part in experiment.parts:
        kept_benchmarks = [
            entry
            for entry, data in zip(part.benchmarks, part.data, strict=True)
            if benchmarks is None or data.title in benchmarks or data.benchmark in benchmarks
        ]
        kept_methods = [name for name in part.systems if chosen is None or name in chosen]
        if kept_benchmarks and kept_methods:
            parts.append(
                part.model_copy(update={"benchmarks": kept_benchmarks, "methods": kept_methods})
            )
    if not parts:
        raise FarshoreError(f"{experiment.name} has no run with these --benchmarks and --methods")
    return experiment.model_copy(update={"parts": parts})
