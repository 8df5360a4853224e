"""Ranks against scipy and worked numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from scipy import stats

from farshore.errors import FarshoreError
from farshore.evaluation.ranks import places, rank_methods

TABLES = arrays(
    np.float64,
    some.tuples(some.integers(2, 7), some.integers(1, 6)),
    elements=some.integers(0, 9).map(float),
)


def test_worked_ranks() -> None:
    found = rank_methods([[3.0, 1.0], [2.0, 1.0], [1.0, 5.0]])
    assert found.by_dataset.tolist() == [[1, 2.5], [2, 2.5], [3, 1]]
    assert found.arithmetic.tolist() == [1.75, 2.25, 2.0]
    assert found.geometric == pytest.approx([2.5**0.5, 5**0.5, 3**0.5])
    assert found.median.tolist() == [1.75, 2.25, 2.0]
    assert rank_methods([[3.0], [2.0]], higher_is_better=False).arithmetic.tolist() == [2, 1]


@given(TABLES)
def test_ranks_are_scipys_and_sum_to_the_same(table: np.ndarray) -> None:
    found = rank_methods(table)
    for place in range(table.shape[1]):
        assert found.by_dataset[:, place].tolist() == stats.rankdata(-table[:, place]).tolist()
    assert found.arithmetic.sum() == pytest.approx(len(table) * (len(table) + 1) / 2)
    assert found.geometric == pytest.approx(stats.gmean(found.by_dataset, axis=1))
    assert (found.geometric <= found.arithmetic + 1e-9).all()


@given(TABLES)
def test_ranks_do_not_look_at_sizes(table: np.ndarray) -> None:
    assert (rank_methods(table).by_dataset == rank_methods(np.exp(table)).by_dataset).all()
    assert (
        rank_methods(table).by_dataset == rank_methods(-table, higher_is_better=False).by_dataset
    ).all()


@pytest.mark.parametrize("wrong", [[[1.0, float("nan")]], [1.0, 2.0], [[]]])
def test_what_cannot_be_ranked_is_refused(wrong: list) -> None:
    with pytest.raises(FarshoreError, match="cannot be ranked"):
        rank_methods(wrong)


def test_places() -> None:
    assert places([5.0, 9.0, 7.0, 6.0]) == [None, 1, 2, 3]
    assert places([29.0, 29.0, 26.3], [2.2, 1.2, 1.2]) == [
        2,
        1,
        3,
    ]  # the paper's TinyImageNetC column
    assert places([1.0, 1.0, 2.0]) == [2, 2, 1]
    assert places([1.0, 2.0], higher_is_better=False) == [1, 2]


def test_digits_of_rounding_decide_nothing() -> None:
    assert rank_methods([[0.1 + 0.2], [0.3]]).arithmetic.tolist() == [1.5, 1.5]
    assert places([0.1 + 0.2, 0.3]) == [1, 1]
