"""Predictor: frozen features, a random projection if there is one, and the linear head."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from ...networks.network import Network
from .head import Head

# A class that was never seen gets a logit this far below the lowest of the others.
UNSEEN = 10.0


# Larger images are averaged over squares: products of all pairs of pixels would take gigabytes.
MOST_PIXELS = 1024


class FlatInputs(nn.Module):
    """The inputs as features: columns, or pixels averaged over squares of this `side`."""

    def __init__(self, prepare: nn.Module, side: int = 1) -> None:
        super().__init__()
        self.prepare = prepare
        self.side = side

    def forward(self, inputs: Tensor) -> Tensor:
        """The inputs of each row as one vector."""
        prepared: Tensor = self.prepare(inputs).float()
        if self.side > 1:
            prepared = avg_pool2d(prepared, self.side, ceil_mode=True, count_include_pad=False)
        return prepared.flatten(1)


def squares(shape: Sequence[int]) -> tuple[int, int]:
    """The side of the squares for inputs of this shape, and the number of values that remain."""
    if len(shape) < 3:
        return 1, math.prod(shape)
    channels, height, width = shape
    side = 1
    while (remain := channels * -(-height // side) * -(-width // side)) > MOST_PIXELS:
        if side >= max(height, width):
            break
        side += 1
    return side, remain


class NoFeatures(nn.Module):
    """One feature that is always 0, for a head that does not look at the inputs."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Zeros, [n, 1]."""
        return torch.zeros_like(inputs.flatten(1)[:, :1], dtype=torch.float32)


class NetworkFeatures(nn.Module):
    """The features of a network, without its classifier."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        """f(x)."""
        return self.network.extract(inputs).flatten(1).float()


class Predictor(nn.Module):
    """From inputs to logits: what is frozen, measured and exported."""

    projection: Tensor
    weight: Tensor
    bias: Tensor
    seen: Tensor

    def __init__(self, base: nn.Module, projection: Tensor | None, width: int, classes: int):
        super().__init__()
        self.base = base
        self.projects = projection is not None
        self.register_buffer("projection", projection)
        self.register_buffer("weight", torch.zeros(width, classes))
        self.register_buffer("bias", torch.zeros(classes))
        self.register_buffer("seen", torch.zeros(classes, dtype=torch.bool))

    def extract(self, inputs: Tensor) -> Tensor:
        """h(x): what is summed and what the head reads."""
        features: Tensor = self.base(inputs)
        return (features @ self.projection).relu() if self.projects else features

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits [n, classes]."""
        logits = self.extract(inputs) @ self.weight + self.bias
        lowest = logits.amin(dim=1, keepdim=True) - UNSEEN
        return torch.where(self.seen, logits, lowest)

    def install(self, head: Head, seen: Tensor) -> None:
        """Use another head from now on."""
        self.weight.copy_(head.weight)
        self.bias.copy_(head.bias)
        self.seen.copy_(seen)
