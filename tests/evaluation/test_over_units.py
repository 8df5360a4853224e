from __future__ import annotations

import math

import pytest

from farshore.results.over_units import over_units, paired_difference

FIRST = {("a", "b"): {0: 0.9, 1: 0.7}, ("b", "a"): {0: 0.5}, ("c",): {0: 0.6, 1: 0.8}}
SECOND = {("a", "b"): {0: 0.6, 1: 0.6, 2: 0.0}, ("b", "a"): {0: 0.6}, ("c",): {1: 0.5}}


def test_each_order_counts_once() -> None:
    summary = over_units(FIRST)
    assert summary is not None
    assert (summary.units, summary.runs) == (3, 5)
    assert summary.mean == pytest.approx((0.8 + 0.5 + 0.7) / 3)
    assert (summary.worst, summary.worst_unit, summary.best) == (
        0.5,
        ("b", "a"),
        pytest.approx(0.8),
    )
    # The means of the orders are 0.8, 0.5 and 0.7: deviation sqrt(0.07 / 3), over sqrt(3).
    assert summary.error == pytest.approx(math.sqrt(0.07 / 3) / math.sqrt(3))


def test_differences_are_paired_by_order_and_seed() -> None:
    difference = paired_difference(FIRST, SECOND)
    assert difference is not None
    # (0.3 + 0.1) / 2, -0.1, 0.3: seeds that only one method has do not count.
    assert difference.mean == pytest.approx((0.2 - 0.1 + 0.3) / 3)
    assert (difference.units, difference.pairs, difference.won) == (3, 4, 2)
    deviation = math.sqrt(((0.2 - 0.4 / 3) ** 2 + (-0.1 - 0.4 / 3) ** 2 + (0.3 - 0.4 / 3) ** 2) / 2)
    half = 4.302652729911275 * deviation / math.sqrt(3)  # Student's t for 95% and 2 degrees
    assert difference.low == pytest.approx(0.4 / 3 - half)
    assert difference.high == pytest.approx(0.4 / 3 + half)
    assert not difference.certain
    swapped = paired_difference(SECOND, FIRST)
    assert swapped is not None
    assert (swapped.mean, swapped.won) == (pytest.approx(-difference.mean), 1)


def test_one_order_has_no_interval_and_no_pair_no_difference() -> None:
    single = paired_difference({("a",): {0: 1.0}}, {("a",): {0: 0.5}})
    assert single is not None
    assert (single.mean, single.error, single.low, single.certain) == (0.5, None, None, False)
    assert paired_difference({("a",): {0: 1.0}}, {("a",): {1: 0.5}}) is None
    assert over_units({}) is None
