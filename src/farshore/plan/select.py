"""Methods and source orders by the words that commands and experiments use for them."""

from __future__ import annotations

import itertools
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
# An order that each trial of a search draws anew, so that it is selected with the settings.
DRAWN = "drawn"
# `all` names at most this many orders; beyond it, `balanced:k` takes a sample.
MOST_ORDERS = 720
Groups = Mapping[str, Sequence[str]]


def select_methods(words: Sequence[str], groups: Groups = MappingProxyType({})) -> list[str]:
    """The methods that these names of methods and groups stand for, each once.

    Groups are tailored, naive, ..., adaptation, upper-bound and `all`; `groups` adds further ones.
    `all` leaves out methods that learn from tables only: name those.
    """
    names = catalog.names()
    anywhere = [name for name in names if not catalog.find(name).tables_only]
    known: dict[str, list[str]] = {"all": anywhere}
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

    A word is `listed`, `reversed`, `random1`, `random2`, ..., or domain names as in `45/30/0/15`;
    `expand_orders` replaces words for several orders.
    A random order depends on the scenario's seed only.
    """
    target = benchmark.choose_target(target)
    listed = benchmark.listed(target)
    orders: list[tuple[str, ...]] = []
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
                f"unknown order {word!r}: use listed, reversed, random1, random2, ..., all, "
                f"balanced:{len(listed)}, or names as in {names}"
            )
    return orders


def expand_orders(
    benchmark: Benchmark, words: Sequence[str], *, target: str | None, seed: int
) -> list[str]:
    """Replace `all` and `balanced:k` by one word per order; other words stay as they are.

    `all` is every order of the sources. `balanced:k` is k different orders in which each source is
    equally often first, last and at every other place; they depend on the scenario's seed only.
    """
    expanded: list[str] = []
    for word in words:
        if word != "all" and not word.startswith("balanced:"):
            expanded.append(word)
            continue
        listed = benchmark.listed(benchmark.choose_target(target))
        if word == "all":
            orders = _all_orders(listed)
        else:
            orders = _balanced_orders(listed, word.removeprefix("balanced:"), seed)
        expanded += [
            "listed" if order == tuple(listed) else BETWEEN_NAMES.join(order) for order in orders
        ]
    return list(dict.fromkeys(expanded))


def draw_order(
    benchmark: Benchmark, target: str | None, *, search_seed: int, seed: int, trial: int
) -> tuple[str, ...]:
    """The order of one trial of a search; all methods draw the same one."""
    listed = benchmark.listed(benchmark.choose_target(target))
    return _shuffled(listed, np.random.default_rng(derive(search_seed, "drawn order", seed, trial)))


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


def _all_orders(listed: Sequence[str]) -> list[tuple[str, ...]]:
    if math.factorial(len(listed)) > MOST_ORDERS:
        raise FarshoreError(
            f"orders: all is not allowed with {len(listed)} sources, which have "
            f"{math.factorial(len(listed)):,} orders: use balanced:{2 * len(listed)}"
        )
    return list(itertools.permutations(listed))


def _balanced_orders(listed: Sequence[str], text: str, seed: int) -> list[tuple[str, ...]]:
    """All rotations of random orders: in each block, every source is at every place once."""
    count = int(text) if text.isdecimal() else 0
    sources = len(listed)
    if count < 1 or count % sources or count > math.factorial(sources):
        most = min(3 * sources, math.factorial(sources))
        raise FarshoreError(
            f"order 'balanced:{text}' is not allowed: the number must be a multiple of {sources} "
            f"(the number of sources) and at most {math.factorial(sources):,}, for example "
            f"balanced:{most}"
        )
    orders: dict[tuple[str, ...], None] = {}
    draws = np.random.default_rng(derive(seed, "balanced orders"))
    while len(orders) < count:
        order = _shuffled(listed, draws)
        if order not in orders:
            orders |= dict.fromkeys(order[turn:] + order[:turn] for turn in range(sources))
    return list(orders)


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
