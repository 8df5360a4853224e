"""Gradients of parts of a batch or of a domain, for methods that combine gradients instead of losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from ..batch import Batch
from ..data.domain import Rows
from ..networks.network import Network
from .method import empirical_risk

LARGE_BATCH = 1024
# (place of the domain in the batch, its logits, its labels) -> losses; the first is kept per domain, the others are summed.
Losses = Callable[[int, Tensor, Tensor], list[Tensor]]


def domain_gradients(
    network: Network, parameters: Sequence[nn.Parameter], batch: Batch, losses: Losses, *, joint: bool
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """(gradients [1 + E, ...] of the first loss by domain, summed gradients of the second loss, values of both losses).

    `joint`: one forward pass of the whole batch, so that BatchNorm sees all domains; then each domain costs a backward pass over
    all rows. Otherwise each domain has a pass of its own, which without BatchNorm gives the same numbers for less.
    """
    whole = network(batch.inputs) if joint else None
    inputs, labels = batch.parts(batch.inputs), batch.parts(batch.labels)
    first: list[tuple[Tensor, ...]] = []
    second: list[Tensor] | None = None
    values: list[list[Tensor]] = [[], []]
    for place, (x, y) in enumerate(zip(inputs, labels, strict=True)):
        logits = batch.parts(whole)[place] if whole is not None else network(x)
        if place == 0:
            batch.outputs = {"logits": logits.detach()}
        found = losses(place, logits, y)
        more = joint and place + 1 < len(inputs)
        first.append(gradients_of(found[0], parameters, keep=more or len(found) > 1))
        values[0].append(found[0].detach())
        if len(found) > 1:
            extra = gradients_of(found[1], parameters, keep=more)
            second = list(extra) if second is None else [total.add_(part) for total, part in zip(second, extra, strict=True)]
            values[1].append(found[1].detach())
    stacks = [torch.stack(per_parameter) for per_parameter in zip(*first, strict=True)]
    return stacks, second or [], [torch.stack(each) if each else torch.empty(0) for each in values]


def mean_gradient(network: Network, parameters: Sequence[nn.Parameter], rows: Rows, order: Tensor, batch_size: int) -> list[Tensor]:
    """Mean over a domain's batches of the gradient of the mean loss, by the present model.

    Training mode, because that is what the steps see, but without moving BatchNorm's running statistics. Without BatchNorm
    the mean over large batches is the same as over small ones, weighted by rows.
    """
    size = batch_size if network.batchnorms() else max(batch_size, LARGE_BATCH)
    device = parameters[0].device
    total = [torch.zeros_like(parameter) for parameter in parameters]
    network.train()
    with network.batchnorm("no_update"):
        for inputs, labels in rows.batches(size, order):
            loss = empirical_risk(network(inputs.to(device)), labels.to(device))
            for sums, part in zip(total, gradients_of(loss, parameters), strict=True):
                sums += part * (len(labels) / len(rows))
    network.eval()
    return total


def trainable(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that training moves, in the network's order."""
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def flat(tensors: Iterable[Tensor]) -> Tensor:
    """All entries of some tensors in one new vector."""
    return torch.cat([tensor.flatten() for tensor in tensors])


def own_gradient(parameter: nn.Parameter) -> Tensor:
    """The gradient that was written for this parameter; zeros where it took no part."""
    return parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)


def gradients_of(loss: Tensor, parameters: Sequence[nn.Parameter], *, keep: bool = False) -> tuple[Tensor, ...]:
    """The gradient of a loss in each parameter; zeros where one takes no part. `keep`: the graph is needed again."""
    found = torch.autograd.grad(loss, list(parameters), retain_graph=keep, allow_unused=True)
    return tuple(part if part is not None else torch.zeros_like(p) for part, p in zip(found, parameters, strict=True))
