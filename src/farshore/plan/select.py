"""Methods and source orders by the words that commands and experiments use for them."""

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

# Separates the names of an order: neither a shell nor YAML interprets it, and no domain name
# contains it.
BETWEEN_NAMES = "/"
Groups = Mapping[str, Sequence[str]]


def select_methods(words: Sequence[str], groups: Groups = MappingProxyType({})) -> list[str]:
    """The methods that these names of methods and groups stand for, each once.

    Groups are tailored, naive, ..., adaptation, upper-bound and `all`; `groups` adds further ones.
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
    """The orders of the sources that these words stand for.

    A word is `listed`, `reversed`, `random1`, `random2`, ..., or domain names as in `45/30/0/15`.
    A random order depends on the scenario's seed only.
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
    """The distinct orders that these words stand for, each with one word.

    The word is `listed` or `reversed` if one of them applies, else the first one given.
    """
    usual = ("listed", "reversed")
    orders = select_orders(benchmark, [*usual, *words], target=target, seed=seed)
    named: dict[tuple[str, ...], str] = {}
    for word, order in zip((*usual, *words), orders, strict=True):
        named.setdefault(order, word)
    return {order: named[order] for order in orders[len(usual) :]}


def _random_order(listed: Sequence[str], number: int, seed: int) -> tuple[str, ...]:
    """A random order that differs from listed, reversed and earlier random ones if possible.

    Two words for the same order would count it twice.
    """
    used = {tuple(listed), tuple(listed[::-1])}
    for count in range(1, number + 1):
        if len(used) >= math.factorial(len(listed)):
            used.clear()
        draws = np.random.default_rng(derive(seed, "order", count))
        order = _shuffled(listed, draws)
        while order in used:
            order = _shuffled(listed, draws)
        used.add(order)
    return order


def _shuffled(names: Sequence[str], draws: np.random.Generator) -> tuple[str, ...]:
    return tuple(names[index] for index in draws.permutation(len(names)))
