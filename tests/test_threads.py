"""The number of CPU threads belongs to the run, so that every command gives equal numbers."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn

import farshore
from farshore.training.execution.execution import ONE_THREAD_PARAMETERS, cpu_threads, usual_threads


class Threads(farshore.Observer):
    """Notes how many threads PyTorch uses during training."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def step(self, domain, step, terms) -> None:
        self.seen.add(torch.get_num_threads())


@pytest.mark.parametrize(("settings", "expected"), [({}, 1), ({"threads": 3}, 3)])
def test_training_runs_on_the_runs_threads_whatever_the_process_uses(
    settings: dict[str, object], expected: int
) -> None:
    run = farshore.Run(benchmark="heart-hospitals", method="er", steps=2, settings=settings)
    weights = set()
    for outside in (1, 2):
        with cpu_threads(outside):
            watch = Threads()
            result = farshore.execute(run, observer=watch)
            assert watch.seen == {expected}
            assert torch.get_num_threads() == outside
        assert result.target is not None
        weights.add(result.target.weights)
    assert len(weights) == 1


def test_a_large_network_uses_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    small, large = nn.Linear(10, 10), nn.Linear(ONE_THREAD_PARAMETERS, 1)
    assert (usual_threads(small), usual_threads(large)) == (1, 6)
