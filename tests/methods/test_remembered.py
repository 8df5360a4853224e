"""A method declares its state: what it names is saved and restored, whatever it consists of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from attached import small_network
from torch import Tensor, nn
from torch.optim import SGD

from farshore.base.state import load_state, save_state
from farshore.methods.finetune import Finetune
from farshore.testing import differences


class Remembering(Finetune):
    """Keeps one thing of every kind."""

    remembers = ("total", "count", "mean", "critic", "heads", "parts", "by_domain")

    def setup(self) -> None:
        self.total = torch.zeros(2, device=self.device)
        self.count = 0
        self.mean: Tensor | None = None
        self.critic = nn.Linear(self.network.feature_dim, 1)
        self.heads = [nn.Linear(2, 1), nn.Linear(2, 1)]
        self.parts: list[Tensor] = []
        self.by_domain: dict[str, Tensor] = {}
        self.not_saved = torch.zeros(1)

    def learn(self) -> None:
        """Change everything."""
        self.total += 1
        self.count = 3
        self.mean = torch.ones(3)
        for module in (self.critic, *self.heads):
            nn.init.constant_(module.weight, 7)
        self.parts += [torch.arange(2), torch.arange(3)]
        self.by_domain["a"] = torch.ones(4)
        self.not_saved += 1


def made(kind: type[Finetune] = Remembering) -> Any:
    method = kind(kind.Settings.build({}))
    method.attach(
        small_network(), None, torch.Generator(), lambda parameters: SGD(parameters, lr=0.1)
    )
    return method


def test_everything_named_is_restored_from_a_folder(tmp_path: Path) -> None:
    first, second = made(), made()
    first.learn()
    assert differences(first.state_dict(), second.state_dict()) != []
    save_state(tmp_path / "state", first.state_dict(), kind="method")
    critic = second.critic
    second.load_state_dict(load_state(tmp_path / "state", kind="method"))
    assert differences(first.state_dict(), second.state_dict()) == []
    assert list(second.state_dict()) == list(Remembering.remembers)
    assert second.critic is critic
    assert float(second.heads[1].weight.detach().sum()) == 14
    assert second.count == 3
    assert float(second.not_saved) == 0


def test_a_method_that_remembers_nothing_has_no_state() -> None:
    assert made(Finetune).state_dict() == {}


def test_attach_can_still_be_extended() -> None:
    """Packages that were written before `setup`."""

    class Extended(Finetune):
        def attach(self, *parts: Any) -> None:
            super().attach(*parts)
            self.held = self.network.feature_dim

    assert made(Extended).held == small_network().feature_dim
