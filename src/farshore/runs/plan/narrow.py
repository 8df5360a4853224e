"""Narrow an experiment to some of its benchmarks and methods, or scale it down to try it.

Runs keep their names, so nothing is done twice.
"""

from collections.abc import Sequence
from types import MappingProxyType

from ...benchmarks import BENCHMARKS
from ...errors import FarshoreError
from .experiment import Experiment, Part, Search
from .select import BETWEEN_NAMES, EACH, Groups, in_turn, select_methods


def narrow(
    experiment: Experiment,
    benchmarks: Sequence[str] | None,
    methods: Sequence[str] | None,
    groups: Groups = MappingProxyType({}),
) -> Experiment:
    """Keep only these benchmarks and methods, or groups, of which `groups` adds further ones."""
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
            parts.append(part.but(benchmarks=kept_benchmarks, methods=kept_methods))
    if not parts:
        raise FarshoreError(f"{experiment.name} has no run with these --benchmarks and --methods")
    return experiment.but(parts=parts)


STEPS = 2
BATCH = 16


def tiny(experiment: Experiment) -> Experiment:
    """At most 2 trials of 1 seed, 2 steps per domain, 16 rows a batch; parts keep differing."""
    parts = [tiny_part for part in experiment.parts for tiny_part in _parts(part)]
    return experiment.but(search=_search(experiment.search), parts=parts)


def _search(search: Search) -> Search:
    seeds = 1 if isinstance(search.seeds, int) else search.seeds[:1]
    return search.but(trials=min(search.trials, 2), seeds=seeds)


def _parts(part: Part) -> list[Part]:
    """One part per stand-in benchmark, because each has its own name for a chosen target."""
    # At most two orders. One given by names becomes `reversed`: stand-ins have other names.
    words = dict.fromkeys("reversed" if BETWEEN_NAMES in word else word for word in part.orders)
    several = any(word == "all" or word.startswith("balanced:") for word in words)
    part = part.but(
        orders=["listed", "reversed"] if several else list(words)[:2],
        steps=STEPS if part.steps is None else STEPS // 2,
        memory=max(12, part.memory // 25) if part.memory is not None else None,
        at_most={**part.at_most, "batch_size": BATCH},
        search=_search(part.search) if part.search is not None else None,
        values=2,
    )
    parts = []
    for name in dict.fromkeys(BENCHMARKS.get(data.benchmark).stand_in for data in part.data):
        kind, target = BENCHMARKS.get(name), part.target
        known = kind.Options.model_fields
        options = {option: value for option, value in part.options.items() if option in known}
        if target is not None:
            target = EACH if in_turn(target) else kind.domains[0]
        parts.append(part.but(benchmarks=[name], options=options, target=target))
    return parts
