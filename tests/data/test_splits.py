from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farshore.data.splits import divide_rows
from farshore.errors import FarshoreError


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=100), st.integers(0, 5))
def test_time_never_looks_ahead(times: list[float], seed: int) -> None:
    array = np.array(times)
    train, validation = divide_rows("a", len(times), seed=seed, times=array)
    assert sorted([*train.tolist(), *validation.tolist()]) == list(range(len(times)))
    assert len(validation) == min(max(1, round(0.2 * len(times))), len(times) - 1)
    assert array[train.numpy()].max() <= array[validation.numpy()].min()


@given(
    st.lists(st.integers(0, 8), min_size=2, max_size=100).filter(lambda g: len(set(g)) > 1),
    st.booleans(),
    st.integers(0, 5),
)
def test_a_group_stays_on_one_side(numbers: list[int], timed: bool, seed: int) -> None:
    groups = np.array([f"patient {number}" for number in numbers], dtype=object)
    times = np.arange(len(groups), dtype=float) if timed else None
    train, validation = divide_rows("a", len(groups), seed=seed, groups=groups, times=times)
    assert len(train) > 0
    assert len(validation) > 0
    assert not set(groups[train.numpy()]) & set(groups[validation.numpy()])


def test_a_group_keeps_its_side_in_later_domains() -> None:
    sides: dict[str, bool] = {}
    first = np.array(["a", "b", "c", "d", "e"] * 4, dtype=object)
    train, validation = divide_rows("one", len(first), seed=0, groups=first, sides=sides)
    later = np.array(["a", "b", "c", "d", "e", "f", "g", "h"] * 3, dtype=object)
    train2, validation2 = divide_rows("two", len(later), seed=1, groups=later, sides=sides)
    assert not set(first[train.numpy()]) & set(later[validation2.numpy()])
    assert not set(first[validation.numpy()]) & set(later[train2.numpy()])
    assert len(validation2) >= 3


def test_the_latest_groups_are_held_out() -> None:
    groups = np.repeat(np.array(["new", "old", "older", "oldest", "first"], dtype=object), 4)
    times = np.repeat([5.0, 4.0, 3.0, 2.0, 1.0], 4)
    _, validation = divide_rows("a", 20, seed=0, groups=groups, times=times)
    assert set(groups[validation.numpy()]) == {"new"}


def test_one_group_cannot_be_divided() -> None:
    with pytest.raises(FarshoreError, match="cannot be divided by group"):
        divide_rows("a", 5, seed=0, groups=np.array(["x"] * 5, dtype=object))


def test_a_seed_decides() -> None:
    same = [divide_rows("a", 50, seed=3)[1].tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert same[0] != divide_rows("a", 50, seed=4)[1].tolist()
