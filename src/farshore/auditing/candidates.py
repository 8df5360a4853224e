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

# What a candidate is measured against: the most frequent class, and all sources at once; and the
# candidate that does nothing against forgetting.
MAJORITY, JOINT, UNPROTECTED = "majority", "joint", "finetune"
CANDIDATES = (UNPROTECTED, "er", "cl-coral", "cl-fishr", "ridge", "trees", "best")
# A candidate on frozen features of images only.
ON_FEATURES = "slda"


def usual_methods(
    data: Mapping[str, Any], benchmark: Benchmark, settings: Mapping[str, Any]
) -> list[str]:
    """All candidates that can learn from these data; `data` are a run's fields that choose them."""
    network, given = data.get("network"), dict(data.get("network_settings", {}))
    if network is None:
        network, given = benchmark.usual_network(), {**benchmark.network_settings, **given}
    train = train_by_settings({**benchmark.settings, **settings}, network, given)
    names = [*CANDIDATES, *([ON_FEATURES] if train == "head" else [])]
    tabular = benchmark.network == "mlp"
    return [name for name in names if tabular or not find(name).tables_only]


def plan_audit(
    data: Mapping[str, Any],
    benchmark: Benchmark,
    methods: Sequence[str] | None,
    *,
    orders: Sequence[str] | None,
    seeds: int,
    settings: Mapping[str, Any],
    **conditions: Any,
) -> Experiment:
    """Every method at every site that is left out in turn, in two orders unless others are given.

    Sites that are ordered by time keep that order, and each is predicted from those before it.

    methods: candidates, the usual ones if None; the references are added.
    """
    chosen = usual_methods(data, benchmark, settings) if methods is None else methods
    words = orders or (["listed"] if benchmark.ordered_by_time else ["listed", "reversed"])
    return make_comparison(
        data,
        list(dict.fromkeys([*chosen, MAJORITY, JOINT])),
        seeds=range(seeds),
        orders=list(words),
        target=EACH,
        settings=settings,
        **conditions,
    )
