"""Words for methods and for orders of the sources, as commands and experiments give them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from .. import catalog
from ..benchmarks.benchmark import Benchmark
from ..data.scenario import arrange
from ..errors import FarshoreError, unknown
from ..randomness import derive

# In an order that is given by its names: a shell and YAML leave it alone, and no domain has it in
# its name.
BETWEEN_NAMES = "/"
Groups = Mapping[str, Sequence[str]]


def select_methods(words: Sequence[str], groups: Groups = MappingProxyType({})) -> list[str]:
    """Names of methods and of groups (tailored, naive, ..., adaptation, upper-bound, `all`) as
    methods, each once. `groups` are further groups that the caller knows.
    """
    names = catalog.names()
    known: dict[str, list[str]] = {"all": names}
    for name in names:
        group = catalog.find(name).group
        if group not in names:
            known.setdefault(group, []).append(name)
    known |= {group: list(members) for group, members in groups.items()}
    chosen: list[str] = []
    for word in words:
        if word not in known and word not in names:
            raise unknown("method or group", word, [*names, *known])
        chosen += [name for name in known.get(word, [word]) if name not in chosen]
    return chosen


def select_orders(
    benchmark: Benchmark, words: Sequence[str], *, target: str | None, seed: int
) -> list[tuple[str, ...]]:
    """`listed`, `reversed`, `random1`, `random2`, ... or names as in `45/30/0/15`, as orders of the
    sources.

    A random one depends on the scenario's seed alone.
    """
    target = benchmark.choose_target(target)
    listed = benchmark.listed(target)
    orders = []
    for word in words:
        if word in ("listed", "reversed"):
            orders.append(tuple(listed if word == "listed" else listed[::-1]))
        elif word.startswith("random") and word[6:].isdecimal() and int(word[6:]) > 0:
            orders.append(_random_order(listed, int(word[6:]), seed))
        elif BETWEEN_NAMES in word:
            orders.append(
                tuple(arrange(benchmark.domain_names(), target, word.split(BETWEEN_NAMES)))
            )
        else:
            names = BETWEEN_NAMES.join(listed[::-1])
            raise FarshoreError(
                f"unknown order {word!r}: use listed, reversed, random1, random2, ..., or names "
                f"as in {names}"
            )
    return orders


def different_orders(
    benchmark: Benchmark, words: Sequence[str], *, target: str | None, seed: int
) -> dict[tuple[str, ...], str]:
    """The orders that the words mean, each once, with its word: `listed` and `reversed` wherever
    they fit, otherwise the first that was given.
    """
    usual = ("listed", "reversed")
    orders = select_orders(benchmark, [*usual, *words], target=target, seed=seed)
    named: dict[tuple[str, ...], str] = {}
    for word, order in zip((*usual, *words), orders, strict=True):
        named.setdefault(order, word)
    return {order: named[order] for order in orders[len(usual) :]}


def _random_order(listed: Sequence[str], number: int, seed: int) -> tuple[str, ...]:
    """Neither listed nor reversed nor an earlier random one, as long as there are others: two
    words for one order would count it twice.
    """
    taken = {tuple(listed), tuple(listed[::-1])}
    for each in range(1, number + 1):
        if len(taken) >= math.factorial(len(listed)):
            taken.clear()
        draws = np.random.default_rng(derive(seed, "order", each))
        order = _shuffled(listed, draws)
        while order in taken:
            order = _shuffled(listed, draws)
        taken.add(order)
    return order


def _shuffled(names: Sequence[str], draws: np.random.Generator) -> tuple[str, ...]:
    return tuple(names[index] for index in draws.permutation(len(names)))
