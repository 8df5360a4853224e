"""No step waits for the device: nothing in it reads a tensor's value on the host."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from farshore.learner import Learner
from farshore.methods import continual

# What makes the host wait on a GPU: reading a value, or a result whose size depends on values.
WAITING = (
    "_local_scalar_dense",
    "is_nonzero",
    "nonzero",
    "masked_select",
    "_unique",
    "unique",
    "equal",
)


class Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        by_mask = name.startswith("index") and any(
            part is not None and part.dtype == torch.bool for part in _indices(args)
        )
        if name.startswith(WAITING) or by_mask:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


def _indices(args: Any) -> list[Any]:
    return list(args[1]) if len(args) > 1 and isinstance(args[1], list | tuple) else []


def test_the_watch_sees() -> None:
    with Watch() as watch:
        torch.ones(2).sum().item()
        torch.ones(2)[torch.tensor([True, False])]
        torch.ones(2)[torch.tensor([1, 0])]
    assert watch.found == ["_local_scalar_dense", "index"]


VARIANTS = [
    *((name, {}) for name in continual() if name not in ("lode", "cope", "efc")),
    ("lode", {}),
    ("lode", {"split": "domain", "weighting": "classes"}),
    ("star", {"ascent_steps": 2}),
    ("star", {"host": "der++"}),
    ("cope", {}),
    ("cope", {"reading": "avalanche"}),
    ("efc", {}),
    ("efc", {"covariance": "diagonal"}),
    ("sarl", {"warmup_steps": 1}),
    ("sarl", {"warmup_steps": 0, "semantics": "classes"}),
]


@pytest.mark.parametrize(("method", "settings"), VARIANTS)
def test_steps_do_not_wait(method: str, settings: dict[str, object]) -> None:
    learner = Learner(
        method=method,
        memory=12,
        settings={"batch_size": 8, **settings},
        network_settings={"width": 8},
    )
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(40) % 2
    x = torch.randn(40, 4, generator=generator) + y[:, None]
    learner.learn(x, y, domain="a", steps=3)
    watch = Watch()
    for owner, name in [
        (learner.system.method, "update"),
        (learner.system.method, "after_step"),
        (learner.system.memory, "draw"),
        (learner.system.memory, "observe"),
    ]:
        if hasattr(owner, name):
            setattr(owner, name, watched(getattr(owner, name), watch))
    learner.learn(x + 1, y, domain="b", steps=3)
    assert watch.found == []


def watched(function: Any, watch: Watch) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with watch:
            return function(*args, **kwargs)

    return call
