"""What a comparison shows, in a few sentences made from its numbers: the end of the demo."""

from __future__ import annotations

from ..results.over_units import Difference, paired_difference
from .contest import Contest, Entrant, average, by_unit
from .verdict import Verdict

REPLAY, UPPER_BOUND, NAIVE = "er", "joint", "naive-"


def closing(contest: Contest, verdict: Verdict) -> list[str]:
    """Sentences about fine-tuning, the method in front, plain replay, and naive forms."""
    by_key = {one.key: one for one in contest.entrants if one.scores}
    leader = verdict.leader
    texts = _spread(contest, by_key.get(contest.baseline))
    if leader is None:
        return texts
    texts += _front(contest, leader, by_key.get(contest.baseline), by_key.get(UPPER_BOUND))
    texts += _against_replay(contest, leader, by_key.get(REPLAY))
    for key, one in by_key.items():
        if f"{NAIVE}{key}" in by_key:
            texts += _against_naive(contest, one, by_key[f"{NAIVE}{key}"])
    return texts


def _range(contest: Contest, one: Entrant, target: str) -> tuple[float, float]:
    scores = [contest.score(one, place) or 0.0 for place in one.scores if place.target == target]
    return min(scores), max(scores)


def _targets(one: Entrant) -> list[str]:
    return list(dict.fromkeys(place.target for place in one.scores))


def _spread(contest: Contest, base: Entrant | None) -> list[str]:
    """How much the baseline depends on the order."""
    if base is None:
        return []
    target = max(_targets(base), key=lambda name: _width(_range(contest, base, name)))
    low, high = _range(contest, base, target)
    if high - low < 1:
        return []
    return [
        f"{base.label} scores between {low:.0f} and {high:.0f}% at target {target}, depending on "
        "an order that you cannot choose."
    ]


def _front(
    contest: Contest, leader: Entrant, base: Entrant | None, bound: Entrant | None
) -> list[str]:
    """The range of the method in front where the baseline's is widest, and the gap to the bound."""
    texts = []
    if base is not None and base is not leader:
        target = max(_targets(base), key=lambda name: _width(_range(contest, base, name)))
        low, high = _range(contest, leader, target)
        texts.append(f"{leader.label} scores {low:.0f} to {high:.0f}% there.")
    ours = average(contest, leader)
    if bound is not None and ours is not None and (level := average(contest, bound)) is not None:
        side = "below" if ours < level else "above"
        texts.append(
            f"On average, {leader.label} is {abs(ours - level):.1f} points {side} training on all "
            f"sources at once ({level:.1f}%)."
        )
    return texts


def _against_replay(contest: Contest, leader: Entrant, replay: Entrant | None) -> list[str]:
    if replay is None or replay is leader:
        return []
    paired = paired_difference(by_unit(contest, leader), by_unit(contest, replay))
    if paired is None:
        return []
    if paired.certain and paired.mean > 0:
        return [
            f"Compared with plain replay ({replay.label}) alone, {leader.label} is "
            f"{paired.mean:.1f} points ahead{_interval(paired)}."
        ]
    return [
        f"Plain replay ({replay.label}) does as well here: {leader.label} minus {replay.label} is "
        f"{paired.mean:+.1f} points{_interval(paired)}."
    ]


def _against_naive(contest: Contest, tailored: Entrant, naive: Entrant) -> list[str]:
    paired = paired_difference(by_unit(contest, tailored), by_unit(contest, naive))
    if paired is None:
        return []
    return [
        f"{tailored.label} minus {naive.label}, its form without replay: {paired.mean:+.1f} "
        f"points{_interval(paired)}, better in {paired.won} of {paired.units}."
    ]


def _interval(paired: Difference) -> str:
    if paired.low is None or paired.high is None:
        return ""
    return f" (95% interval {paired.low:+.1f} to {paired.high:+.1f})"


def _width(pair: tuple[float, float]) -> float:
    return pair[1] - pair[0]
