"""Averages over runs: the mean and its standard error, as the tables print them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are not None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def standard_error(values: Sequence[float]) -> float | None:
    """Standard deviation (divisor n, as in DomainBed's tables) over √n; None for one value."""
    return float(np.std(values) / np.sqrt(len(values))) if len(values) > 1 else None
