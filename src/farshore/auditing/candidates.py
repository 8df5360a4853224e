"""The methods that an audit compares unless others are named, and the runs that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..benchmarks.benchmark import Benchmark
from ..learner.backbone import train_by_settings
from ..runs.catalog import find
from ..runs.plan.comparison import make_comparison
from ..runs.plan.experiment import Experiment
from ..runs.plan.select import EACH

# The method that is chosen unless another one is clearly better, except on frozen features.
RECOMMENDED = "best"
ON_FEATURES = "slda"
# What a candidate is measured against: the most frequent class, and all sources at once.
MAJORITY, JOINT = "majority", "joint"
CANDIDATES = ("finetune", "er", "cl-coral", "cl-fishr", "ridge", "trees", RECOMMENDED)
REFERENCES = (MAJORITY, JOINT)


def recommended(data: Mapping[str, Any], benchmark: Benchmark, settings: Mapping[str, Any]) -> str:
    """The method that is chosen unless another one is clearly better.

    data: the fields of a run that choose benchmark, options and network.
    """
    network, given = data.get("network"), dict(data.get("network_settings", {}))
    if network is None:
        network, given = benchmark.usual_network(), {**benchmark.network_settings, **given}
    train = train_by_settings({**benchmark.settings, **settings}, network, given)
    return ON_FEATURES if train == "head" else RECOMMENDED


def usual_methods(benchmark: Benchmark, preferred: str) -> list[str]:
    """The preferred method, and all candidates and references that can learn from these data."""
    tabular = benchmark.network == "mlp"
    names = dict.fromkeys([*CANDIDATES, preferred, *REFERENCES])
    return [name for name in names if tabular or not find(name).tables_only]


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
