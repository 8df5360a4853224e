"""How many runs share the cores of a machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sweeping import experiment, planned


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({}, 8),
        ({"settings": {"threads": 2}}, 4),
        ({"settings": {"threads": 16}}, 1),
        ({"network": "resnet18", "benchmarks": ["rotated-digits"]}, 1),
    ],
)
def test_runs_with_several_threads_leave_room_for_each_other(
    part: dict, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert planned(experiment(part=part), tmp_path).runs_at_once() == expected
