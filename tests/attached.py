"""Helpers to test methods: attached to a network directly, or trained on a few toy domains."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD

from farshore import Learner
from farshore.data.batch import Batch, Draw
from farshore.invariance.invariance import Priors, Statistic
from farshore.methods import METHODS
from farshore.networks.network import Network


def attached(name: str, network: Network, *, rate: float = 0.1, **settings: Any) -> Any:
    """The method attached to this network, with plain SGD."""
    kind = METHODS.get(name)
    method = kind(kind.Settings.build(settings))
    method.attach(
        network, None, torch.Generator().manual_seed(0), lambda parameters: SGD(parameters, lr=rate)
    )
    return method


def small_network(seed: int = 0, width: int = 4, classes: int = 3, hidden: int = 5) -> Network:
    """Two hidden layers with ReLU and a linear classifier, in float64."""
    torch.manual_seed(seed)
    features = nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
    )
    return Network(features, nn.Linear(hidden, classes)).double()


def rows(count: int, seed: int = 0, width: int = 4, classes: int = 3) -> tuple[Tensor, Tensor]:
    """Random float64 inputs, and labels."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, width, generator=generator, dtype=torch.float64), torch.randint(
        classes, (count,), generator=generator
    )


def replaying(count: int, replayed: int) -> Batch:
    """A batch of `count` current rows, followed by `replayed` rows of one past domain."""
    inputs, labels = rows(count + replayed, seed=3)
    return Batch(inputs, labels, rows=count, domains=torch.tensor([0]), replay_rows=replayed)


def drawing(count: int, **draws: tuple[Tensor, Tensor, dict[str, Tensor]]) -> Batch:
    """A batch of `count` current rows, with named draws (inputs, labels, stored)."""
    inputs, labels = rows(count, seed=3)
    return Batch(
        inputs, labels, rows=count, draws={name: Draw(*draw) for name, draw in draws.items()}
    )


def gradients(network: nn.Module) -> list[Tensor]:
    """The gradient of every parameter."""
    return [
        parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None
    ]


def trained(
    name: str,
    make: Any,
    *,
    domains: int = 3,
    steps: int = 12,
    network: str = "mlp",
    **settings: Any,
) -> Learner:
    """A learner that has learned `domains` toy domains."""
    size = {"width": 8} if network == "cnn" else {"width": 16}
    learner = Learner(
        network=network,
        method=name,
        memory=24,
        settings={"batch_size": 8, **settings},
        network_settings=size,
        preprocess="none",
        seed=5,
    )
    for domain in range(domains):
        inputs, labels = make(domain)
        learner.learn(inputs, labels, domain=f"{domain}", steps=steps)
    return learner


def weights(learner: Learner) -> dict[str, Tensor]:
    """The trained weights."""
    return dict(learner.system.method.network.state_dict())


def priors_by_domain(priors: Priors) -> dict[str, Statistic]:
    """The prior of each domain, as used in a step."""
    stacked = priors.stacked()
    return {
        domain: {name: value[index] for name, value in stacked.items()}
        for index, domain in enumerate(priors.names)
    }
