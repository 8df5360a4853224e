"""Dividing a network into a part that stays as it is and a part that is trained; frozen copies."""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import torch
from torch import Tensor, nn

from ..errors import FarshoreError
from .network import Network

Train = Literal["head", "last-block", "all"]
# What is trained as the last block has at least the first share of the parameters where blocks are
# uneven, and at most the second.
LEAST_SHARE, MOST_SHARE = 0.1, 0.85


class Frozen(nn.Module):
    """The part of a network that stays as it is, from raw inputs to what the rest reads."""

    def __init__(self, inputs: nn.Module, features: nn.Module) -> None:
        super().__init__()
        self.inputs = inputs
        self.features = features
        self.requires_grad_(False)
        self.train(False)

    def forward(self, inputs: Tensor) -> Tensor:
        """What the trained part gets."""
        return self.features(self.inputs(inputs)).float()

    def train(self, mode: bool = True) -> "Frozen":
        """Stay in evaluation mode: stored statistics, no dropout."""
        super().train(False)
        return self


@dataclass(frozen=True)
class Parts:
    """A frozen part, None if there is none that can run on its own, and the network after it."""

    frozen: Frozen | None
    rest: Network


def divide(network: Network, train: Train, *, augmented: bool = False) -> Parts:
    """Divide a network; with `augmented` images and `last-block`, nothing can run just once."""
    if train == "all":
        return Parts(None, network)
    if train == "head":
        frozen = Frozen(network.inputs, network.features)
        return Parts(frozen, Network(nn.Identity(), network.classifier))
    stages = network.stages()
    if stages is None:
        freeze_all_but_last(network)
        return Parts(None, network)
    before, last = stages
    if augmented:
        freeze(before, lambda parameter: True)
        _mark(before.modules())
        return Parts(None, network)
    return Parts(Frozen(network.inputs, before), type(network)(last, network.classifier))


def freeze(module: nn.Module, chosen: Callable[[Tensor], bool]) -> None:
    """Turn the chosen parameters into buffers: optimisers and penalties do not see them."""
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            if chosen(parameter):
                del part._parameters[name]
                part.register_buffer(name, parameter.detach())


def freeze_all_but_last(network: Network) -> None:
    """Freeze every parameter of the features that comes ahead of the last block's first one."""
    block = last_block(network.features)
    first = next(block.parameters())
    ahead: set[int] = set()
    for parameter in network.features.parameters():
        if parameter is first:
            break
        ahead.add(id(parameter))
    freeze(network.features, lambda parameter: id(parameter) in ahead)
    modules = list(network.features.modules())
    earlier = modules[: modules.index(block)]
    _mark(module for module in earlier if all(part is not block for part in module.modules()))


def _mark(modules: Iterable[nn.Module]) -> None:
    """Keep these layers in evaluation mode: stored statistics, no dropout."""
    for module in modules:
        module.frozen = True  # type: ignore[assignment]


def last_block(features: nn.Module) -> nn.Module:
    """The last large part of a network that is not nearly all of it.

    Parts are entered as long as they hold most of the parameters: a wrapper, an encoder, its list
    of layers. For a ResNet this ends at the last stage, for a transformer at the last layer.
    """
    whole, part = _size(features), features
    while True:
        parts = [child for child in part.children() if _size(child)]
        if not parts:
            raise FarshoreError(
                "train = 'last-block' is not allowed: no blocks are found in this network; use "
                "head or all"
            )
        largest = max(map(_size, parts))
        part = [child for child in parts if _size(child) >= LEAST_SHARE * largest][-1]
        if _size(part) <= MOST_SHARE * whole:
            return part


def _size(module: nn.Module) -> int:
    return sum(value.numel() for value in module.parameters())


def uneven_cut(blocks: nn.Sequential) -> int:
    """Where to divide a chain of blocks: the last ones with a tenth of all parameters."""
    sizes = [_size(block) for block in blocks]
    cut = len(sizes) - 1
    while cut > 1 and sum(sizes[cut:]) < LEAST_SHARE * sum(sizes):
        cut -= 1
    return cut


def frozen_shape(frozen: Frozen, shape: tuple[int, ...], dtype: torch.dtype) -> tuple[int, ...]:
    """The shape of what the rest gets, without computing it."""
    tensors = chain(frozen.parameters(), frozen.buffers())
    device = next((value.device for value in tensors), torch.device("cpu"))
    with torch.inference_mode():
        return tuple(frozen(torch.zeros(1, *shape, dtype=dtype, device=device)).shape[1:])


def frozen_copy(network: Network, state: Mapping[str, Tensor] | None = None) -> Network:
    """Copy the network, in evaluation mode and without gradients; `state` replaces its weights."""
    copied = copy.deepcopy(network)
    if state is not None:
        copied.load_state_dict(state)
    copied.zero_grad(set_to_none=True)
    return copied.eval().requires_grad_(False)
