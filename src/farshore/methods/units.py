"""Hidden units: record which ones fire, and reset some of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..networks.network import HiddenUnits


@contextmanager
def firing(layers: list[HiddenUnits]) -> Iterator[list[Tensor]]:
    """Record in forward passes which units of each layer fire.

    A unit fires if its pre-activation is positive anywhere in the batch.
    """
    fired = [torch.empty(0)] * len(layers)

    def record(index: int, axis: int, output: Tensor) -> None:
        fired[index] = (output.detach() > 0).movedim(axis, 0).flatten(1).any(dim=1)

    handles = []
    for index, layer in enumerate(layers):
        axis = -1 if isinstance(layer.writer, nn.Linear) else 1
        handles.append(
            layer.preactivation.register_forward_hook(
                lambda m, i, out, index=index, axis=axis: record(index, axis, out)
            )
        )
    try:
        yield fired
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def restart(
    layer: HiddenUnits, units: Tensor, optimizers: Sequence[Optimizer], generator: torch.Generator
) -> None:
    """Reset the units where `units` is true.

    Incoming weights are redrawn as PyTorch initialises them, bias and outgoing weights become 0,
    and a normalisation's entries get their initial values. The optimisers' moments of exactly these
    entries become 0; all other entries stay unchanged. Nothing waits for the device: numbers are
    drawn for all units, and written in place for the selected ones.
    """

    def overwrite(tensor: Tensor | None, entries: Tensor, value: Tensor | float) -> None:
        if tensor is None:
            return
        tensor.copy_(torch.where(entries, value, tensor))
        for optimizer in optimizers:
            for moment in optimizer.state.get(tensor, {}).values():
                if isinstance(moment, Tensor) and moment.shape == tensor.shape:
                    moment.copy_(torch.where(entries, 0.0, moment))

    weight = layer.writer.weight
    bound = 1 / math.sqrt(weight[0].numel())
    fresh = torch.empty_like(weight).uniform_(-bound, bound, generator=generator)
    overwrite(weight, units.view(-1, *[1] * (weight.ndim - 1)), fresh)
    overwrite(layer.writer.bias, units, 0.0)
    for name, value in {
        "weight": 1.0,
        "bias": 0.0,
        "running_mean": 0.0,
        "running_var": 1.0,
    }.items():
        overwrite(getattr(layer.normalisation, name, None), units, value)
    for reader in layer.readers:
        overwrite(reader.weight, outgoing(reader, units), 0.0)


def outgoing(reader: nn.Linear | nn.Conv2d, units: Tensor) -> Tensor:
    """Which entries of a reader's weight belong to these units.

    A linear layer after a flattened map has a block of several columns per channel; a grouped
    convolution numbers its inputs within each group.
    """
    linear = isinstance(reader, nn.Linear)
    inputs, groups = (
        (reader.in_features, 1)
        if isinstance(reader, nn.Linear)
        else (reader.in_channels, reader.groups)
    )
    columns = units.repeat_interleave(inputs // len(units)).view(groups, inputs // groups)
    entries = columns.repeat_interleave(len(reader.weight) // groups, dim=0)
    return entries if linear else entries[:, :, None, None]


def resettable(layer: HiddenUnits) -> bool:
    """Whether units of this layer can be reset.

    The layer must be trained, and its readers and normalisation must see its units separately.
    """
    units = len(layer.writer.weight)
    norm = getattr(layer.normalisation, "weight", None)
    inputs = [
        reader.in_features if isinstance(reader, nn.Linear) else reader.in_channels
        for reader in layer.readers
    ]
    trained = all(module.weight.requires_grad for module in (layer.writer, *layer.readers))
    return (
        trained
        and all(count % units == 0 for count in inputs)
        and (norm is None or len(norm) == units)
    )
