"""Tiny scale: run any experiment on embedded data in seconds, only to see that it works."""

from __future__ import annotations

from ...benchmarks import BENCHMARKS
from .experiment import Experiment, Part, Search
from .select import BETWEEN_NAMES, EACH, in_turn

STEPS = 2
BATCH = 16


def tiny(experiment: Experiment) -> Experiment:
    """At most 2 trials of 1 seed, 2 steps per domain, and batches of at most 16 rows.

    Differences between parts are kept.
    """
    return experiment.model_copy(
        update={
            "search": _search(experiment.search),
            "parts": [tiny_part for part in experiment.parts for tiny_part in _parts(part)],
        }
    )


def _search(search: Search) -> Search:
    seeds = 1 if isinstance(search.seeds, int) else search.seeds[:1]
    return search.model_copy(update={"trials": min(search.trials, 2), "seeds": seeds})


def _orders(words: list[str]) -> list[str]:
    """At most two orders. One given by names becomes `reversed`: stand-ins have other names."""
    several = [word for word in words if word == "all" or word.startswith("balanced:")]
    if several:
        return ["listed", "reversed"]
    return list(dict.fromkeys("reversed" if BETWEEN_NAMES in word else word for word in words))[:2]


def _parts(part: Part) -> list[Part]:
    """One part per stand-in benchmark, because each has its own name for a chosen target."""
    names = dict.fromkeys(BENCHMARKS.get(data.benchmark).stand_in for data in part.data)
    return [
        part.model_copy(
            update={
                "benchmarks": [name],
                "options": {
                    option: value
                    for option, value in part.options.items()
                    if option in BENCHMARKS.get(name).Options.model_fields
                },
                "target": BENCHMARKS.get(name).domains[0]
                if part.target is not None and not in_turn(part.target)
                else EACH
                if part.target is not None
                else None,
                "orders": _orders(part.orders),
                "steps": STEPS if part.steps is None else STEPS // 2,
                "memory": max(12, part.memory // 25) if part.memory is not None else None,
                "at_most": {**part.at_most, "batch_size": BATCH},
                "search": _search(part.search) if part.search is not None else None,
                "values": 2,
            }
        )
        for name in names
    ]
