"""The designs of an audit: a fixed ladder of what is run, from a glance to everything.

A higher design has all runs of the lower ones, except those of the lowest, which are shorter. So an
audit with more minutes continues one with fewer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.randomness import derive
from ..benchmarks.benchmark import Benchmark
from ..errors import FarshoreError, unknown
from ..runs.catalog import find
from ..runs.plan.comparison import make_comparison
from ..runs.plan.experiment import Experiment, Part
from ..runs.plan.select import BETWEEN_NAMES, EACH, fitting, references
from ..systems.closed_form.ridge import Ridge, RidgeSettings
from ..tasks.metrics import listed, several

# A network that learns all sources at once, and the candidate that does nothing against forgetting.
JOINT, UNPROTECTED = "joint", "finetune"
CANDIDATES = (UNPROTECTED, "er", "cl-coral", "cl-fishr", "ridge", "slda", "trees", "auto")
MINUTES = 10.0
# Of a small network, all together: less than a minute.
FEW_STEPS = 20_000


@dataclass(frozen=True)
class Design:
    """What an audit runs; None stands for all of them.

    methods: candidates, and the network that learns all sources at once. The references of the data
        are part of every design.
    orders: how many of the orders: listed, reversed, or those that are given.
    sites: how many sites are left out, the first of a fixed random sequence.
    steps: the most steps per domain.
    """

    name: str
    methods: tuple[str, ...] | None = None
    orders: int | None = None
    sites: int | None = None
    steps: int | None = None


QUICK = ("slda", "er", "ridge")
# Cubes of ridge's width, one per site, up to which a run of it is quick: about half a minute.
QUICK_WORK = 2e10
LADDER = (
    Design("glance", QUICK, orders=1, sites=4, steps=20),
    Design("small", QUICK, orders=1, sites=8),
    Design("medium", (*QUICK, UNPROTECTED, "cl-coral", JOINT), orders=1, sites=20),
    Design("large", orders=1),
    Design("full"),
)


def check_design(minutes: float | None, design: str | None) -> float:
    """The minutes; refuse an unknown design, and one that is given with minutes."""
    names = [each.name for each in LADDER]
    if design is not None and design not in names:
        raise unknown("design", design, names)
    if design is not None and minutes is not None:
        raise FarshoreError(
            f"--minutes {minutes:g} is to choose a design, and --design {design} is one: give one "
            "of the two"
        )
    if minutes is not None and not 0 < minutes < math.inf:
        raise FarshoreError(f"--minutes {minutes:g} is not allowed: give more than 0")
    return MINUTES if minutes is None else minutes


def to_climb(
    designs: Mapping[str, Experiment], benchmark: Benchmark, sites: int
) -> dict[str, Experiment]:
    """The designs to choose from: of those that agree on these data only the highest.

    A table on which the second lowest takes less than a minute needs no lower one.
    """
    parts = [experiment.parts for experiment in designs.values()]
    kept = {
        name: experiment
        for place, (name, experiment) in enumerate(designs.items(), start=1)
        if experiment.parts not in parts[place:]
    }
    left_out = min(sites, LADDER[1].sites or sites)
    steps = left_out * len(benchmark.domain_names()) * benchmark.usual_steps()
    if benchmark.network == "mlp" and steps < FEW_STEPS:
        kept.pop(LADDER[0].name, None)
    return kept


def usual_methods(benchmark: Benchmark) -> list[str]:
    """All candidates that can learn from these data."""
    return [
        name
        for name in fitting(CANDIDATES, benchmark)
        if benchmark.network == "mlp" or not find(name).tables_only
    ]


def quick_methods(benchmark: Benchmark, target: str) -> tuple[str, ...]:
    """The candidates of the lowest designs: finetune, not ridge, for a wide table of many sites.

    ridge solves equations of its width after every site.
    """
    if benchmark.network != "mlp":
        return QUICK
    sources = benchmark.scenario(target=target).sources
    width = Ridge(RidgeSettings()).projection(sources[0].inputs.shape[1])
    quick = Ridge.name if width**3 * len(sources) <= QUICK_WORK else UNPROTECTED
    return tuple(quick if name == Ridge.name else name for name in QUICK)


def plan_designs(
    data: Mapping[str, Any],
    benchmark: Benchmark,
    targets: Sequence[str],
    methods: Sequence[str] | None,
    *,
    orders: Sequence[str] | None,
    steps: int | None,
    settings: Mapping[str, Any],
    seeds: int,
    **conditions: Any,
) -> dict[str, Experiment]:
    """The experiment of every design by name, the lowest first.

    Methods, orders or steps that are given are those of every design. Sites that are ordered by
    time keep that order, and each is predicted from those before it.

    targets: the sites that can be left out.
    """
    usual = usual_methods(benchmark) if methods is None else methods
    beside = references(benchmark)
    quick = quick_methods(benchmark, targets[-1]) if methods is None else QUICK
    words = list(orders or (["listed"] if benchmark.ordered_by_time else ["listed", "reversed"]))
    full = make_comparison(
        data,
        list(dict.fromkeys([*usual, *beside, JOINT])),
        seeds=range(seeds),
        orders=words,
        target=EACH,
        steps=steps,
        settings=settings,
        **conditions,
    )
    (part,) = full.parts
    usual_steps = benchmark.usual_steps()
    experiments: dict[str, Experiment] = {}
    for design in LADDER:
        every = design.methods is None or methods is not None
        few = (*(quick if design.methods == QUICK else design.methods or ()), *beside)
        fewer = design.steps if (design.steps or usual_steps) < usual_steps else None
        changes = {
            "methods": [each for each in part.methods if every or each in few],
            "orders": words if orders is not None else words[: design.orders],
            "target": _target(targets, design.sites),
            "steps": fewer if steps is None else steps,
        }
        smaller = part.model_copy(update=changes)
        experiments[design.name] = full.model_copy(update={"parts": [smaller]})
    return experiments


def _target(targets: Sequence[str], sites: int | None) -> str:
    """The word for the sites that are left out: of many, the first of a fixed random sequence."""
    ambiguous = any(BETWEEN_NAMES in name for name in targets)
    if sites is None or len(targets) <= sites or ambiguous:
        return EACH
    sequence = np.random.default_rng(derive(0, "audit", "sites")).permutation(len(targets))
    return f"{EACH}:" + BETWEEN_NAMES.join(targets[number] for number in sorted(sequence[:sites]))


def what_is_left_out(name: str, part: Part, full: Part, sites: int) -> str:
    """A design in a sentence: what it leaves out of the full one."""
    left_out = []
    methods = [method for method in full.methods if method not in part.methods]
    if methods:
        left_out.append(f"the methods {listed(methods)}")
    orders = [order for order in full.orders if order not in part.orders]
    if orders:
        left_out.append(f"the order {listed(orders)}")
    if part.target != full.target:
        chosen = str(part.target).removeprefix(f"{EACH}:").count(BETWEEN_NAMES) + 1
        left_out.append(f"{several(sites - chosen, 'site')} of {sites}")
    if part.steps != full.steps:
        left_out.append(f"all but {part.steps} steps per domain")
    what = listed(left_out) if left_out else "nothing"
    more = "; more --minutes continue" if left_out else ""
    return f"Design {name} leaves out {what} (--design {name} repeats it{more})."
