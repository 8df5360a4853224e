"""The tests behind a verdict: paired ones on one data set, ranks over several.

One data set: two methods are compared pair by pair, with the same target, order and seed. From
three targets on, a target is one observation; else each order of the sources at each target is one;
with two of those, a method must be ahead in both, over seeds; with one, a seed is one observation.
All p-values come from Student's paired test, and Holm's correction covers every comparison that a
verdict can make: the leader with each other method, and each method with the baseline.

Several data sets: a data set is one observation. The Friedman test in Iman and Davenport's form
says whether any method differs, Nemenyi's critical difference which ones (two methods: Wilcoxon).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..results.over_units import FEWEST_UNITS, Difference, Unit, paired_difference
from ..results.ranks import rank_methods
from ..results.significance import critical_difference, friedman, holm, wilcoxon
from .contest import Contest, Entrant, UnitKind, by_unit, unit_kind
from .names import several

ALPHA = 0.05
# How many methods a sentence names.
NAMED = 5
# Scores of one method by unit and run, for one paired comparison.
ByUnit = Mapping[Unit, Mapping[object, float]]


class PairedTests:
    """Paired tests on one data set."""

    def __init__(self, contest: Contest, ordered: Sequence[Entrant]) -> None:
        self.contest = contest
        self.ordered = list(ordered)
        self.metric = next(iter(contest.metric.values()))
        self.places = list(dict.fromkeys(place for one in ordered for place in one.scores))
        self.targets = list(dict.fromkeys(place.target for place in self.places))
        self.unit = unit_kind(contest)
        self._corrected = self._correct(ordered)

    @property
    def possible(self) -> bool:
        """Whether there is anything to test with."""
        return self._corrected is not None

    def ahead(self, first: Entrant, second: Entrant) -> bool:
        """Whether the tests say that the first is better."""
        if self._corrected is None or self._corrected[first.key, second.key] >= ALPHA:
            return False
        difference = self.difference(first, second)
        return difference is not None and difference.mean > 0

    def difference(self, first: Entrant, second: Entrant) -> Difference | None:
        """The paired difference over targets, over orders, or over all seeds."""
        return paired_difference(by_unit(self.contest, first), by_unit(self.contest, second))

    def over(self) -> str:
        """What the comparison is made over, for the sentence."""
        dataset = self.contest.datasets[0]
        seeds = several(self.contest.seeds, "seed")
        if self.unit is UnitKind.TARGET:
            return f"on {dataset} over {len(self.targets)} unseen targets"
        if len(self.targets) > 1:
            orders = len({place.order for place in self.places if place.target == self.targets[0]})
            times = f"{several(orders, 'order')} of the sources each"
            return f"on {dataset} over {len(self.targets)} unseen targets with {times}"
        if len(self.places) > 1:
            return f"on {dataset} over {len(self.places)} orders of the sources"
        return f"on {dataset} in one order of the sources with {seeds}"

    def details(self) -> list[str]:
        """The paired difference of the first two in words."""
        ordered = self.ordered
        if len(ordered) < 2 or (paired := self.difference(ordered[0], ordered[1])) is None:
            return []
        if paired.low is None or paired.high is None:
            return []
        text = (
            f"{ordered[0].label} minus {ordered[1].label}, paired by target, order and seed: "
            f"{_points(paired.mean)} points, 95% interval {_points(paired.low)} to "
            f"{_points(paired.high)}, better in {paired.won} of {several(paired.units, self.unit)}."
        )
        if self.unit is UnitKind.ORDER and len(self.targets) > 1:
            text += " Each order at each target is one observation."
        return [text]

    def _correct(self, ordered: Sequence[Entrant]) -> dict[tuple[str, str], float] | None:
        """Corrected p-values of all comparisons that the sentence can make; None without tests."""
        base = next((one for one in ordered if one.key == self.contest.baseline), None)
        pairs = [(ordered[0], other) for other in ordered[1:]]
        if base is not None and base is not ordered[0]:
            pairs += [(one, base) for one in ordered[1:] if one is not base]
        probabilities = []
        for first, second in pairs:
            p = self._p(first, second)
            if p is None:
                return None
            probabilities.append(p)
        keys = [(first.key, second.key) for first, second in pairs]
        return dict(zip(keys, holm(probabilities), strict=True))

    def _p(self, first: Entrant, second: Entrant) -> float | None:
        if len(self.places) == 2:
            return self._in_both(first, second)
        difference = self.difference(first, second)
        if difference is None or difference.units < FEWEST_UNITS:
            return None
        return difference.p

    def _in_both(self, first: Entrant, second: Entrant) -> float | None:
        """With two places: the larger of their p-values over seeds, 1 if they disagree."""
        probabilities, signs = [], set()
        for place in self.places:
            of_first, of_second = (
                _by_seed(one.values(self.metric)[place]) for one in (first, second)
            )
            difference = paired_difference(of_first, of_second)
            if difference is None or difference.units < FEWEST_UNITS or difference.p is None:
                return None
            probabilities.append(difference.p)
            signs.add(difference.mean > 0)
        return max(probabilities) if len(signs) == 1 else 1.0


class RankTests:
    """Tests on the ranks over several data sets."""

    def __init__(self, contest: Contest, ordered: Sequence[Entrant]) -> None:
        self.contest = contest
        self.datasets = contest.datasets
        table = [[self._score(one, dataset) for dataset in self.datasets] for one in ordered]
        ranks = rank_methods(table).arithmetic if len(ordered) > 1 else [1.0]
        self.ranks = {one.key: float(rank) for one, rank in zip(ordered, ranks, strict=True)}
        # The best mean rank comes first; of equal ones, the best average.
        self.ordered = sorted(ordered, key=lambda one: self.ranks[one.key])
        self.p: float | None = None
        self.critical: float | None = None
        if len(ordered) == 2:
            self.p, self.critical = wilcoxon(*table), 0.0
        elif test := friedman(table):
            self.p = test.iman_davenport_p
            self.critical = critical_difference(len(ordered), len(self.datasets))

    @property
    def possible(self) -> bool:
        """Whether there are enough methods and data sets."""
        return self.p is not None

    def ahead(self, first: Entrant, second: Entrant) -> bool:
        """Whether the tests say that the first is better."""
        if self.p is None or self.critical is None or self.p >= ALPHA:
            return False
        return self.ranks[second.key] - self.ranks[first.key] > self.critical

    def over(self) -> str:
        """What the comparison is made over, for the sentence."""
        return f"over {len(self.datasets)} data sets"

    def details(self) -> list[str]:
        """The best mean ranks in words."""
        ordered = self.ordered
        if len(ordered) < 2:
            return []
        first = ", ".join(f"{one.label} {self.ranks[one.key]:.1f}" for one in ordered[:NAMED])
        needed = (
            f"; the test needs a difference of {self.critical:.1f}"
            if self.critical and self.p is not None and self.p < ALPHA
            else ""
        )
        return [f"Mean ranks over the data sets, 1 is best: {first}{needed}."]

    def _score(self, entrant: Entrant, dataset: str) -> float:
        scores = [
            score
            for place in entrant.scores
            if place.dataset == dataset
            and (score := self.contest.score(entrant, place)) is not None
        ]
        return sum(scores) / len(scores)


def _by_seed(values: Mapping[int, float]) -> ByUnit:
    return {(str(seed),): {seed: value} for seed, value in values.items()}


def _points(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
