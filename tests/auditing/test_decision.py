"""The decision of an audit: against simulated guesses, and each of its outcomes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from farshore.auditing.decision import Readiness, decide, excess, gather
from farshore.results.expectation import expect
from farshore.results.pooled import AllAtOnce
from farshore.results.summary import Unit, difference
from farshore.results.verdict import Recommendation
from farshore.tasks.metrics import METRICS

ACCURACY = METRICS["accuracy"]
SITES = "abcdef"


def table(labels: np.ndarray, answers: np.ndarray, classes: int) -> np.ndarray:
    found = np.zeros((classes, classes))
    np.add.at(found, (labels, answers), 1)
    return found


@pytest.mark.parametrize(
    ("labels", "answers"), [([0, 0, 1, 1, 1], [0, 1, 1, 1, 0]), ([0, 0, 2, 2, 2], [0, 1, 1, 2, 2])]
)
def test_mean_and_variance_are_those_of_all_permutations(
    labels: list[int], answers: list[int]
) -> None:
    """Every way to give these answers to these rows: the mean excess is 0."""
    classes = max(labels) + 1
    own, given = np.array(labels), np.array(answers)
    values = [excess(table(own, np.array(way), classes))[0] for way in permutations(given)]
    assert np.mean(values) == pytest.approx(0, abs=1e-12)
    assert excess(table(own, given, classes))[1] == pytest.approx(np.var(values))


def test_a_perfect_model_and_worked_numbers() -> None:
    """Two rows of each class, all right: balanced accuracy 1, guessing with its answers 1/2."""
    value, variance = excess([[2, 0], [0, 2]])
    assert value == pytest.approx(0.5)
    # Hits of each class are hypergeometric with variance 16 / (16·3) = 1/3; both move together.
    assert variance == pytest.approx((1 / 3) * (1 / 2 + 1 / 2) ** 2 / 4)
    assert excess([[3, 0], [5, 0]])[0] == pytest.approx(0)  # always the same answer
    assert excess([[1, 0], [0, 0]]) == (0.0, 0.0)


def evidence(gain: float, sites: int = 6, rows: int = 100, seed: int = 0):  # type: ignore[no-untyped-def]
    draws = np.random.default_rng(seed)
    tables = {}
    for site in SITES[:sites]:
        labels = draws.integers(0, 2, rows)
        right = draws.random(rows) < 0.5 + gain
        tables[site] = [table(labels, np.where(right, labels, 1 - labels), 2).tolist()]
    return gather(tables)


def decided(gain: float, *, rows: int = 100, spread: float = 0.02, majority: float = 0.5, **more):  # type: ignore[no-untyped-def]
    scores = {site: 0.5 + gain + spread * (number % 2) for number, site in enumerate(SITES)}
    found = expect({site: [score] for site, score in scores.items()}, dict.fromkeys(SITES, rows))
    use = more.get("recommendation", Recommendation("er", "er", "er"))
    return decide(
        ACCURACY, use, scores, majority, evidence(gain, rows=rows), found, more.get("pooled")
    )


def pooled(gap: float, spread: float) -> AllAtOnce:
    places = {("", site, "", "", 0): gap + spread * (k % 2) for k, site in enumerate(SITES)}
    found = difference(places, dict.fromkeys(places, 0.0), Unit.TARGET, ACCURACY)
    assert found is not None
    return AllAtOnce("er", "joint-forest", 0.9, found, 1000)


def test_each_outcome_has_its_reason() -> None:
    ready = decided(0.25)
    assert ready.outcome is Readiness.READY
    assert ready.sentence.startswith("Ready for a pilot with labels: at 6 sites that it never saw")
    none = decided(0.25, recommendation=None)
    assert none.outcome is Readiness.NOT
    assert "no candidate" in none.reason
    assert decided(0.25, majority=0.9).outcome is Readiness.NOT
    assert "most frequent class (90.0%)" in decided(0.25, majority=0.9).reason
    assert decided(0.0, majority=0.1).outcome is Readiness.NOT
    assert decided(0.25, spread=0.6).outcome is Readiness.FEW
    assert "too far apart" in decided(0.25, spread=0.6).reason
    few_rows = decided(0.12, rows=16)
    assert few_rows.outcome in (Readiness.FEW, Readiness.NOT)


@pytest.mark.parametrize(
    ("gap", "spread", "words"),
    [
        (0.1, 0.02, "is certainly better: take it if you may keep the data of all sites"),
        (0.01, 0.4, "joint-forest on all data at once (90.0%) is ahead of it, perhaps by chance"),
        (-0.1, 0.02, "it is ahead of joint-forest"),
        (-0.21, 0.4, "it is level with joint-forest"),
    ],
)
def test_the_ordinary_references_are_named(gap: float, spread: float, words: str) -> None:
    assert words in decided(0.25, pooled=pooled(gap, spread)).sentence


def test_guesses_pass_both_tests_in_at_most_three_of_a_thousand_audits() -> None:
    """Models that guess, with uneven answers; the normal approximation is meant to pass one."""
    draws, ready = np.random.default_rng(3), 0
    for _ in range(1000):
        tables = {}
        for site in SITES[: draws.integers(4, 7)]:
            rows, share = int(draws.integers(20, 60)), draws.random(2)
            labels, answers = (draws.random(rows) < each for each in share)
            tables[site] = [table(labels.astype(int), answers.astype(int), 2).tolist()]
        found = gather(tables)
        assert found is not None
        ready += found.chance <= 0.001 and found.excess.clear
    assert ready <= 3
