"""The paper's printed numbers, as the sections of docs/reproduction.md need them."""

from __future__ import annotations

from functools import cache

from reproduction.arithmetic import Number
from reproduction.paper import published


@cache
def paper_numbers(experiment: str) -> dict[tuple[str, str, str], Number]:
    """The paper's mean and standard error by method, variant and data set."""
    found = {
        (each.method, each.variant, each.column): (float(each.mean), float(each.error or 0))
        for each in published.numbers()
        if each.experiment == experiment and each.column not in published.SUMMARIES
    }
    assert found, experiment
    return found


def papers_scores(benchmark: str, *experiments: str, variant: str = "") -> dict[str, Number]:
    """The paper's numbers on a data set by method, of one variant (usually none)."""
    return {
        name: number
        for experiment in experiments
        for (name, of_variant, dataset), number in paper_numbers(experiment).items()
        if dataset == benchmark and of_variant == variant
    }


def near(mean: float, theirs: Number) -> bool:
    """Whether a score is within two of the paper's standard errors, or 3 points."""
    return abs(mean - theirs[0]) <= max(3.0, 2 * theirs[1])
