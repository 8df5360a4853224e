"""Methods, targets and source orders by the words that commands and experiments use for them."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ...base.randomness import derive
from ...benchmarks.benchmark import Benchmark
from ...data.scenario import arrange
from ...errors import FarshoreError, unknown
from .. import catalog

# Separates the names of an order: neither a shell nor YAML interprets it, and no domain name
# contains it.
BETWEEN_NAMES = "/"
# An order that each trial of a search draws anew, so that it is selected with the settings.
DRAWN = "drawn"
# As a target: every domain in turn, or those that are named, as in each:75/0.
EACH = "each"
# `all` names at most this many orders; beyond it, `balanced:k` takes a sample.
MOST_ORDERS = 720
Groups = Mapping[str, Sequence[str]]
# Quick methods of different kinds: no replay, replay, an invariant method, a closed form.
USUAL_METHODS = ("finetune", "er", "cl-coral", "ridge", "slda")
# What stands beside the methods in every comparison: the most frequent class, and for tables what
# a user would take who has the rows of all sources at once.
MAJORITY = "majority"
POOLED = ("joint-linear", "joint-forest", "joint-trees")


def fitting(methods: Sequence[str], benchmark: Benchmark) -> list[str]:
    """Those of these methods that fit the labels."""
    numbers = benchmark.has_numbers()
    return [name for name in methods if not (numbers and catalog.find(name).needs_classes)]


def references(benchmark: Benchmark) -> list[str]:
    """The references that belong to these data; images have only the most frequent class."""
    return [MAJORITY, *(POOLED if benchmark.network == "mlp" else ())]


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


@dataclass(frozen=True)
class Aim:
    """The target of some runs, and the domains that they leave out.

    target: its name; None is the usual target of the benchmark.
    in_turn: whether it is one of several targets, because every domain is one in turn.
    in_time: whether, in addition, the sources stay in chronological order.
    """

    target: str | None = None
    left_out: tuple[str, ...] = ()
    in_turn: bool = False
    in_time: bool = False

    @property
    def name(self) -> str:
        """The name of the target in tables of several targets; empty if there is only one."""
        return str(self.target) if self.in_turn else ""


def in_turn(target: str | None) -> bool:
    """Whether this word stands for several targets: `each`, or names as in `each:75/0`."""
    return target is not None and (target == EACH or target.startswith(f"{EACH}:"))


def select_targets(benchmark: Benchmark, target: str | None) -> list[Aim]:
    """The targets that this word stands for: one domain, several in turn, or with `each` all."""
    if not in_turn(target):
        return [Aim(target)]
    possible = benchmark.each_target()
    named = str(target).removeprefix(f"{EACH}:")
    names = list(possible) if target == EACH else named.split(BETWEEN_NAMES)
    for name in names:
        if name not in possible:
            raise unknown("target", name, possible)
    in_time = benchmark.ordered_by_time
    return [Aim(name, possible[name], True, in_time) for name in dict.fromkeys(names)]


def arrange_sources(
    benchmark: Benchmark, words: Sequence[str], aim: Aim, seed: int
) -> dict[str, tuple[str, ...] | None]:
    """The orders of the sources for one target, by word; the listed order is None.

    Words for several orders are expanded, and each order appears once. If every domain is a target
    in turn, an order given by names lists all domains, and the target is taken out of it. Domains
    that are ordered by time keep that order.
    """
    if list(words) != ["listed"] and aim.in_time:
        raise FarshoreError(
            f"orders {', '.join(words)} cannot be used with target each and a time column: a "
            "target is predicted from the domains before it, in chronological order; use listed"
        )
    if list(words) in (["listed"], [DRAWN]):
        return {words[0]: None}
    if aim.in_turn:
        words = [_without_target(benchmark, word, aim) for word in words]
    expanded = expand_orders(benchmark, words, target=aim.target, seed=seed)
    orders = different_orders(benchmark, expanded, target=aim.target, seed=seed)
    return {word: None if word == "listed" else order for order, word in orders.items()}


def _without_target(benchmark: Benchmark, word: str, aim: Aim) -> str:
    if BETWEEN_NAMES not in word:
        return word
    names = word.split(BETWEEN_NAMES)
    if sorted(names) != sorted(benchmark.domain_names()):
        raise FarshoreError(
            f"order {word!r} must name every domain once if each is the target in turn: "
            f"{BETWEEN_NAMES.join(benchmark.domain_names())}"
        )
    return BETWEEN_NAMES.join(name for name in names if name != aim.target)


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
        elif word.startswith("random") and _count(word[6:]) > 0:
            orders.append(_random_order(listed, _count(word[6:]), seed))
        elif BETWEEN_NAMES in word:
            names = word.split(BETWEEN_NAMES)
            orders.append(tuple(arrange([*listed, target], target, names)))
        else:
            turned = BETWEEN_NAMES.join(listed[::-1])
            raise FarshoreError(
                f"unknown order {word!r}: use listed, reversed, random1, random2, ..., all, "
                f"balanced:{len(listed)}, or names as in {turned}"
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
        count = math.factorial(len(listed))
        if word == "all" and count > MOST_ORDERS:
            raise FarshoreError(
                f"orders: all is not allowed with {len(listed)} sources, which have {count:,} "
                f"orders: use balanced:{2 * len(listed)}"
            )
        if word == "all":
            orders = list(itertools.permutations(listed))
        else:
            orders = _balanced_orders(listed, word.removeprefix("balanced:"), seed)
        usual = tuple(listed)
        expanded += ["listed" if of == usual else BETWEEN_NAMES.join(of) for of in orders]
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
    """The distinct orders of these words, each with one: listed, reversed or the first given."""
    usual = ("listed", "reversed")
    orders = select_orders(benchmark, [*usual, *words], target=target, seed=seed)
    named: dict[tuple[str, ...], str] = {}
    for word, order in zip((*usual, *words), orders, strict=True):
        named.setdefault(order, word)
    return {order: named[order] for order in orders[len(usual) :]}


def _count(text: str) -> int:
    """A number that somebody wrote; 0 for anything else, and for more digits than any count has."""
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _balanced_orders(listed: Sequence[str], text: str, seed: int) -> list[tuple[str, ...]]:
    """All rotations of random orders: in each block, every source is at every place once."""
    count, sources = _count(text), len(listed)
    most = min(math.factorial(sources), max(sources, MOST_ORDERS))
    if count < 1 or count % sources or count > most:
        raise FarshoreError(
            f"order 'balanced:{text}' is not allowed: the number must be a multiple of {sources} "
            f"(the number of sources) and at most {most:,}, for example "
            f"balanced:{min(3 * sources, most)}"
        )
    orders: dict[tuple[str, ...], None] = {}
    draws = np.random.default_rng(derive(seed, "balanced orders"))
    while len(orders) < count:
        order = _shuffled(listed, draws)
        if order not in orders:
            orders |= dict.fromkeys(order[turn:] + order[:turn] for turn in range(sources))
    return list(orders)


def _random_order(listed: Sequence[str], number: int, seed: int) -> tuple[str, ...]:
    """A random order, other than listed, reversed and earlier random ones if possible."""
    if number > MOST_ORDERS:
        why = f"order 'random{number}' is not allowed: use random1 to random{MOST_ORDERS}"
        raise FarshoreError(why)
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
