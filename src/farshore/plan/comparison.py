"""Comparisons: small experiments that are typed instead of written, and recorded like others.

A store holds one recorded comparison per benchmark and conditions (target, steps, memory, settings
and so on). A further comparison under the same conditions extends it by its methods, seeds and
orders, by exactly those runs that were asked for. One under other conditions is recorded beside
it: the first has the name `compare-BENCHMARK`, later ones end in a short hash of their conditions.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from ..benchmarks.benchmark import Benchmark
from ..benchmarks.source import make_benchmark
from ..errors import FarshoreError
from ..lock import exclusive
from ..store.identity import typed_settings
from .experiment import Experiment, Part, Search, explain_keys, make_book
from .record import FOLDER, record_experiment, recorded_experiments
from .select import different_orders, select_orders

# How long to wait for another comparison that is being recorded in the same store.
SECONDS_TO_WAIT = 10.0
# What a comparison is extended by; everything else of a part is a condition.
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
    """These methods on one benchmark with these run seeds and orders, without a search.

    `data` are the fields of a run that choose benchmark, options and network; `conditions` are
    those of a part: steps, memory and so on.
    """
    if not (methods and seeds and orders):
        raise FarshoreError("there is nothing to compare: name at least one method, seed and order")
    name, options = str(data["benchmark"]), dict(data.get("options", {}))
    benchmark = make_benchmark(name, options)
    if target == benchmark.usual_target():
        target = None
    if benchmark.options.domain_by is None:
        benchmark.listed(benchmark.choose_target(target))  # refuses a target that does not exist
    words = _different(benchmark, orders, target, scenario_seed)
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
        return Experiment(
            name=f"compare-{benchmark.title}",
            about=f"methods compared on {benchmark.title}",
            command="compare",
            scenario_seed=scenario_seed,
            search=Search(trials=1, seeds=list(seeds)),
            parts=[part],
        )
    except ValidationError as error:
        raise FarshoreError(explain_keys(error)) from None


def _different(
    benchmark: Benchmark, orders: Sequence[str], target: str | None, seed: int
) -> list[str]:
    """One word per order. The listed order needs no names: constructed domains have none."""
    if set(orders) == {"listed"}:
        return ["listed"]
    return list(different_orders(benchmark, orders, target=target, seed=seed).values())


def record_comparison(asked: Experiment, runs: Path) -> Experiment:
    """Record a comparison in the store, or extend the recorded one under the same conditions. The
    asked one is returned under the name that it has there.
    """
    with ExitStack() as stack:
        _lock(stack, runs / FOLDER)
        recorded = [experiment for experiment, _ in recorded_experiments(runs, []).values()]
        whole = _extended(asked, recorded)
        record_experiment(whole, runs, make_book(runs / FOLDER / "none.yaml"))
    return asked.model_copy(update={"name": whole.name})


def _extended(asked: Experiment, recorded: Sequence[Experiment]) -> Experiment:
    conditions = _conditions(asked)
    for experiment in recorded:
        if experiment.command == "compare" and _conditions(experiment) == conditions:
            return _joined(experiment, asked)
    taken = {experiment.name for experiment in recorded}
    if asked.name not in taken:
        return asked
    ending = hashlib.sha256(conditions.encode()).hexdigest()[:6]
    return asked.model_copy(update={"name": f"{asked.name}-{ending}"})


def _conditions(experiment: Experiment) -> str:
    """All that must agree for runs to be in one table: that of the parts, and the data's seed."""
    parts = {
        json.dumps(
            part.model_dump(mode="json", exclude=EXTENDED, exclude_defaults=True), sort_keys=True
        )
        for part in experiment.parts
    }
    return json.dumps([experiment.scenario_seed, sorted(parts)])


def _joined(first: Experiment, second: Experiment) -> Experiment:
    """The runs of both and no others. Methods with equal orders and seeds share a part."""
    parts = [(each, part) for each in (first, second) for part in each.parts]
    words = _words(first, [word for _, part in parts for word in part.orders])
    seeds: dict[tuple[str, str], set[int]] = {}
    for experiment, part in parts:
        given = set((part.search or experiment.search).run_seeds)
        for method in part.methods:
            for order in part.orders:
                seeds.setdefault((method, words[order]), set()).update(given)
    return first.model_copy(update=_grouped(first.parts[0], seeds, list(words.values())))


def _words(experiment: Experiment, words: Sequence[str]) -> dict[str, str]:
    """One word for each order, by all words that were given for it."""
    part, words = experiment.parts[0], list(dict.fromkeys(words))
    if words == ["listed"]:
        return {"listed": "listed"}
    target, seed = part.target, experiment.scenario_seed
    data = part.data[0]
    benchmark = make_benchmark(data.benchmark, part.options_of(data))
    named = different_orders(benchmark, words, target=target, seed=seed)
    orders = select_orders(benchmark, words, target=target, seed=seed)
    return {word: named[order] for word, order in zip(words, orders, strict=True)}


def _grouped(
    usual: Part, seeds: Mapping[tuple[str, str], set[int]], words: Sequence[str]
) -> dict[str, Any]:
    """The search and the parts of an experiment in which each method has these seeds in each
    order.
    """
    parts: dict[tuple[tuple[str, ...], tuple[int, ...]], list[str]] = {}
    for method in dict.fromkeys(method for method, _ in seeds):
        by_seeds: dict[tuple[int, ...], list[str]] = {}
        for order in dict.fromkeys(words):
            if (method, order) in seeds:
                by_seeds.setdefault(tuple(sorted(seeds[method, order])), []).append(order)
        for of_method, orders in by_seeds.items():
            parts.setdefault((tuple(orders), of_method), []).append(method)
    most = next(iter(parts))[1]
    return {
        "search": _search(most),
        "parts": [
            usual.model_copy(
                update={
                    "methods": methods,
                    "orders": list(orders),
                    "search": None if of_part == most else _search(of_part),
                }
            )
            for (orders, of_part), methods in parts.items()
        ],
    }


def _search(seeds: Iterable[int]) -> Search:
    return Search(trials=1, seeds=list(seeds))


def _lock(stack: ExitStack, folder: Path) -> None:
    """Hold the lock of the folder until the stack ends; wait for another process that has it."""
    until = time.monotonic() + SECONDS_TO_WAIT
    while True:
        try:
            stack.enter_context(exclusive(folder))
            return
        except FarshoreError:
            if time.monotonic() > until or not folder.is_dir():
                raise
            time.sleep(0.05)
