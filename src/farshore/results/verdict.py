"""The verdict: who is ahead, what backs it, and which method to use; all from one frame of runs.

One data set: the leader is compared with every other method, and every method with the reference,
pair by pair over the units of the ranking, by Student's paired test; Holm's correction covers all
of these comparisons. Several data sets: the Friedman test says whether any method differs, the
Nemenyi test which ones (two methods: Wilcoxon).

A method that tells the classes apart no better than guessing never wins, whatever its score is.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pandas as pd

from ..methods import usual_among
from ..tasks.metrics import BALANCED, at_chance_text, guess_words_of, listed, several
from .data_sets import Significance, compare_data_sets
from .frame import whole
from .pooled import AllAtOnce, beside
from .select import observed, scored
from .summary import (
    FEWEST_UNITS,
    Difference,
    Ranking,
    Standing,
    Unit,
    at_chance,
    choose,
    meaning,
    paired,
    rank,
    scores_of,
    spread,
)
from .tests import ALPHA, holm
from .text import interval, points, score_text

# How many methods a sentence names.
NAMED = 5
UPPER_BOUND = "joint"


class Outcome(StrEnum):
    """What the tests allow to say."""

    CLEAR = "clear winner"
    TIED = "no clear winner"
    UNTESTED = "too few units to tell"
    ALONE = "one method"
    NONE = "no usable method"


@dataclass(frozen=True)
class Recommendation:
    """The row to use, and its method; `reason` says why it is not the leader, if it is not."""

    row: str
    method: str
    leader: str
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The row to use, with the reason."""
        return f"Recommended: {self.row}" + (f"; {self.reason}." if self.reason else ".")


@dataclass(frozen=True)
class Verdict:
    """The sentence, its backing, the ranking, the method to use, and those not told apart.

    pooled: the method to use beside ordinary models that are fitted to all data at once.
    """

    outcome: Outcome
    sentence: str
    details: tuple[str, ...]
    ranking: Ranking
    recommendation: Recommendation | None
    together: tuple[str, ...] = ()
    significance: Significance | None = None
    pooled: AllAtOnce | None = None

    @property
    def leader(self) -> Standing | None:
        """The first of the ranked methods that does better than guessing."""
        return next(iter(self.ranking.usable), None)

    def plain(self) -> dict[str, Any]:
        """The verdict as plain values, for JSON."""
        metric = self.ranking.metric
        return {
            "outcome": str(self.outcome),
            "sentence": self.sentence,
            "details": list(self.details),
            "recommended": self.recommendation.method if self.recommendation else None,
            "metric": metric.name,
            "unit": str(self.ranking.unit),
            "reference": self.ranking.reference,
            "methods": [each.plain() for each in self.ranking.standings],
        }


def judge(frame: pd.DataFrame) -> Verdict:
    """The verdict on the selected runs of a frame."""
    ranking = rank(frame)
    usable = ranking.usable
    if not usable:
        return _none_usable(ranking)
    leader = usable[0]
    tested = compare_data_sets(frame, ranking) if ranking.unit is Unit.DATASET else None
    ahead = _by_pairs(frame, ranking) if tested is None else tested.ahead
    together = [each for each in usable[1:] if not ahead(leader.row, each.row)]
    found = paired(frame, leader.row, usable[1].row) if usable[1:] else None
    enough = found is not None and found.error is not None
    possible = tested.possible if tested is not None else enough
    outcome = Outcome.TIED if together else Outcome.CLEAR
    if len(usable) == 1 or not possible:
        outcome = Outcome.ALONE if len(usable) == 1 else Outcome.UNTESTED
    recommendation = recommend(frame, ranking)
    sentence = _warning(frame, ranking) + _sentence(frame, ranking, outcome, together)
    if outcome is Outcome.TIED:
        sentence += _against_reference(ranking, together, ahead)
    if not whole(frame):
        sentence += " Not everything that was planned has run yet."
    used = recommendation.row if recommendation is not None else leader.row
    pooled = beside(frame, ranking, used)
    # What the intervals do not say, if there are any, and what the scores vary with.
    shown = any(each.estimate is not None and not each.estimate.note for each in ranking.standings)
    details = [
        *([recommendation.sentence] if recommendation is not None else []),
        *([pooled.sentence(ranking.metric)] if pooled is not None else []),
        *([_first_two(ranking, found)] if tested is None and len(usable) > 1 else []),
        *(tested.sentences if tested is not None else ()),
        *_best_by_place(frame, ranking),
        *_upper_bound(ranking, leader),
        *_guessing(frame, ranking),
        *_not_ranked(ranking),
        *(meaning(frame) if shown else ()),
        *spread(frame),
    ]
    near = tuple(each.row for each in (leader, *together)) if possible else ()
    return Verdict(outcome, sentence, tuple(details), ranking, recommendation, near, tested, pooled)


def recommend(
    frame: pd.DataFrame, ranking: Ranking | None = None, usual: str | None = None
) -> Recommendation | None:
    """The method to use, by the rule of `choose`; None if none does better than guessing."""
    ranking = ranking if ranking is not None else rank(frame)
    runs = observed(frame)
    scores = {each.row: scores_of(runs, each.row) for each in ranking.usable}
    if not scores:
        return None
    usual = usual or usual_among(scores, ranking.metric.of_numbers)
    row = choose(scores, ranking.unit, ranking.metric, usual)
    method = next(each.method for each in ranking.usable if each.row == row)
    reason = _why_not(frame, ranking, row, usual)
    return Recommendation(row, method, ranking.usable[0].row, reason)


def _why_not(frame: pd.DataFrame, ranking: Ranking, chosen: str, usual: str) -> str:
    """Why the leader is not recommended; empty if it is."""
    leader = ranking.usable[0].row
    if chosen == leader:
        return ""
    found = paired(frame, leader, usual)
    if found is None:
        return f"{leader} leads the ranking, but shares no run with {usual}, the usual choice"
    if ranking.unit is Unit.DATASET:
        return f"{leader} leads the ranking, but {_doubt(found)}"
    gap = f"{ranking.metric.text(abs(found.mean))} {points(ranking.metric)}"
    return (
        f"{leader} leads the ranking, {gap} ahead of {usual}, the usual choice, but {_doubt(found)}"
    )


def _doubt(found: Difference) -> str:
    units = several(found.units, found.unit)
    if found.low is None:
        return f"there are {found.note} of that difference ({units})"
    return f"the 95% interval of that difference over {units} includes zero"


def legend(ranking: Ranking) -> list[str]:
    """What ± and intervals in a ranking are, over which units and how many of them."""
    shown = [each for each in ranking.standings if each.estimate is not None]
    most = max((each.estimate.units for each in shown if each.estimate), default=0)
    units = several(most, ranking.unit)
    compared = [each for each in shown if each.difference is not None]
    without = [each.row for each in compared if each.difference and each.difference.low is None]
    any_error = any(each.estimate and each.estimate.error is not None for each in shown)
    parts = ["± is the standard error of the mean"] if any_error else []
    if len(without) < len(compared):
        parts.append(f"[ ] is the 95% interval of the paired difference to {ranking.reference}")
    if not parts:
        text = f"No errors or intervals: {units}, and they need at least {FEWEST_UNITS}."
        return [text] if shown else []
    texts = [f"{' and '.join(parts)}, over {units}."]
    if without and len(without) < len(compared):
        texts.append(f"Too few {ranking.unit}s for an interval: {listed(without, NAMED)}.")
    sizes = {each.row: each.estimate.units for each in shown if each.estimate}
    fewer = [f"{row} ({units})" for row, units in sizes.items() if units < most]
    return [*texts, f"Over fewer {ranking.unit}s: {listed(fewer, NAMED)}."] if fewer else texts


# Whether the tests say that the first row is better than the second.
Ahead = Callable[[str, str], bool]


def _by_pairs(frame: pd.DataFrame, ranking: Ranking) -> Ahead:
    """Student's paired tests on one data set, with Holm's correction."""
    first, *others = (each.row for each in ranking.usable)
    pairs, base = [(first, other) for other in others], ranking.reference
    if base in others:
        pairs += [(row, base) for row in others if row != base]
    found = {pair: each for pair in pairs if (each := paired(frame, *pair)) is not None}
    tested = {pair: each.p for pair, each in found.items() if each.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))

    def ahead(first: str, second: str) -> bool:
        return corrected.get((first, second), 1.0) < ALPHA and found[first, second].better

    return ahead


def over(frame: pd.DataFrame, ranking: Ranking) -> str:
    """What the ranking is over, for a sentence."""
    units = max(each.estimate.units for each in ranking.standings if each.estimate is not None)
    if ranking.unit is Unit.DATASET:
        return f"over {several(units, 'data set')}"
    runs = scored(frame)
    data = runs["benchmark"].iloc[0]
    if ranking.unit is Unit.TARGET:
        return f"on {data} over {several(units, 'unseen target')}"
    there = f"on {data} at target {runs['target'].iloc[0]}"
    orders = f"{several(runs['order'].nunique(), 'order')} of the sources"
    if ranking.unit is Unit.LAST_SOURCE:
        return f"{there} over {orders} ({several(units, 'last source')})"
    if ranking.unit is Unit.ORDER:
        return f"{there} over {several(units, 'order')} of the sources"
    return f"{there} in one order with {several(units, 'seed')}"


def _score(ranking: Ranking, each: Standing) -> str:
    return score_text(ranking.metric, each.estimate.mean if each.estimate is not None else None)


def _sentence(
    frame: pd.DataFrame, ranking: Ranking, outcome: Outcome, together: Sequence[Standing]
) -> str:
    first, where = ranking.usable[0], over(frame, ranking)
    name, score = first.row, _score(ranking, first)
    if outcome is Outcome.ALONE:
        return f"{name} scores {score} {where}; there is no other method to compare it with."
    if outcome is Outcome.UNTESTED:
        second = ranking.usable[1]
        scores = f"{name} scores {score}, {second.row} {_score(ranking, second)}"
        return f"Too few {ranking.unit}s to name a winner {where}: {scores}."
    if outcome is Outcome.CLEAR:
        return f"{name} is the clear winner {where}: {score}, ahead of every other method."
    ranks = ranking.unit is Unit.DATASET
    best = "the best mean rank" if ranks else f"the best mean, {score}"
    others = [each.row + ("" if ranks else _behind(ranking, first, each)) for each in together]
    return (
        f"No clear winner {where}: {name} has {best}, but after the correction for the number of "
        f"comparisons no test separates it from {listed(others, NAMED)}."
    )


def _behind(ranking: Ranking, first: Standing, other: Standing) -> str:
    """How far a method is behind the first: not to be told apart is not to be equal."""
    if first.estimate is None or other.estimate is None:
        return ""
    gap = abs(first.estimate.mean - other.estimate.mean)
    return f" ({ranking.metric.text(gap)} {points(ranking.metric)} behind)"


def _against_reference(ranking: Ranking, together: Sequence[Standing], ahead: Ahead) -> str:
    """Which of the methods in front are ahead of the reference."""
    front = [ranking.usable[0], *together]
    base = ranking.reference
    better = [each for each in front if each.row != base and ahead(each.row, base)]
    if not better:
        return ""
    verb = "is" if len(better) == 1 else "are"
    return f" {listed([each.row for each in better], NAMED)} {verb} ahead of {base}."


def _warning(frame: pd.DataFrame, ranking: Ranking) -> str:
    """A sentence in front if a method that does no better than guessing has the best score."""
    first = ranking.ranked[0]
    if not first.guessing:
        return ""
    of_row = observed(frame)
    of_row = of_row[of_row["row"] == first.row]
    level = of_row[BALANCED].where(of_row[BALANCED].notna(), of_row["skill"])
    found = at_chance_text(float(level.astype(float).mean()), int(of_row["classes"].iloc[0]))
    best = f"{first.row} has the best score ({_score(ranking, first)})"
    return f"{best} but {found}, so it does not count. "


def _none_usable(ranking: Ranking) -> Verdict:
    constant = [each.row for each in ranking.ranked]
    lacking = [each.row for each in ranking.standings if each.kind == "continual"]
    sentence = "No method that is ranked has run."
    if constant:
        words = guess_words_of(ranking.metric).learned_nothing
        found = words.format(names=listed(constant, NAMED))
        sentence = f"No method has learned anything about the target: {found}."
    elif lacking:
        sentence = f"No method has all its scores; some are missing for {listed(lacking, NAMED)}."
    return Verdict(Outcome.NONE, sentence, tuple(_not_ranked(ranking)), ranking, None)


def _first_two(ranking: Ranking, found: Difference | None) -> str:
    """The paired difference of the first two in words."""
    first, second = (each.row for each in ranking.usable[:2])
    if found is None:
        return f"{first} and {second} share no target, order and seed."
    units = several(found.units, found.unit)
    return (
        f"{first} minus {second}, paired by target, order and seed: "
        f"{interval(found, ranking.metric)}; better in {found.won} of {units}."
    )


def _best_by_place(frame: pd.DataFrame, ranking: Ranking) -> list[str]:
    """Which method is best where, if that depends on the unit."""
    scores = {each.row: each.estimate.values for each in ranking.usable if each.estimate}
    if len(scores) < 2 or ranking.unit is Unit.SEED:
        return []
    best, better = {}, max if ranking.metric.higher_is_better else min
    for unit in next(iter(scores.values())):
        best[unit] = better(scores, key=lambda row: scores[row][unit])
    counts = Counter(best.values())
    if len(counts) < 2:
        return []
    if len(best) <= 3:
        units = {name: [unit for unit, first in best.items() if first == name] for name in counts}
        shown = "; ".join(f"{name} for {listed(of_name)}" for name, of_name in units.items())
        return [f"Which method scores best depends on the {ranking.unit}: {shown}."]
    shown = ", ".join(f"{name} in {count}" for name, count in counts.most_common(NAMED))
    return [f"Best score: {shown} of {several(len(best), ranking.unit)}."]


def _upper_bound(ranking: Ranking, first: Standing) -> list[str]:
    """The gap to training on all sources at once."""
    joint = ranking.find(UPPER_BOUND)
    if joint is None or not joint.complete or joint.estimate is None or first.estimate is None:
        return []
    gap = first.estimate.mean - joint.estimate.mean
    side = "better" if ranking.metric.better(gap, 0.0) else "worse"
    return [
        f"{first.row} is {ranking.metric.text(abs(gap))} {points(ranking.metric)} {side} than "
        f"{UPPER_BOUND}, which trains on all sources at once ({_score(ranking, joint)})."
    ]


def _guessing(frame: pd.DataFrame, ranking: Ranking) -> list[str]:
    """Methods that do no better than guessing somewhere."""
    texts = []
    for each in ranking.ranked:
        places = at_chance(frame, each.row)
        count = sum(places.values())
        if count:
            share = "" if count == len(places) else f" in {count} of {_places(list(places))}"
            texts.append(f"{each.row}{share}")
    what = guess_words_of(ranking.metric).level
    return [f"{what}: {listed(texts, NAMED)}."] if texts else []


def _places(places: Sequence[tuple[str, str, str]]) -> str:
    """How many places there are, in words; a place is a target of a data set in one order."""
    words = ("data set", "target", "order")
    for word, names in zip(words, zip(*places, strict=True), strict=True):
        if 1 < len(set(names)) < len(places):
            break
        if len(set(names)) == len(places):
            return several(len(places), word)
    return f"{len(places)} pairs of target and order"


def _not_ranked(ranking: Ranking) -> list[str]:
    texts = [
        each.row + (f" ({each.runs} of {each.planned} runs)" if each.runs < each.planned else "")
        for each in ranking.standings
        if each.kind == "continual" and not each.complete
    ]
    what = "Not ranked because some scores are missing"
    return [f"{what}: {listed(texts, NAMED)}."] if texts else []
