"""What a verdict is made from: the score of every run, by method and by where it was measured.

A place is one data set, one unseen target and one order of the sources. Two methods are compared at
the same place with the same seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..results.over_units import FEWEST_UNITS, Unit
from ..runs.averages import mean
from ..runs.result import Result
from .names import method_group
from .overlay import Overlay

BALANCED = "balanced_accuracy"
# A method whose balanced accuracy covers less than this share of the way from chance to perfect
# has learned next to nothing about the classes.
AT_CHANCE = 0.05


@dataclass(frozen=True)
class Metric:
    """A score on the target for readers: its name, its unit, and which direction is better."""

    name: str
    label: str
    unit: str = "%"
    scale: float = 100.0
    higher_is_better: bool = True

    @property
    def decimals(self) -> int:
        """One decimal for percentages; losses need more."""
        return 1 if self.scale == 100 else 3


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy"),
        Metric(BALANCED, "balanced accuracy"),
        Metric("macro_f1", "macro F1"),
        Metric("auroc", "AUROC"),
        Metric("log_loss", "log loss", "", 1.0, higher_is_better=False),
        Metric("calibration_error", "calibration error", higher_is_better=False),
    )
}


@dataclass(frozen=True, order=True)
class Place:
    """Where a score was measured."""

    dataset: str
    target: str = ""
    order: tuple[str, ...] = ()

    @property
    def sources(self) -> str:
        """The order of the sources for readers."""
        return " → ".join(self.order)


@dataclass(frozen=True)
class Entrant:
    """A method, or a variant of one, with the scores of its runs by place and seed.

    scores: every score of a run by name, in the units of `METRICS`.
    without_score: how many runs ended without a score, for example because they diverged.
    """

    method: str
    label: str
    scores: Mapping[Place, Mapping[int, Mapping[str, float]]]
    variant: str = ""
    group: str = ""
    kind: str = "continual"
    without_score: int = 0

    @property
    def key(self) -> str:
        """A key that is unique in a contest, unlike the label."""
        return f"{self.method} {self.variant}".strip()

    def values(self, metric: str) -> dict[Place, dict[int, float]]:
        """One score of every run that has it, by place and seed."""
        by_place = {
            place: {seed: scores[metric] for seed, scores in runs.items() if metric in scores}
            for place, runs in self.scores.items()
        }
        return {place: runs for place, runs in by_place.items() if runs}

    def at(self, place: Place, metric: str) -> float | None:
        """The mean over seeds at one place."""
        return mean(list(self.values(metric).get(place, {}).values()))


@dataclass(frozen=True)
class Facts:
    """What is known about a data set: chance and majority level need the classes of its targets.

    majority: the share of the most frequent class by target, in percent.
    """

    classes: int = 0
    majority: Mapping[str, float] = field(default_factory=dict)

    @property
    def chance(self) -> float | None:
        """The accuracy of guessing, in percent."""
        return 100 / self.classes if self.classes else None


@dataclass(frozen=True)
class Contest:
    """The methods of a table with the scores of all their runs.

    whole: whether everything that was planned has run.
    metric: the main score of each data set, by its name in the places.
    """

    entrants: tuple[Entrant, ...]
    metric: Mapping[str, str]
    facts: Mapping[str, Facts] = field(default_factory=dict)
    whole: bool = True
    baseline: str = "finetune"
    steps: tuple[int, ...] = ()

    @property
    def places(self) -> list[Place]:
        """Every place with a score, in the order of first appearance."""
        return list(dict.fromkeys(place for one in self.entrants for place in one.scores))

    @property
    def datasets(self) -> list[str]:
        """The data sets."""
        return list(dict.fromkeys(place.dataset for place in self.places))

    @property
    def seeds(self) -> int:
        """The most seeds that any method has at a place."""
        return max((len(runs) for one in self.entrants for runs in one.scores.values()), default=0)

    @property
    def runs(self) -> int:
        """How many runs have a score."""
        return sum(len(runs) for one in self.entrants for runs in one.scores.values())

    def score(self, entrant: Entrant, place: Place) -> float | None:
        """The main score of an entrant at one place, the mean over seeds."""
        return entrant.at(place, self.metric[place.dataset])

    def available(self) -> list[Metric]:
        """The metrics that every run has, the main one first."""
        main = next(iter(self.metric.values()), "accuracy")
        shared = [
            name
            for name in METRICS
            if all(
                name in scores
                for one in self.entrants
                for runs in one.scores.values()
                for scores in runs.values()
            )
        ]
        return [METRICS[name] for name in sorted(shared, key=lambda name: name != main)]

    def at_chance(self, entrant: Entrant) -> list[Place]:
        """The places at which the entrant's balanced accuracy is at the level of chance."""
        return [
            place
            for place in entrant.scores
            if (balanced := entrant.at(place, BALANCED)) is not None
            and (chance := self.facts.get(place.dataset, Facts()).chance) is not None
            and balanced <= chance + AT_CHANCE * (100 - chance)
        ]

    def constant(self, entrant: Entrant) -> bool:
        """Whether the entrant is at the level of chance everywhere: it says nothing about a row."""
        return bool(entrant.scores) and len(self.at_chance(entrant)) == len(entrant.scores)


@dataclass(frozen=True)
class Observed:
    """A run of a contest: its method and variant, the number of its seed, and its result."""

    method: str
    variant: str
    seed: int
    result: Result


def make_contest(
    runs: Iterable[Observed], overlay: Overlay, *, whole: bool = True
) -> Contest | None:
    """The contest of these runs; None if none has a score."""
    scores: dict[tuple[str, str], dict[Place, dict[int, dict[str, float]]]] = {}
    without: dict[tuple[str, str], int] = {}
    metric: dict[str, str] = {}
    classes: dict[str, int] = {}
    majority: dict[str, dict[str, float]] = {}
    steps: dict[int, None] = {}
    for run in runs:
        result, row = run.result, (run.method, run.variant)
        of_row = scores.setdefault(row, {})
        if result.target is None or result.target_score is None:
            without[row] = without.get(row, 0) + 1
            continue
        label = overlay.dataset_label(result.title)
        place = Place(label, result.target.name, tuple(result.sources))
        of_row.setdefault(place, {})[run.seed] = _scaled(result.target.scores)
        metric[label], classes[label] = result.metric, len(result.classes)
        steps[result.steps] = None
        if rows := [sum(row) for row in result.target.confusion]:
            share = 100 * max(rows) / max(sum(rows), 1)
            majority.setdefault(label, {})[result.target.name] = share
    if not metric:
        return None
    entrants = []
    for (method, variant), by_place in scores.items():
        group, kind = method_group(method)
        label = overlay.label(method)
        shown = f"{label} ({variant})" if variant else label
        lacking = without.get((method, variant), 0)
        entrants.append(Entrant(method, shown, by_place, variant, group, kind, lacking))
    facts = {name: Facts(count, majority.get(name, {})) for name, count in classes.items()}
    return Contest(
        tuple(entrants), metric, facts, whole=whole, baseline=overlay.baseline, steps=tuple(steps)
    )


def _scaled(scores: Mapping[str, float | None]) -> dict[str, float]:
    return {
        name: value * METRICS[name].scale
        for name, value in scores.items()
        if name in METRICS and value is not None
    }


def average(contest: Contest, entrant: Entrant, metric: str | None = None) -> float | None:
    """The mean of a score: targets count equally, and data sets do; by default the main one."""
    by_dataset = []
    for dataset in contest.datasets:
        name = metric or contest.metric[dataset]
        targets: dict[str, list[float]] = {}
        for place in entrant.scores:
            if place.dataset == dataset and (score := entrant.at(place, name)) is not None:
                targets.setdefault(place.target, []).append(score)
        by_dataset.append(mean([sum(of) / len(of) for of in targets.values()]))
    return mean(by_dataset)


class UnitKind(StrEnum):
    """What one observation is: the coarsest of these of which there are several."""

    DATASET = "data set"
    TARGET = "target"
    ORDER = "order"
    SEED = "seed"


def unit_kind(contest: Contest) -> UnitKind:
    """What is compared pair by pair.

    From three targets on, a target is one observation; with fewer, each order of the sources at
    each target is one; with a single order, a seed is.
    """
    continual = [one for one in contest.entrants if one.kind == "continual"]
    places = {place for one in continual or contest.entrants for place in one.scores}
    if len({place.dataset for place in places}) > 1:
        return UnitKind.DATASET
    if len({place.target for place in places}) >= FEWEST_UNITS:
        return UnitKind.TARGET
    return UnitKind.ORDER if len(places) > 1 else UnitKind.SEED


def by_unit(
    contest: Contest, entrant: Entrant, metric: str | None = None
) -> dict[Unit, dict[Any, float]]:
    """The scores of an entrant by unit and run; without a metric, the main one of each data set."""
    kind = unit_kind(contest)
    scores: dict[Unit, dict[Any, float]] = {}
    for place in entrant.scores:
        values = entrant.values(metric or contest.metric[place.dataset]).get(place, {})
        for seed, value in values.items():
            if kind is UnitKind.DATASET:
                scores.setdefault((place.dataset,), {})[place.target, place.order, seed] = value
            elif kind is UnitKind.TARGET:
                scores.setdefault((place.target,), {})[place.order, seed] = value
            elif kind is UnitKind.ORDER:
                scores.setdefault((place.target, *place.order), {})[seed] = value
            else:
                scores.setdefault((str(seed),), {})[seed] = value
    return scores


def names_of(entrants: Sequence[Entrant]) -> str:
    """The labels of entrants as a list in a sentence: `A, B and C`."""
    labels = [one.label for one in entrants]
    return f"{', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else "".join(labels)
