"""Means and standard errors."""

from __future__ import annotations

import pytest

from farshore.runs.averages import mean, standard_error


def test_mean_ignores_none() -> None:
    assert mean([1.0, None, 2.0]) == 1.5
    assert mean([None]) is None


def test_standard_error_is_computed_as_in_domainbeds_tables() -> None:
    assert standard_error([70, 72, 77]) == pytest.approx(1.70, abs=0.005)
    assert standard_error([70]) is None
