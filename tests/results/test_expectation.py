"""What to expect at the next site: against worked numbers, slower computations and made sites."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from farshore.results.expectation import (
    POSITIVE,
    SHARE,
    Basis,
    Expectation,
    atlas,
    expect,
    expect_here,
    fewest_for,
    posterior,
    quantiles,
    row_sets,
)

TABLES = (0.2, 0.3, 0.5, 0.7)


def test_the_posterior_is_that_of_direct_integration() -> None:
    """Over μ, on a wide grid, and over τ: the density of the next y, by two nested sums."""
    y, errors, here = np.array([0.4, 0.9, 1.6]), np.array([0.2, 0.1, 0.3]), 0.25
    logs = np.log(TABLES)
    width = max(logs.std(ddof=1) * math.sqrt(1.25), math.log(2))
    prior = stats.t(3, logs.mean(), width)
    taus, mus = np.geomspace(0.01, 5.0, 400), np.linspace(-15, 15, 1500)
    total = np.sqrt(taus[:, None] ** 2 + errors**2)
    likelihood = stats.norm.pdf(y, mus[:, None, None], total).prod(axis=2)  # [μ, τ]
    weights = likelihood * prior.pdf(np.log(taus))
    below = stats.norm.cdf((2.0 - mus[:, None]) / np.sqrt(taus**2 + here**2))
    found = posterior(y, errors, here, spreads=TABLES)
    expected = float((weights * below).sum() / weights.sum())
    assert found.below(2.0) == pytest.approx(expected, abs=2e-3)
    assert found.below(found.quantile(0.95)) == pytest.approx(0.95, abs=1e-6)
    mean = integrate.quad(lambda v: 1 - found.below(math.log(v / (1 - v))), 1e-9, 1 - 1e-9)[0]
    assert found.mean_share() == pytest.approx(mean, abs=1e-4)


def test_a_known_centre_is_not_estimated() -> None:
    found = posterior(np.array([1.0, 1.0, 1.0]), np.full(3, 0.1), 0.0, TABLES, centred=True)
    assert found.quantile(0.5) == pytest.approx(0, abs=1e-6)
    assert found.below(1.0) < 0.9  # all three were 1 away


def test_wide_atlases_and_far_sites_widen_the_interval() -> None:
    near = {site: [value] for site, value in zip("abc", (0.70, 0.72, 0.71), strict=True)}
    far = {site: [value] for site, value in zip("abc", (0.50, 0.72, 0.90), strict=True)}
    rows = dict.fromkeys("abc", 200)
    usual, other = expect(near, rows, spreads=TABLES), expect(far, rows, spreads=TABLES)
    assert isinstance(usual, Expectation)
    assert other.width > usual.width
    assert expect(near, rows, spreads=[5 * each for each in TABLES]).width > usual.width
    assert expect(near, dict.fromkeys("abc", 20), spreads=TABLES).width > usual.width
    assert usual.basis is Basis.MODEL
    assert 0 < usual.low < usual.mean < usual.high < 1
    shaky = {site: [value - 0.1, value + 0.1] for site, (value,) in near.items()}
    assert expect(shaky, rows, spreads=TABLES).width > usual.width
    assert expect({"a": [0.5], "b": [0.6]}, rows) is None


def test_from_nine_sites_on_a_site_is_outside_with_the_stated_probability() -> None:
    """Whatever the distribution: here a skew one. 9 of 10 exchangeable sites are inside."""
    assert fewest_for(0.9) == 9
    assert [fewest_for(level) for level in (0.5, 0.8, 0.95)] == [1, 4, 19]
    draws, inside = np.random.default_rng(0), []
    for _ in range(300):
        scores = np.append(0.95 - 0.3 * draws.beta(0.5, 2, size=9), 0.0)
        scores[-1] = 0.95 - 0.3 * draws.beta(0.5, 2)
        rows = {str(n): 10**6 for n in range(10)}
        found = expect({str(n): [float(v)] for n, v in enumerate(scores[:9])}, rows)
        assert found.basis is Basis.EXCHANGEABLE
        inside.append(found.low <= scores[-1] <= found.high)
    assert 0.86 <= np.mean(inside) <= 0.945


def test_the_conformal_interval_is_that_of_trying_every_score() -> None:
    scores = np.array([0.6, 0.72, 0.75, 0.7, 0.77, 0.74, 0.71, 0.8, 0.73])
    found = expect({str(n): [v] for n, v in enumerate(scores)}, {str(n): 500 for n in range(9)})

    def outside(new: float) -> bool:
        y = np.log(np.append(scores, new) / (1 - np.append(scores, new)))
        away = np.abs(y - y.mean())
        return bool(away[-1] > away[:-1].max() + 1e-9)

    tried = np.linspace(0.01, 0.99, 981)
    kept = [new for new in tried if not outside(new)]
    assert found.low == pytest.approx(min(kept), abs=0.004)
    assert found.high == pytest.approx(max(kept), abs=0.004)


def test_what_is_seen_moves_the_expectation_halfway() -> None:
    scores, rows = np.array([0.7, 0.8, 0.75, 0.85]), np.full(5, 300.0)
    seen = np.array([0.72, 0.79, 0.74, 0.86, 0.9])
    found = expect_here(scores, rows, seen, spreads=TABLES)
    assert found.mean == pytest.approx((0.775 + 0.9) / 2)
    blind = expect_here(scores, rows, np.array([0.9, 0.5, 0.95, 0.6, 0.9]), spreads=TABLES)
    assert blind.width > found.width
    assert expect_here(scores[:2], rows[:3], seen[:3]) is None
    many = np.tile(scores, 3)
    further = expect_here(many, np.full(13, 300.0), np.append(np.tile(seen[:4], 3), 0.8))
    assert further.basis is Basis.EXCHANGEABLE
    assert further.low < further.mean < further.high


def test_errors_of_a_regression_are_on_a_scale_of_their_own() -> None:
    errors = {site: [value] for site, value in zip("abcd", (4.0, 5.0, 6.0, 4.5), strict=True)}
    found = expect(errors, dict.fromkeys("abcd", 100), scale=POSITIVE, spreads=TABLES)
    assert 1 < found.low < 4.875 < found.high < 15
    ten = {str(n): [float(n + 3)] for n in range(10)}
    found = expect(ten, {str(n): 100 for n in range(10)}, scale=POSITIVE)
    assert found.low <= 3.2
    assert found.high >= 11.5


def test_sets_of_rows_cover_a_new_site() -> None:
    """Sites whose scores are shifted: on average, the level of the rows is covered."""
    draws = np.random.default_rng(1)

    def scores() -> np.ndarray:
        return np.clip(draws.beta(1, 4, size=400) * np.exp(draws.normal(0, 0.3)), 0, 1)

    for sites, basis in ((4, Basis.MODEL), (19, Basis.EXCHANGEABLE)):
        covered = []
        for _ in range(16 if sites == 4 else 8):
            found = row_sets([quantiles(scores()) for _ in range(sites)], [400] * sites)
            assert found.basis is basis
            covered.append(float((scores() <= found.most).mean()))
        assert 0.87 <= np.mean(covered) <= 0.97, basis
    assert row_sets([quantiles(scores())] * 2, [400, 400]) is None


def test_quantiles_are_no_smaller_than_they_are() -> None:
    scores = np.random.default_rng(0).random(57)
    found = quantiles(scores)
    assert found == sorted(found)
    assert found[-1] == scores.max()
    assert (scores <= found[6]).mean() >= 0.9


def test_the_atlas_is_a_table_of_public_data() -> None:
    for task in ("classification", "regression"):
        for of in ("spread", "rows"):
            assert len(atlas(task, of)) >= 5
            assert all(0.01 <= spread <= 3 for spread in atlas(task, of))
    assert SHARE.back(SHARE.to(np.array(0.3), np.array(100.0))) == pytest.approx(0.3)


def test_errors_and_rows_have_spreads_of_their_own() -> None:
    """Accuracies, errors of numbers, and shares of rows: each has its column and task."""
    scores, rows = {"a": [0.5], "b": [0.55], "c": [0.6]}, dict.fromkeys("abc", 200)
    for scale, own, other in (
        (SHARE, "classification", "regression"),
        (POSITIVE, "regression", "classification"),
    ):
        found = expect(scores, rows, scale=scale)
        assert found == expect(scores, rows, scale=scale, spreads=atlas(own))
        assert found != expect(scores, rows, scale=scale, spreads=atlas(other))
    sites = [quantiles(np.linspace(0, end, 200)) for end in (1.0, 1.2, 1.5)]
    for task in ("classification", "regression"):
        sets = row_sets(sites, [200] * 3, task)
        assert sets == row_sets(sites, [200] * 3, spreads=atlas(task, "rows"))
        assert sets != row_sets(sites, [200] * 3, spreads=atlas(task))
