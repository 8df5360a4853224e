"""The paper's printed numbers, as the sections of docs/reproduction.md need them."""

from __future__ import annotations

from farshore.report.paper.numbers import paper_table
from reproduction.arithmetic import Number


def paper_numbers(experiment: str) -> dict[tuple[str, str, str], Number]:
    """The paper's mean and standard error by method, variant and data set."""
    found = paper_table(experiment)
    assert found is not None, experiment
    return {key: (mean, error or 0.0) for key, (mean, error) in found.numbers.items()}


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
