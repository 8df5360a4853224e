"""Significance tests, compared with scipy and scikit-posthocs."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from scipy import stats

from farshore.errors import FarshoreError
from farshore.results.ranks import rank_methods
from farshore.results.significance import (
    bootstrap_averages,
    cliques,
    critical_difference,
    friedman,
    holm,
    interval,
    nemenyi,
    smallest_wilcoxon,
    wilcoxon,
    wilcoxon_holm,
)

TABLES = arrays(
    np.float64,
    some.tuples(some.integers(3, 6), some.integers(2, 8)),
    elements=some.integers(0, 20).map(float),
)


@given(TABLES)
def test_friedman_equals_scipys(table: np.ndarray) -> None:
    test = friedman(table)
    assert test is not None
    if (table == table[0]).all():
        assert (test.statistic, test.p) == (0, 1)
        return
    reference = stats.friedmanchisquare(*table)
    assert test.statistic == pytest.approx(reference.statistic, abs=1e-9)
    assert test.p == pytest.approx(reference.pvalue, abs=1e-9)
    count = table.shape[1]
    if math.isfinite(test.iman_davenport):
        rest = count * (len(table) - 1) - reference.statistic
        assert test.iman_davenport == pytest.approx(
            (count - 1) * reference.statistic / rest, rel=1e-6
        )


def test_friedman_at_its_edges() -> None:
    assert friedman([[1.0, 2.0], [2.0, 3.0]]) is None
    assert friedman([[1.0], [2.0], [3.0]]) is None
    same = friedman([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert same is not None
    assert (same.iman_davenport, same.iman_davenport_p) == (math.inf, 0.0)


def test_nemenyi_equals_scikit_posthocs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import scikit_posthocs
    table = np.random.default_rng(0).normal(size=(5, 9)) + np.arange(5)[:, None] * 0.7
    reference = scikit_posthocs.posthoc_nemenyi_friedman(table.T).to_numpy()
    assert nemenyi(table) == pytest.approx(reference, abs=1e-6)


def test_the_critical_difference_is_demsars() -> None:
    # Demšar (2006): q at 0.05 for 2, 5 and 10 methods (Table 5a), and the example of section 3.2.2.
    for methods, q in ((2, 1.960), (5, 2.728), (10, 3.164)):
        assert critical_difference(methods, 6) == pytest.approx(
            q * math.sqrt(methods * (methods + 1) / 36), abs=0.002
        )
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.01)
    assert critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=0.01)
    with pytest.raises(FarshoreError):
        critical_difference(1, 3)


def test_a_pair_at_the_critical_difference_has_probability_alpha() -> None:
    table = np.random.default_rng(1).normal(size=(4, 7))
    mean = rank_methods(table).arithmetic
    p_values = nemenyi(table)
    different = np.abs(mean[:, None] - mean[None, :]) > critical_difference(4, 7)
    assert ((p_values < 0.05) == different).all()


def test_cliques() -> None:
    assert cliques([1.0, 2.0, 3.5, 6.0], 1.6) == [(0, 1), (1, 2)]
    assert cliques([3.0, 1.0, 2.0], 5.0) == [(1, 2, 0)]
    assert cliques([1.0, 9.0], 1.0) == []


@given(
    some.lists(
        some.integers(-999, 999).filter(bool).map(lambda value: value / 100),
        min_size=3,
        max_size=12,
        unique_by=abs,
    )
)
@settings(deadline=None)
def test_wilcoxon_without_ties_equals_scipys_exact_test(differences: list[float]) -> None:
    reference = stats.wilcoxon(differences, method="exact").pvalue
    assert wilcoxon(differences, [0.0] * len(differences)) == pytest.approx(reference, abs=1e-9)


def test_wilcoxon_with_ties_and_with_many() -> None:
    assert wilcoxon([1.0, 2.0], [1.0, 2.0]) == 1.0
    # Three equal differences: 2 of 8 signs.
    assert wilcoxon([1.0, 1.0, 1.0, 5.0], [0.0, 0.0, 0.0, 5.0]) == 0.25
    many = np.random.default_rng(2).normal(0.4, size=30)
    assert wilcoxon(many, np.zeros(30)) == pytest.approx(
        stats.wilcoxon(many, method="asymptotic").pvalue
    )


def test_holm_equals_scikit_posthocs_and_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import scikit_posthocs
    table = np.random.default_rng(3).normal(size=(4, 8)) + np.arange(4)[:, None]
    reference = scikit_posthocs.posthoc_wilcoxon(list(table), p_adjust="holm").to_numpy()
    for pair in wilcoxon_holm(table):
        assert pair.holm == pytest.approx(reference[pair.first, pair.second], abs=1e-9)


def test_the_smallest_possible_p_of_wilcoxon() -> None:
    table = np.arange(3)[:, None] * np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
    assert min(pair.holm for pair in wilcoxon_holm(table)) == pytest.approx(smallest_wilcoxon(6, 3))
    assert smallest_wilcoxon(6, 153) == 1.0


def test_the_bootstrap() -> None:
    values = [[[1.0, 3.0], [10.0, 12.0]], [[5.0], [5.0]]]
    draws = bootstrap_averages(values, np.random.default_rng(0), draws=4000)
    assert draws[:, 0].mean() == pytest.approx(6.5, abs=0.2)
    assert (draws[:, 1] == 5).all()
    assert draws[:, 0].min() == 1.0
    assert draws[:, 0].max() == 12.0
    low, high = interval(draws[:, 0])
    assert 1 <= low < 6.5 < high <= 12
    seeds = bootstrap_averages(values, np.random.default_rng(0), draws=4000, datasets=False)
    assert set(np.unique(seeds[:, 0])) == {5.5, 6.0, 6.5, 7.0, 7.5}
    again = bootstrap_averages(values, np.random.default_rng(0), draws=4000)
    assert (draws == again).all()


def test_the_bootstrap_allows_uneven_seeds_and_refuses_missing_ones() -> None:
    draws = bootstrap_averages(
        [[[1.0, 2.0, 3.0], [7.0]]], np.random.default_rng(0), draws=500, datasets=False
    )
    assert (draws >= 4).all()
    assert (draws <= 5).all()
    with pytest.raises(FarshoreError, match="at least one seed"):
        bootstrap_averages([[[1.0], []]], np.random.default_rng(0))
