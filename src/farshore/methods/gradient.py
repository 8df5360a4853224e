"""Gradients of parts of a batch or of a domain, for methods that combine gradients instead of
losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..batch import Batch
from ..data.domain import Rows
from ..networks.network import Network
from .method import empirical_risk

LARGE_BATCH = 1024
# (place of the domain in the batch, its logits, its labels) -> losses; the first is kept per
# domain, the others are summed.
Losses = Callable[[int, Tensor, Tensor], list[Tensor]]


def domain_gradients(
    network: Network,
    parameters: Sequence[nn.Parameter],
    batch: Batch,
    losses: Losses,
    *,
    joint: bool,
) -> tuple[Tensor, Tensor | None, list[Tensor]]:
    """(gradients [1 + E, P] of the first loss by domain, summed gradient [P] of the second loss,
    values of both losses).

    `joint`: one forward pass of the whole batch, so that BatchNorm sees all domains; then each
    domain costs a backward pass over all rows. Otherwise each domain has a pass of its own, which
    without BatchNorm gives the same numbers for less; these passes are small, so on a GPU they run
    side by side.
    """
    whole = network(batch.inputs) if joint else None
    inputs, labels = batch.parts(batch.inputs), batch.parts(batch.labels)
    first: list[Tensor] = []
    second: list[Tensor] = []
    values: list[list[Tensor]] = [[], []]

    # A function, so that a domain's graph is gone when the next one's is built: shared nodes would
    # make their streams wait.
    def one(place: int, x: Tensor, y: Tensor) -> None:
        logits = batch.parts(whole)[place] if whole is not None else network(x)
        if place == 0:
            batch.outputs = {"logits": logits.detach()}
        found = losses(place, logits, y)
        more = joint and place + 1 < len(inputs)
        first.append(flat(gradients_of(found[0], parameters, keep=more or len(found) > 1)))
        values[0].append(found[0].detach())
        if len(found) > 1:
            second.append(flat(gradients_of(found[1], parameters, keep=more)))
            values[1].append(found[1].detach())

    with branches(batch.inputs.device, 1 if network.batchnorms() else len(inputs)) as branch:
        for place, (x, y) in enumerate(zip(inputs, labels, strict=True)):
            with branch(place):
                one(place, x, y)
    # Added in order, whatever finished first: the sum has the same bits each time.
    summed = torch.stack(second).sum(dim=0) if second else None
    return (
        torch.stack(first),
        summed,
        [torch.stack(each) if each else torch.empty(0) for each in values],
    )


@contextmanager
def branches(
    device: torch.device, count: int
) -> Iterator[Callable[[int], AbstractContextManager[Any]]]:
    """Parts of a step that do not depend on each other: on a GPU each on a stream of its own,
    joined at the end.
    """
    if device.type != "cuda" or count == 1:
        yield lambda place: nullcontext()
        return
    main = torch.cuda.current_stream(device)
    side = _streams(device, count)
    for stream in side:
        stream.wait_stream(main)
    yield lambda place: torch.cuda.stream(side[place])
    for stream in side:
        main.wait_stream(stream)


@cache
def _streams(device: torch.device, count: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(count)]


def mean_gradient(
    network: Network, parameters: Sequence[nn.Parameter], rows: Rows, order: Tensor, batch_size: int
) -> list[Tensor]:
    """Mean over a domain's batches of the gradient of the mean loss, by the present model.

    Training mode, because that is what the steps see, but without moving BatchNorm's running
    statistics. Without BatchNorm the mean over large batches is the same as over small ones,
    weighted by rows.
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


def write_gradients(parameters: Sequence[nn.Parameter], gradient: Tensor) -> None:
    """Give each parameter its part of one vector [P], laid out in memory as the parameter is:
    fused optimisers rely on that.
    """
    for parameter, part in zip(
        parameters, gradient.split([parameter.numel() for parameter in parameters]), strict=True
    ):
        part = part.view_as(parameter)
        parameter.grad = (
            part if part.stride() == parameter.stride() else torch.empty_like(parameter).copy_(part)
        )


def own_gradient(parameter: nn.Parameter) -> Tensor:
    """The gradient that was written for this parameter; zeros where it took no part."""
    return parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)


def gradients_of(
    loss: Tensor, parameters: Sequence[nn.Parameter], *, keep: bool = False
) -> tuple[Tensor, ...]:
    """The gradient of a loss in each parameter; zeros where one takes no part. `keep`: the graph
    is needed again.
    """
    found = torch.autograd.grad(loss, list(parameters), retain_graph=keep, allow_unused=True)
    return tuple(
        part if part is not None else torch.zeros_like(p)
        for part, p in zip(found, parameters, strict=True)
    )
