"""A second, slow implementation of everything that a ranking shows, in plain Python.

It shares no code with farshore.results, so that a test can compare the two. Runs are plain records;
every mean is a weighted sum of runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVELS = ("dataset", "target", "last", "order", "seed")
# Student's t for 95%, by degrees of freedom.
STUDENT = {2: 4.302652729911275, 3: 3.182446305284263, 4: 2.776445105197798, 5: 2.570581836614739}
NAMES = ("data set", "target", "last source", "order", "seed")


@dataclass(frozen=True)
class Made:
    """A planned run: where it is measured, and its score, a fraction; None if it has none."""

    method: str
    kind: str
    dataset: str
    target: str
    sources: tuple[str, ...]
    seed: int
    score: float | None
    balanced: float = 1.0
    classes: int = 2

    @property
    def last(self) -> str:
        return self.sources[-1]

    @property
    def order(self) -> str:
        return " ".join(self.sources)


def path(run: Made) -> tuple:
    return tuple(getattr(run, level) for level in LEVELS)


def level_of(runs: Sequence[Made]) -> int:
    """The coarsest level of which the continual methods have several; at worst the seed."""
    runs = [run for run in runs if run.score is not None]
    own = [run for run in runs if run.kind == "continual"] or runs
    for level in range(4):
        if len({path(run)[level] for run in own}) > 1:
            return level
    return 4


def weighted_mean(values: dict[tuple, float], level: int) -> float:
    """Every unit counts once, in it every target, in that every last source, and so on."""
    unit_first = {(place[level], *place[:level], *place[level + 1 :]): place for place in values}
    total = 0.0
    for place, original in unit_first.items():
        weight = 1.0
        for depth in range(5):
            beside = {other[depth] for other in unit_first if other[:depth] == place[:depth]}
            weight /= len(beside)
        total += weight * values[original]
    return total


def by_unit(values: dict[tuple, float], level: int) -> dict[str, float]:
    units = {place[level] for place in values}
    return {
        str(unit): weighted_mean(
            {place: value for place, value in values.items() if place[level] == unit}, level
        )
        for unit in units
    }


def shares(values: dict[tuple, float]) -> dict[str, float]:
    """What is left of the variance inside groups falls from level to level: by how much of all."""

    def inside(depth: int) -> float:
        groups = [place[:depth] for place in values]
        parts = ([values[place] for place in values if place[:depth] == each] for each in groups)
        return sum(statistics.pvariance(part) for part in parts) / len(groups)

    found = {}
    for depth, name in enumerate(NAMES, start=1):
        groups, coarser = ({place[:each] for place in values} for each in (depth, depth - 1))
        if len(groups) > len(coarser) and inside(0) > 1e-18:
            found[name] = (inside(depth - 1) - inside(depth)) / inside(0)
    return found


@dataclass(frozen=True)
class Shown:
    """A mean over units, with error and interval if there are at least three units."""

    mean: float
    error: float | None
    low: float | None
    high: float | None
    units: int
    worst: float
    best: float
    won: int = 0

    @property
    def certain(self) -> bool:
        return self.low is not None and (self.low > 1e-9 or self.high < -1e-9)


def shown(
    values: dict[tuple, float], level: int, limits: tuple[float, float], span: float
) -> Shown | None:
    if not values:
        return None
    of_units = list(by_unit(values, level).values())
    mean = weighted_mean(values, level)
    error = low = high = None
    if len(of_units) >= 3:
        error = statistics.stdev(of_units) / math.sqrt(len(of_units))
        half = STUDENT[len(of_units) - 1] * error
        if half < span:
            low, high = max(limits[0], mean - half), min(limits[1], mean + half)
    won = sum(value > 1e-9 for value in of_units)
    return Shown(mean, error, low, high, len(of_units), min(of_units), max(of_units), won)


@dataclass(frozen=True)
class Row:
    """What is shown of one method."""

    rank: int | None
    mean: Shown | None
    difference: Shown | None
    guessing: bool


@dataclass(frozen=True)
class Answer:
    """The whole ranking, and the method to use."""

    unit: str
    reference: str
    rows: dict[str, Row]
    recommended: str
    leader: str


def answer(
    runs: Sequence[Made], usual: str = "er", limits: tuple[float, float] = (0.0, 1.0)
) -> Answer:
    """Rank the methods of these runs; a higher score is better, and none is outside the limits."""
    span = limits[1] - limits[0]
    level = level_of(runs)
    methods = list(dict.fromkeys(run.method for run in runs))
    kinds = {run.method: run.kind for run in runs}
    scores = {
        method: {path(run): run.score for run in runs if run.method == method and has_score(run)}
        for method in methods
    }
    ranks = ranked(runs, scores, level)
    reference = next((name for name in ("er", "finetune") if name in ranks), "")
    reference = reference or min(ranks, key=lambda name: ranks[name], default="")
    means = {method: shown(scores[method], level, limits, span) for method in methods}
    guesses = {method: guesses_everywhere(runs, method) for method in methods}
    rows = {
        method: Row(
            ranks.get(method),
            means[method],
            difference(scores, kinds, method, reference, level, span)
            if reference and method != reference
            else None,
            guesses[method],
        )
        for method in methods
    }
    overall = {name: -round(weighted_mean(scores[name], level), 9) for name in ranks}
    usable = sorted(
        (name for name in ranks if not guesses[name]), key=lambda name: (ranks[name], overall[name])
    )
    recommended = usual if usual in usable else next(iter(usable), "")
    if usual in usable:
        for name in usable[: usable.index(usual)]:
            found = difference(scores, kinds, name, usual, level, span)
            if found is not None and found.certain and found.mean > 0:
                recommended = name
                break
    return Answer(NAMES[level], reference, rows, recommended, next(iter(usable), ""))


def has_score(run: Made) -> bool:
    return run.score is not None


def ranked(runs: Sequence[Made], scores: dict[str, dict], level: int) -> dict[str, int]:
    """The rank of every continual method without a gap."""
    continual = {run.method for run in runs if run.kind == "continual" and scores[run.method]}
    places = {place for name in continual for place in scores[name]}
    whole = [
        name
        for name in scores
        if name in continual
        and not any(
            run.method == name and run.score is None and path(run) in places for run in runs
        )
        and {place[:4] for place in scores[name]} == {place[:4] for place in places}
    ]
    keys = {name: -weighted_mean(scores[name], level) for name in whole}
    if level == 0 and len(whole) > 1:
        keys = {}
        for name in whole:
            total = 0.0
            ours = by_unit(scores[name], 0)
            for dataset, value in ours.items():
                others = [by_unit(scores[other], 0)[dataset] for other in whole if other != name]
                ahead = sum(other - value > 1e-9 for other in others)
                ties = sum(abs(other - value) <= 1e-9 for other in others)
                total += 1 + ahead + ties / 2
            keys[name] = total / len(ours)
    return {name: 1 + sum(keys[other] < keys[name] - 1e-9 for other in whole) for name in whole}


def difference(
    scores: dict[str, dict], kinds: dict[str, str], first: str, second: str, level: int, span: float
) -> Shown | None:
    """Pairs of runs at the same target, in the same order, with the same seed.

    A method that learns all sources at once is paired with every order.
    """
    pairs = {}
    for ours, our_score in scores[first].items():
        for theirs, their_score in scores[second].items():
            if kinds[first] == "offline" or kinds[second] == "offline":
                same = (ours[0], ours[1], ours[4]) == (theirs[0], theirs[1], theirs[4])
                place = theirs if kinds[first] == "offline" else ours
            else:
                same, place = ours == theirs, ours
            if same:
                pairs.setdefault(place, []).append(our_score - their_score)
    values = {place: sum(values) / len(values) for place, values in pairs.items()}
    return shown(values, level, (-span, span), span)


def guesses_everywhere(runs: Sequence[Made], method: str) -> bool:
    """Whether its balanced accuracy is at the level of chance at every target in every order."""
    places: dict[tuple, list[Made]] = {}
    for run in runs:
        if run.method == method and run.score is not None:
            places.setdefault((run.dataset, run.target, run.order), []).append(run)
    for of_place in places.values():
        chance = 1 / of_place[0].classes
        balanced = statistics.fmean(run.balanced for run in of_place)
        if balanced > chance + 0.05 * (1 - chance):
            return False
    return bool(places)
