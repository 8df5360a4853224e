"""The confidence sequence of an accuracy: bets are fair, bounds are valid, doubtful rows help."""

from __future__ import annotations

import numpy as np
import pytest

from farshore.results.sequence import GRID, Picks, _bets, bounds, labels_needed


def site(seed: int = 0, rows: int = 400, mean: float = 2.5) -> tuple[np.ndarray, np.ndarray]:
    """Confidences that tell where a model is right, and whether it is."""
    draws = np.random.default_rng(seed)
    shares = 1 / (1 + np.exp(-draws.normal(mean, 1.8, rows)))
    return np.maximum(shares, 0.5), draws.random(rows) < shares


@pytest.mark.parametrize("m", [0.3, 0.8, 0.95])
def test_no_bet_gains_if_the_accuracy_is_the_doubted_one(m: float) -> None:
    """However right answers are divided over the groups, with mean m the capital stays."""
    design = Picks.of(site()[0], 0.8)
    factors, _ = _bets(design.shares, design.chances, design.beliefs[None], m)
    lost, won = factors[0].T
    assert (lost >= 0).all()
    draws = np.random.default_rng(0)
    for _ in range(20):
        accuracy = draws.random(len(lost))
        accuracy *= m / (design.shares @ accuracy)
        grown = design.chances @ (lost + accuracy * (won - lost))
        assert grown == pytest.approx(1, abs=1e-6)
    assert design.chances @ (lost + 0.9 * m * (won - lost)) < 1


def test_bets_are_the_best_of_many() -> None:
    """No other fair bet of a search grows faster under the beliefs."""
    design = Picks.of(site()[0], 0.8, groups=3)
    p, q, f = design.shares, design.chances, design.beliefs
    _, growth = _bets(p, q, f[None], 0.8)
    draws = np.random.default_rng(0)
    for _ in range(3000):
        bet = draws.random() / 0.8
        lost = draws.dirichlet(np.ones(3)) * (1 - bet * 0.8) / q
        other = q @ (f * np.log(lost + bet * p / q) + (1 - f) * np.log(lost))
        assert other <= growth[0] + 1e-4


def test_groups_are_drawn_as_designed() -> None:
    design = Picks.of(site()[0], 0.8)
    rows = design.draw(np.random.default_rng(0), 20000)
    drawn = np.bincount(design.group[rows], minlength=len(design.shares)) / len(rows)
    assert drawn == pytest.approx(design.chances, abs=0.015)
    assert set(rows.tolist()) <= set(range(400))


def test_bounds_hold_at_every_moment() -> None:
    """Also with beliefs that are far too high, or too low."""
    confidence, _ = site()
    wrong = 0
    for power in (1.0, 0.2, 4.0):
        design = Picks.of(confidence**power, 0.8)
        for seed in range(12):
            right = np.random.default_rng(seed).random(400) < confidence
            rows = design.draw(np.random.default_rng([seed, 1]), 120)
            found = bounds(design, rows, right[rows])
            assert (np.diff(found.low) >= 0).all()
            assert (np.diff(found.high) <= 0).all()
            wrong += found.low[-1] > right.mean() or found.high[-1] < right.mean()
    assert wrong <= 4


def test_a_stop_at_any_moment_reads_the_same() -> None:
    confidence, right = site(3)
    design = Picks.of(confidence, 0.8)
    rows = design.draw(np.random.default_rng(0), 120)
    whole, half = bounds(design, rows, right[rows]), bounds(design, rows[:60], right[rows[:60]])
    assert half.low.tolist() == whole.low[:60].tolist()
    assert whole.low[-1] in [0.0, *GRID]


def test_the_number_of_labels_is_about_what_it_takes() -> None:
    confidence, _ = site(5)
    design = Picks.of(confidence, 0.8)
    near, far = labels_needed(design, 0.8), labels_needed(design, 0.6)
    assert far < near
    assert labels_needed(design, 0.99) is None
