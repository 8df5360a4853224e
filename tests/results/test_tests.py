"""Ranks and tests over data sets, compared with scipy, scikit-posthocs and worked examples."""

from __future__ import annotations

import math
import warnings
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from scipy import stats

from farshore.errors import FarshoreError
from farshore.results.tests import (
    ALPHA,
    cliques,
    critical_difference,
    friedman,
    holm,
    rank_methods,
    smallest_wilcoxon,
    wilcoxon,
    wilcoxon_holm,
)

TABLES = arrays(
    np.float64,
    some.tuples(some.integers(3, 6), some.integers(2, 8)),
    elements=some.integers(0, 20).map(float),
)


def scikit_posthocs() -> ModuleType:
    """The package, whose import warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("scikit_posthocs")


RANKED = arrays(
    np.float64,
    some.tuples(some.integers(2, 7), some.integers(1, 6)),
    elements=some.integers(0, 9).map(float),
)


def test_worked_ranks() -> None:
    ranks = rank_methods([[3.0, 1.0], [2.0, 1.0], [1.0, 5.0]])
    assert ranks.tolist() == [[1, 2.5], [2, 2.5], [3, 1]]
    assert rank_methods([[3.0], [2.0]], higher_is_better=False).tolist() == [[2], [1]]


@given(RANKED)
def test_ranks_equal_scipys_and_have_a_fixed_sum(table: np.ndarray) -> None:
    ranks = rank_methods(table)
    for dataset in range(table.shape[1]):
        assert ranks[:, dataset].tolist() == stats.rankdata(-table[:, dataset]).tolist()
    assert ranks.mean(axis=1).sum() == pytest.approx(len(table) * (len(table) + 1) / 2)


@given(RANKED)
def test_ranks_depend_only_on_the_order_of_scores(table: np.ndarray) -> None:
    assert (rank_methods(table) == rank_methods(np.exp(table))).all()
    assert (rank_methods(table) == rank_methods(-table, higher_is_better=False)).all()


@pytest.mark.parametrize("scores", [[[1.0, float("nan")]], [1.0, 2.0], [[]]])
def test_invalid_scores_are_refused(scores: list) -> None:
    with pytest.raises(FarshoreError, match="cannot be ranked"):
        rank_methods(scores)


def test_rounding_errors_do_not_decide_ranks() -> None:
    assert rank_methods([[0.1 + 0.2], [0.3]]).tolist() == [[1.5], [1.5]]


@given(TABLES)
def test_friedman_is_demsars_with_a_correction_for_ties(table: np.ndarray) -> None:
    test = friedman(table)
    assert test is not None
    if (table == table[0]).all():
        assert (test.statistic, test.p) == (0, 1)
        return
    methods, count = table.shape
    sums = rank_methods(table).sum(axis=1)
    spread = 12 * ((sums - count * (methods + 1) / 2) ** 2).sum() / (methods * (methods + 1))
    ties = sum(
        (np.unique(column, return_counts=True)[1] ** 3).sum() - methods for column in table.T
    )
    statistic = spread / count / (1 - ties / (count * (methods**3 - methods)))
    assert test.statistic == pytest.approx(statistic, abs=1e-9)
    assert test.p == pytest.approx(stats.chi2.sf(statistic, methods - 1), abs=1e-9)
    if math.isfinite(test.iman_davenport):
        f = (count - 1) * statistic / (count * (methods - 1) - statistic)
        assert test.iman_davenport == pytest.approx(f, rel=1e-6)
        freedom = methods - 1, (methods - 1) * (count - 1)
        assert test.iman_davenport_p == pytest.approx(stats.f.sf(f, *freedom), rel=1e-6)


def test_friedman_at_its_edges() -> None:
    assert friedman([[1.0, 2.0], [2.0, 3.0]]) is None
    assert friedman([[1.0], [2.0], [3.0]]) is None
    same = friedman([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert same is not None
    assert (same.iman_davenport, same.iman_davenport_p) == (math.inf, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_mean_ranks_beyond_the_critical_difference_differ_for_scikit_posthocs(seed: int) -> None:
    posthocs = scikit_posthocs()
    table = np.random.default_rng(seed).normal(size=(5, 9)) + np.arange(5)[:, None] * 0.7
    p_values = posthocs.posthoc_nemenyi_friedman(table.T).to_numpy()
    mean = rank_methods(table).mean(axis=1)
    different = np.abs(mean[:, None] - mean[None, :]) > critical_difference(5, 9)
    assert ((p_values < ALPHA) == different).all()
    assert different.any()
    assert not different.all()


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
    posthocs = scikit_posthocs()
    table = np.random.default_rng(3).normal(size=(4, 8)) + np.arange(4)[:, None]
    reference = posthocs.posthoc_wilcoxon(list(table), p_adjust="holm").to_numpy()
    for pair in wilcoxon_holm(table):
        assert pair.holm == pytest.approx(reference[pair.first, pair.second], abs=1e-9)


def test_the_smallest_possible_p_of_wilcoxon() -> None:
    table = np.arange(3)[:, None] * np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
    assert min(pair.holm for pair in wilcoxon_holm(table)) == pytest.approx(smallest_wilcoxon(6, 3))
    assert smallest_wilcoxon(6, 153) == 1.0
