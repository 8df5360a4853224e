"""Ranks, compared with scipy and with worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from scipy import stats

from farshore.errors import FarshoreError
from farshore.results.ranks import places, rank_methods

TABLES = arrays(
    np.float64,
    some.tuples(some.integers(2, 7), some.integers(1, 6)),
    elements=some.integers(0, 9).map(float),
)


def test_worked_ranks() -> None:
    ranks = rank_methods([[3.0, 1.0], [2.0, 1.0], [1.0, 5.0]])
    assert ranks.by_dataset.tolist() == [[1, 2.5], [2, 2.5], [3, 1]]
    assert ranks.arithmetic.tolist() == [1.75, 2.25, 2.0]
    assert ranks.geometric == pytest.approx([2.5**0.5, 5**0.5, 3**0.5])
    assert ranks.median.tolist() == [1.75, 2.25, 2.0]
    assert rank_methods([[3.0], [2.0]], higher_is_better=False).arithmetic.tolist() == [2, 1]


@given(TABLES)
def test_ranks_equal_scipys_and_have_a_fixed_sum(table: np.ndarray) -> None:
    ranks = rank_methods(table)
    for dataset in range(table.shape[1]):
        assert ranks.by_dataset[:, dataset].tolist() == stats.rankdata(-table[:, dataset]).tolist()
    assert ranks.arithmetic.sum() == pytest.approx(len(table) * (len(table) + 1) / 2)
    assert ranks.geometric == pytest.approx(stats.gmean(ranks.by_dataset, axis=1))
    assert (ranks.geometric <= ranks.arithmetic + 1e-9).all()


@given(TABLES)
def test_ranks_depend_only_on_the_order_of_scores(table: np.ndarray) -> None:
    assert (rank_methods(table).by_dataset == rank_methods(np.exp(table)).by_dataset).all()
    assert (
        rank_methods(table).by_dataset == rank_methods(-table, higher_is_better=False).by_dataset
    ).all()


@pytest.mark.parametrize("scores", [[[1.0, float("nan")]], [1.0, 2.0], [[]]])
def test_invalid_scores_are_refused(scores: list) -> None:
    with pytest.raises(FarshoreError, match="cannot be ranked"):
        rank_methods(scores)


def test_places() -> None:
    assert places([5.0, 9.0, 7.0, 6.0]) == [None, 1, 2, 3]
    # The paper's TinyImageNetC column.
    assert places([29.0, 29.0, 26.3], [2.2, 1.2, 1.2]) == [2, 1, 3]
    assert places([1.0, 1.0, 2.0]) == [2, 2, 1]
    assert places([1.0, 2.0], higher_is_better=False) == [1, 2]


def test_rounding_errors_do_not_decide_ranks() -> None:
    assert rank_methods([[0.1 + 0.2], [0.3]]).arithmetic.tolist() == [1.5, 1.5]
    assert places([0.1 + 0.2, 0.3]) == [1, 1]
