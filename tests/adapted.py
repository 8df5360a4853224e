"""Helpers to test adaptations directly: small source models and target inputs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from farshore.adaptation import ADAPTATIONS
from farshore.data.inputs import Inputs
from farshore.networks.build import build_network
from farshore.networks.network import ImageInputs, Network


def source_model(kind: str, seed: int = 0) -> Network:
    """A network with random weights; `kind` of normalisation: group, batch, layer or none."""
    torch.manual_seed(seed)
    if kind == "group":
        network = build_network("cnn", (1, 8, 8), 3, {"width": 8})
    elif kind == "batch":
        layers = [
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        ]
        network = Network(nn.Sequential(*layers), nn.Linear(32, 3), inputs=ImageInputs())
        network.batchnorms()[0].running_mean.fill_(0.1)
    elif kind == "layer":
        network = Network(
            nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.ReLU()), nn.Linear(6, 3)
        )
    else:
        network = build_network("mlp", (4,), 3, {"width": 8})
    for parameter in network.classifier.parameters():  # so that predictions differ between rows
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(seed))
    return network.eval().requires_grad_(False)


def target_inputs(kind: str, rows: int = 30, seed: int = 5) -> Tensor:
    """Random rows with the shape that the `source_model` of this kind expects."""
    generator = torch.Generator().manual_seed(seed)
    if kind in ("group", "batch"):
        return torch.randint(0, 256, (rows, 1, 8, 8), generator=generator).to(torch.uint8)
    return torch.randn(rows, 4, generator=generator)


def adapt(
    name: str, network: Network, inputs: Tensor, seed: int = 0, **settings: Any
) -> tuple[Tensor, Network, Any]:
    """Adapt a copy of the network; return logits, the copy and the adaptation."""
    kind = ADAPTATIONS.get(name)
    adaptation = kind(kind.Settings.build(settings))
    copy = deepcopy(network)
    logits = adaptation.adapt(copy, Inputs(inputs), torch.Generator().manual_seed(seed))
    return logits, copy, adaptation


def changed(before: nn.Module, after: nn.Module) -> set[str]:
    """Names of the parameters and buffers that differ."""
    old, new = before.state_dict(), after.state_dict()
    return {name for name in old if not torch.equal(old[name], new[name])}
