"""Comparisons: small experiments given on the command line, recorded like any other experiment.

A store contains one recorded comparison per benchmark and set of conditions (target, steps, memory,
settings and so on). Another comparison under the same conditions adds its methods, seeds and orders
to the record: exactly the runs that were requested. A comparison under different conditions gets a
record of its own: the first is called `compare-BENCHMARK`, later ones end in a short hash of their
conditions.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from ...base.files import check_writable
from ...base.lock import InUseError, exclusive
from ...base.names import LONGEST_NAME
from ...benchmarks import make_benchmark
from ...benchmarks.benchmark import Benchmark
from ...errors import FarshoreError
from ..store.identity import typed_settings
from ..store.store import FOLDER, Store, record_experiment, recorded_experiments
from .experiment import MOST_SEEDS, Experiment, Part, Search, explain_keys, make_book, with_forms
from .plan import Plan, make_plan
from .select import (
    EACH,
    arrange_sources,
    different_orders,
    expand_orders,
    in_turn,
    select_orders,
    select_targets,
)

# How long to wait for another process that is recording a comparison in the same store.
SECONDS_TO_WAIT = 10.0
# What a comparison can be extended by; every other field of a part is a condition. With target each
# the orders are a condition too: which they are depends on the target.
EXTENDED = {"methods", "orders", "search"}


def make_comparison(
    data: Mapping[str, Any],
    methods: Sequence[str],
    *,
    seeds: Sequence[int],
    orders: Sequence[str],
    scenario_seed: int = 0,
    target: str | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
    **conditions: Any,
) -> Experiment:
    """An experiment that compares methods on one benchmark, without a search.

    data: the fields of a run that choose benchmark, options and network.
    target: a domain, or `each`; by default that of the benchmark, and each domain of own data.
    conditions: further fields of a part: steps, memory and so on.
    """
    if not (methods and seeds and orders):
        raise FarshoreError("there is nothing to compare: name at least one method, seed and order")
    if len(seeds) > MOST_SEEDS:
        raise FarshoreError(f"{len(seeds):,} seeds are not allowed: use at most {MOST_SEEDS:,}")
    name, options = str(data["benchmark"]), dict(data.get("options", {}))
    benchmark = make_benchmark(name, options)
    if target is None and benchmark.own_data and benchmark.usual_target() is None:
        target = EACH
    if target == benchmark.usual_target():
        target = None
    if not in_turn(target) and benchmark.options.domain_by is None:
        benchmark.listed(benchmark.choose_target(target))  # refuses a target that does not exist
    words = _distinct_orders(benchmark, orders, target, scenario_seed)
    for method in methods:
        settings = typed_settings(method, settings)
    try:
        part = Part(
            benchmarks=[{name: benchmark.options.plain()} if options else name],
            network=data.get("network"),
            network_settings=dict(data.get("network_settings", {})),
            methods=list(dict.fromkeys(methods)),
            orders=words,
            target=target,
            settings=dict(settings),
            **conditions,
        )
        experiment = Experiment(
            name=f"compare-{benchmark.title}"[:LONGEST_NAME],
            about=f"methods compared on {benchmark.title}",
            command="compare",
            scenario_seed=scenario_seed,
            search=Search(trials=1, seeds=list(seeds)),
            parts=[part],
        )
    except ValidationError as error:
        raise FarshoreError(explain_keys(error)) from None
    return with_forms(experiment)


def _distinct_orders(
    benchmark: Benchmark, orders: Sequence[str], target: str | None, seed: int
) -> list[str]:
    """One word per order. The listed order works without domain names, which not all data have.

    If every domain is the target in turn, each target has orders of its own, and the words stay.
    """
    if in_turn(target):
        words = list(dict.fromkeys(orders))
        for aim in select_targets(benchmark, target):
            arrange_sources(benchmark, words, aim, seed)  # refuses unknown words
        return words
    if set(orders) == {"listed"}:
        return ["listed"]
    orders = expand_orders(benchmark, orders, target=target, seed=seed)
    return list(different_orders(benchmark, orders, target=target, seed=seed).values())


def record_comparison(requested: Experiment, runs: Path) -> Experiment:
    """Record a comparison in the store, or extend the recorded one under the same conditions.

    Returns the requested comparison under the name of its record.
    """
    with ExitStack() as stack:
        _lock(stack, runs / FOLDER)
        recorded = [experiment for experiment, _ in recorded_experiments(runs, []).values()]
        whole = _extended(requested, recorded)
        record_experiment(whole, runs, make_book(runs / FOLDER / "none.yaml"))
    return requested.but(name=whole.name)


def plan_comparison(
    requested: Experiment, store: Store, *, device: str = "cpu", record: bool = True
) -> Plan:
    """Plan a comparison and record it in the store; its data must be available here."""
    plan = make_plan(requested, store, make_book(store.runs / "none.yaml"), device=device)
    for title, absent in plan.absent.items():
        raise FarshoreError(f"{title} is not available here: {absent.why}")
    check_writable(store.runs, "--runs")
    if record:
        plan.experiment = record_comparison(requested, store.runs)
    return plan


def _extended(requested: Experiment, recorded: Sequence[Experiment]) -> Experiment:
    conditions = _conditions(requested)
    for experiment in recorded:
        if experiment.command == "compare" and _conditions(experiment) == conditions:
            return _joined(experiment, requested)
    names_in_use = {experiment.name for experiment in recorded}
    if requested.name not in names_in_use:
        return requested
    ending = hashlib.sha256(conditions.encode()).hexdigest()[:6]
    return requested.but(name=f"{requested.name}-{ending}")


def _conditions(experiment: Experiment) -> str:
    """Everything that must agree for runs to share a table: conditions and the data's seed."""
    parts = set()
    for part in experiment.parts:
        extended = EXTENDED - {"orders"} if in_turn(part.target) else EXTENDED
        conditions = part.model_dump(mode="json", exclude=extended, exclude_defaults=True)
        parts.add(json.dumps(conditions, sort_keys=True))
    return json.dumps([experiment.scenario_seed, sorted(parts)])


def _joined(first: Experiment, second: Experiment) -> Experiment:
    """The runs of both and no others. Methods with equal orders and seeds share a part."""
    parts = [(experiment, part) for experiment in (first, second) for part in experiment.parts]
    words = _words(first, [word for _, part in parts for word in part.orders])
    seeds: dict[tuple[str, str], set[int]] = {}
    for experiment, part in parts:
        run_seeds = set((part.search or experiment.search).run_seeds)
        for method in part.methods:
            for order in part.orders:
                seeds.setdefault((method, words[order]), set()).update(run_seeds)
    return first.but(**_grouped(first.parts[0], seeds, list(words.values())))


def _words(experiment: Experiment, words: Sequence[str]) -> dict[str, str]:
    """Map every word for an order to one word per order."""
    part, words = experiment.parts[0], list(dict.fromkeys(words))
    if words == ["listed"] or in_turn(part.target):
        return {word: word for word in words}
    target, seed = part.target, experiment.scenario_seed
    data = part.data[0]
    benchmark = make_benchmark(data.benchmark, part.options_of(data))
    named = different_orders(benchmark, words, target=target, seed=seed)
    orders = select_orders(benchmark, words, target=target, seed=seed)
    return {word: named[order] for word, order in zip(words, orders, strict=True)}


def _grouped(
    template: Part, seeds: Mapping[tuple[str, str], set[int]], words: Sequence[str]
) -> dict[str, Any]:
    """Search and parts of an experiment in which each method has these seeds in each order."""
    parts: dict[tuple[tuple[str, ...], tuple[int, ...]], list[str]] = {}
    for method in dict.fromkeys(method for method, _ in seeds):
        by_seeds: dict[tuple[int, ...], list[str]] = {}
        for order in dict.fromkeys(words):
            if (method, order) in seeds:
                by_seeds.setdefault(tuple(sorted(seeds[method, order])), []).append(order)
        for run_seeds, orders in by_seeds.items():
            parts.setdefault((tuple(orders), run_seeds), []).append(method)
    main_seeds = next(iter(parts))[1]
    searches = {seeds: Search(trials=1, seeds=list(seeds)) for _, seeds in parts}
    main = searches.pop(main_seeds)
    of_methods = [
        template.but(methods=methods, orders=list(orders), search=searches.get(run_seeds))
        for (orders, run_seeds), methods in parts.items()
    ]
    return {"search": main, "parts": of_methods}


def _lock(stack: ExitStack, folder: Path) -> None:
    """Lock the folder until the stack closes; wait if another process has the lock."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while True:
        try:
            stack.enter_context(exclusive(folder))
            return
        except InUseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
