"""Stress test of the reader of pickled tables: mutated files neither crash nor eat memory."""

from __future__ import annotations

import pytest
from confined import confine

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("seed", range(4))
def test_mutated_pickles_are_refused_or_read(seed: int) -> None:
    confine("mutated_pickles:read_mutated", cases=1000, seed=seed)
