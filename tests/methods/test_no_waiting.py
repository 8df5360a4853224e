"""No step waits for the device: nothing in it reads a tensor's value on the host. The battery
checks every method with its defaults; here are settings that choose another path.
"""

from __future__ import annotations

import pytest
import torch

from farshore.testing import Waiting
from farshore.testing.methods import steps_do_not_wait


def test_the_watch_sees() -> None:
    with Waiting() as waiting:
        torch.ones(2).sum().item()
        torch.ones(2)[torch.tensor([True, False])]
        torch.ones(2)[torch.tensor([1, 0])]
    assert waiting.operations == ["_local_scalar_dense", "index"]


VARIANTS = [
    ("lode", {"split": "domain", "weighting": "classes"}),
    ("star", {"ascent_steps": 2}),
    ("star", {"host": "der++"}),
    ("cope", {"reading": "avalanche"}),
    ("efc", {"covariance": "diagonal"}),
    ("cl-mix", {"notions": "vrex+fishr+coral+mmd", "anneal_steps": 0}),
    ("sarl", {"warmup_steps": 1}),
    ("sarl", {"warmup_steps": 0, "semantics": "classes"}),
]


@pytest.mark.parametrize(("method", "settings"), VARIANTS)
def test_steps_do_not_wait(method: str, settings: dict[str, object]) -> None:
    steps_do_not_wait(method, settings=settings)
