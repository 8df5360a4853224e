"""The verdict: one sentence about who is ahead that is true under the tests, and what backs it.

`verdict_tests` says which tests.

A method whose balanced accuracy is at the level of chance, such as one that predicts one class for
every row, never wins, whatever its accuracy is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..runs.averages import mean
from ..runs.catalog import KINDS
from .contest import BALANCED, Contest, Entrant, Place, average, names_of
from .verdict_tests import NAMED, PairedTests, RankTests


class Outcome(StrEnum):
    """What the tests allow to say."""

    CLEAR = "clear winner"
    TIED = "no clear winner"
    UNTESTED = "too few runs to tell"
    ALONE = "one method"
    NONE = "no usable method"


@dataclass(frozen=True)
class Standing:
    """A method in the order of the verdict.

    rank: its place among the ranked methods; None for those that are never ranked or incomplete.
    together: whether no test separates it from the first.
    constant: whether it is at the level of chance everywhere.
    """

    entrant: Entrant
    mean: float
    rank: int | None = None
    together: bool = False
    constant: bool = False


@dataclass(frozen=True)
class Verdict:
    """The sentence, what backs it, and the methods best first."""

    outcome: Outcome
    sentence: str
    details: tuple[str, ...]
    standings: tuple[Standing, ...]

    @property
    def certain(self) -> bool:
        """Whether there is one winner."""
        return self.outcome is Outcome.CLEAR

    @property
    def leader(self) -> Entrant | None:
        """The first of the ranked methods that is no constant predictor."""
        ranked = [each for each in self.standings if each.rank is not None and not each.constant]
        return ranked[0].entrant if ranked else None


def judge(contest: Contest) -> Verdict:
    """The verdict on a contest."""
    eligible, excluded = _eligible(contest)
    usable = [one for one in eligible if not contest.constant(one)]
    constant = [one for one in eligible if contest.constant(one)]
    if not usable:
        return _none_usable(contest, constant, excluded)
    several = len(contest.datasets) > 1
    tests = (RankTests if several else PairedTests)(contest, _by_mean(contest, usable))
    ordered = tests.ordered
    together = [one for one in ordered[1:] if not tests.ahead(ordered[0], one)]
    outcome = (
        Outcome.ALONE
        if len(ordered) == 1
        else Outcome.UNTESTED
        if not tests.possible
        else Outcome.TIED
        if together
        else Outcome.CLEAR
    )
    sentence = _sentence(contest, tests, outcome, ordered, together)
    sentence = _warning(contest, ordered[0], constant) + sentence
    if not contest.whole:
        sentence += " Not everything that was planned has run yet."
    details = [
        *tests.details(),
        *_by_place(contest, ordered),
        *_worst_of_baseline(contest, ordered),
        *_upper_bound(contest, ordered[0]),
        *_at_chance(contest, eligible),
        *_left_out(excluded),
    ]
    standings = _standings(contest, ordered, together, constant)
    return Verdict(outcome, sentence, tuple(details), standings)


def _eligible(contest: Contest) -> tuple[list[Entrant], list[Entrant]]:
    """The continual methods with a score everywhere and no failed run, and the other ones."""
    continual = [one for one in contest.entrants if one.kind == "continual"]
    places = set().union(*(one.scores for one in continual)) if continual else set()
    whole = [one for one in continual if set(one.scores) == places and not one.without_score]
    return whole, [one for one in continual if one not in whole]


def _by_mean(contest: Contest, entrants: Sequence[Entrant]) -> list[Entrant]:
    """Best mean first; of equal ones, the order of the table."""
    return sorted(entrants, key=lambda one: -(average(contest, one) or 0.0))


def _sentence(
    contest: Contest,
    tests: PairedTests | RankTests,
    outcome: Outcome,
    ordered: Sequence[Entrant],
    together: Sequence[Entrant],
) -> str:
    first, over = ordered[0], tests.over()
    score = f"{average(contest, first) or 0:.1f}%"
    if outcome is Outcome.ALONE:
        return f"{first.label} scores {score} {over}; there is no other method to compare it with."
    if outcome is Outcome.UNTESTED:
        second = ordered[1]
        return (
            f"Too few runs to name a winner {over}: {first.label} scores {score}, {second.label} "
            f"{average(contest, second) or 0:.1f}%, and the difference may be due to chance."
        )
    if outcome is Outcome.CLEAR:
        text = f"{first.label} is the clear winner {over}: {score}, ahead of every other method."
    else:
        text = f"No clear winner {over}: {_listed([first, *together])} are within noise."
    return text + _against_baseline(contest, tests, first, together) + _only_here(tests)


def _against_baseline(
    contest: Contest, tests: PairedTests | RankTests, first: Entrant, together: Sequence[Entrant]
) -> str:
    """Whether those in front are ahead of the baseline on average, or in its worst order."""
    base = next((one for one in tests.ordered if one.key == contest.baseline), None)
    front = [one for one in (first, *together) if one is not base]
    if base is None or base is first or not together:
        return ""
    ahead = [one for one in front if tests.ahead(one, base)]
    if len(ahead) == len(front):
        return f" All of them are ahead of {base.label}."
    if ahead and base not in together:
        return f" {_listed(ahead)} {_are(ahead)} ahead of {base.label}."
    place = _worst_place(contest, base)
    if place is None or isinstance(tests, RankTests):
        return ""
    better = [one for one in front if _better_there(contest, one, base, place)]
    if not better:
        return ""
    return (
        f" But {_where(contest, place)}, {base.label} falls to "
        f"{contest.score(base, place) or 0:.1f}%, where {_listed(better)} {_are(better)} at "
        f"{_span(contest, better, place)}."
    )


def _are(entrants: Sequence[Entrant]) -> str:
    return "is" if len(entrants) == 1 else "are"


def _worst_place(contest: Contest, base: Entrant) -> Place | None:
    scores = {place: contest.score(base, place) for place in base.scores}
    known = {place: score for place, score in scores.items() if score is not None}
    return min(known, key=lambda place: known[place]) if len(known) > 1 else None


def _better_there(contest: Contest, one: Entrant, base: Entrant, place: Place) -> bool:
    """Whether a method beats the baseline at a place with every seed that both have."""
    metric = contest.metric[place.dataset]
    ours, theirs = one.values(metric).get(place, {}), base.values(metric).get(place, {})
    shared = [seed for seed in ours if seed in theirs]
    return bool(shared) and all(ours[seed] > theirs[seed] for seed in shared)


def _span(contest: Contest, entrants: Sequence[Entrant], place: Place) -> str:
    scores = sorted(contest.score(one, place) or 0.0 for one in entrants)
    low, high = f"{scores[0]:.1f}", f"{scores[-1]:.1f}"
    return f"{low}%" if low == high else f"{low} to {high}%"


def _where(contest: Contest, place: Place) -> str:
    """A place in words: only what differs between the places."""
    places = contest.places
    parts = []
    if len({each.dataset for each in places}) > 1:
        parts.append(f"on {place.dataset}")
    if len({each.target for each in places}) > 1:
        parts.append(f"at target {place.target}")
    same = {each.order for each in places if each.target == place.target}
    if len(same) > 1:
        parts.append(f"in the order {place.sources}")
    return " ".join(parts)


def _only_here(tests: PairedTests | RankTests) -> str:
    if isinstance(tests, RankTests) or len(tests.places) > 1:
        return ""
    return " This holds for one order of the sources; another order may change it."


def _warning(contest: Contest, first: Entrant, constant: Sequence[Entrant]) -> str:
    """A sentence in front if a method that has learned nothing has the highest score."""
    best = average(contest, first) or 0.0
    ahead = [one for one in constant if (average(contest, one) or 0.0) >= best]
    if not ahead:
        return ""
    one = max(ahead, key=lambda each: average(contest, each) or 0.0)
    chance = next(iter(contest.facts.values())).chance or 0.0
    balanced = mean([one.at(place, BALANCED) for place in one.scores]) or 0.0
    return (
        f"{one.label} has the highest score ({average(contest, one) or 0:.1f}%) but tells the "
        f"classes apart no better than guessing (balanced accuracy {balanced:.1f}%, chance "
        f"{chance:.1f}%), so it does not count. "
    )


def _none_usable(
    contest: Contest, constant: Sequence[Entrant], excluded: Sequence[Entrant]
) -> Verdict:
    standings = _standings(contest, [], [], constant)
    if constant:
        sentence = (
            "No method has learned anything about the target: the balanced accuracy of "
            f"{_listed(constant)} is at the level of chance."
        )
    elif excluded:
        sentence = f"No method has all its scores; some are missing for {_listed(excluded)}."
    else:
        sentence = "No method that is ranked has run."
    details = (*_at_chance(contest, constant), *_left_out(excluded))
    return Verdict(Outcome.NONE, sentence, details, standings)


def _by_place(contest: Contest, ordered: Sequence[Entrant]) -> list[str]:
    """Which method is best where, if that depends on the order or the target."""
    if len(ordered) < 2 or len(contest.datasets) > 1:
        return []
    places = list(ordered[0].scores)
    best = [max(ordered, key=lambda one: contest.score(one, place) or 0.0) for place in places]
    counts = Counter(one.label for one in best)
    if len(counts) < 2:
        return []
    if len(places) <= 3:
        shown = "; ".join(
            f"{one.label} {_where(contest, place)}" for one, place in zip(best, places, strict=True)
        )
        return [f"Which method scores highest depends on where it is measured: {shown}."]
    shown = ", ".join(f"{label} in {count}" for label, count in counts.most_common(NAMED))
    targets = len({place.target for place in places})
    what = "orders" if targets == 1 else "targets" if targets == len(places) else "places"
    return [f"Highest score: {shown} of {len(places)} {what}."]


def _worst_of_baseline(contest: Contest, ordered: Sequence[Entrant]) -> list[str]:
    """The spread of the baseline over the places."""
    base = next((one for one in ordered if one.key == contest.baseline), None)
    place = _worst_place(contest, base) if base is not None else None
    if base is None or place is None or len(contest.datasets) > 1:
        return []
    scores = [contest.score(base, each) or 0.0 for each in base.scores]
    targets = {each.target for each in base.scores}
    cause = "the order" if len(targets) == 1 else "where it is measured"
    return [
        f"{base.label} scores between {min(scores):.1f} and {max(scores):.1f}%, depending on "
        f"{cause}; worst {_where(contest, place)}."
    ]


def _upper_bound(contest: Contest, first: Entrant) -> list[str]:
    """The gap to training on all sources at once."""
    joint = next((one for one in contest.entrants if one.key == "joint"), None)
    ours = average(contest, first)
    bound = average(contest, joint) if joint is not None else None
    if joint is None or bound is None or ours is None:
        return []
    if {(place.dataset, place.target) for place in joint.scores} != {
        (place.dataset, place.target) for place in first.scores
    }:
        return []
    side = "below" if ours <= bound else "above"
    return [
        f"{first.label} is {abs(ours - bound):.1f} points {side} {joint.label}, which trains on "
        f"all sources at once ({bound:.1f}%)."
    ]


def _at_chance(contest: Contest, entrants: Sequence[Entrant]) -> list[str]:
    """Methods whose balanced accuracy is at the level of chance somewhere."""
    texts = []
    for one in entrants:
        places = contest.at_chance(one)
        if not places:
            continue
        balanced = mean([one.at(place, BALANCED) for place in places]) or 0.0
        share = "" if len(places) == len(one.scores) else f" in {len(places)} of {len(one.scores)}"
        texts.append(f"{one.label}{share}: {balanced:.1f}%")
    if not texts:
        return []
    shown = "; ".join(texts[:NAMED]) + (" and others" if len(texts) > NAMED else "")
    return [f"Balanced accuracy at the level of chance, no better than guessing: {shown}."]


def _left_out(excluded: Sequence[Entrant]) -> list[str]:
    if not excluded:
        return []
    failed = [one for one in excluded if one.without_score]
    texts = [f"Not ranked because some scores are missing: {_listed(excluded)}."]
    if failed:
        texts.append(
            "Runs without a score: "
            + ", ".join(f"{one.label} {one.without_score}" for one in failed)
            + "."
        )
    return texts


def _standings(
    contest: Contest,
    ordered: Sequence[Entrant],
    together: Sequence[Entrant],
    constant: Sequence[Entrant],
) -> tuple[Standing, ...]:
    """Every method with a score: the ranked ones best first, then the others."""
    flat = {one.key for one in constant}
    near = {one.key for one in (*ordered[:1], *together)}
    # By ranks, the order of the tests counts; constant predictors keep the place of their score.
    ranked = [*ordered, *constant]
    if constant:
        ranked = _by_mean(contest, ranked)
    rows = [
        Standing(one, average(contest, one) or 0.0, rank, one.key in near, one.key in flat)
        for rank, one in enumerate(ranked, start=1)
    ]
    ranked_keys = {one.key for one in ranked}
    others = [one for one in contest.entrants if one.key not in ranked_keys and one.scores]
    others = sorted(_by_mean(contest, others), key=lambda one: KINDS.index(one.kind))
    rows += [
        Standing(one, average(contest, one) or 0.0, constant=contest.constant(one))
        for one in others
    ]
    return tuple(rows)


def _listed(entrants: Sequence[Entrant]) -> str:
    if len(entrants) <= NAMED:
        return names_of(entrants)
    more = len(entrants) - NAMED + 1
    return f"{', '.join(one.label for one in entrants[: NAMED - 1])} and {more} more"
