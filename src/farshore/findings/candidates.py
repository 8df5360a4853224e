"""The methods that an audit compares unless others are named, and the runs that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..benchmarks.benchmark import Benchmark
from ..catalog import find
from ..plan.comparison import make_comparison
from ..plan.experiment import Experiment
from ..plan.select import EACH

# The method that is chosen unless another one is clearly better.
RECOMMENDED = "best"
# What a candidate is measured against: the most frequent class, and all sources at once.
MAJORITY, JOINT = "majority", "joint"
CANDIDATES = ("finetune", "er", "cl-coral", "cl-fishr", "ridge", "trees", RECOMMENDED)
REFERENCES = (MAJORITY, JOINT)


def usual_methods(benchmark: Benchmark) -> list[str]:
    """All candidates and references that can learn from these data."""
    tabular = benchmark.network == "mlp"
    return [name for name in (*CANDIDATES, *REFERENCES) if tabular or not find(name).tables_only]


def with_references(methods: Sequence[str]) -> list[str]:
    """The methods, and the references that the audit's answers are measured against."""
    return list(dict.fromkeys([*methods, *REFERENCES]))


def plan_audit(
    data: Mapping[str, Any],
    benchmark: Benchmark,
    methods: Sequence[str],
    *,
    orders: Sequence[str] | None,
    seeds: int,
    **conditions: Any,
) -> Experiment:
    """Every method at every site that is left out in turn, in two orders unless others are given.

    Sites that are ordered by time keep that order, and each is predicted from those before it.
    """
    words = orders or (["listed"] if benchmark.ordered_by_time else ["listed", "reversed"])
    return make_comparison(
        data,
        with_references(methods),
        seeds=range(seeds),
        orders=list(words),
        target=EACH,
        **conditions,
    )
