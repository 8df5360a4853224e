"""Gradients per domain, for methods that combine gradients instead of losses."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..data.domain import Rows
from ..networks.network import Network
from ..tasks.task import Task

LARGE_BATCH = 1024
# (index of the domain in the batch, its logits, its labels) -> losses; gradients of the first are
# kept per domain, those of the second are summed.
Losses = Callable[[int, Tensor, Tensor], list[Tensor]]


def domain_gradients(
    network: Network,
    parameters: Sequence[nn.Parameter],
    batch: Batch,
    losses: Losses,
    *,
    joint: bool,
) -> tuple[Tensor, Tensor | None, list[Tensor]]:
    """Gradients [1 + E, P] of the first loss per domain, summed gradient [P] of the second, values.

    `joint`: one forward pass of the whole batch, so that BatchNorm sees all domains; then each
    domain needs a backward pass over all rows, and the second losses one in all. Otherwise each
    domain has its own pass, which gives the same numbers without BatchNorm and is cheaper. These
    passes are small, so on a GPU they run concurrently.
    """
    whole = network(batch.inputs) if joint else None
    inputs, labels = batch.parts(batch.inputs), batch.parts(batch.labels)
    count = sum(parameter.numel() for parameter in parameters)
    first = parameters[0].new_empty(len(inputs), count)
    second: list[Tensor] = []
    values: list[list[Tensor]] = [[], []]

    # A function, so that the graph of one domain is freed before the next one is built: shared
    # nodes would make their streams wait.
    def add_domain(index: int, x: Tensor, y: Tensor) -> None:
        logits = batch.parts(whole)[index] if whole is not None else network(x)
        if index == 0:
            batch.outputs = {"logits": logits.detach()}
        risk, *more = losses(index, logits, y)
        keep = bool(more) or (joint and index + 1 < len(inputs))
        flat(gradients_of(risk, parameters, keep=keep), out=first[index])
        values[0].append(risk.detach())
        if more:
            second.append(more[0] if joint else flat(gradients_of(more[0], parameters)))
            values[1].append(more[0].detach())

    with branches(batch.inputs.device, 1 if network.batchnorms() else len(inputs)) as branch:
        for index, (x, y) in enumerate(zip(inputs, labels, strict=True)):
            with branch(index):
                add_domain(index, x, y)
    # Summed in a fixed order, whichever finished first, so that the result is reproducible.
    summed = torch.stack(second).sum(dim=0) if second else None
    if summed is not None and joint:
        summed = flat(gradients_of(summed, parameters))
    stacked = [torch.stack(scalars) if scalars else torch.empty(0) for scalars in values]
    return first, summed, stacked


@contextmanager
def branches(
    device: torch.device, count: int
) -> Iterator[Callable[[int], AbstractContextManager[Any]]]:
    """Run independent parts of a step on a GPU on separate streams, joined at the end."""
    if device.type != "cuda" or count == 1:
        yield lambda index: nullcontext()
        return
    main = torch.cuda.current_stream(device)
    side = _streams(device, count)
    for stream in side:
        stream.wait_stream(main)
    yield lambda index: torch.cuda.stream(side[index])
    for stream in side:
        main.wait_stream(stream)


@cache
def _streams(device: torch.device, count: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(count)]


def mean_gradient(
    network: Network,
    parameters: Sequence[nn.Parameter],
    task: Task,
    rows: Rows,
    order: Tensor,
    batch_size: int,
) -> list[Tensor]:
    """Mean over a domain's batches of the gradient of the mean loss, by the current model.

    The network is in training mode, as in the steps, but BatchNorm's running statistics are not
    updated. Without BatchNorm the mean over large batches, weighted by rows, is the same as over
    small ones.
    """
    size = batch_size if network.batchnorms() else max(batch_size, LARGE_BATCH)
    device = parameters[0].device
    total = [torch.zeros_like(parameter) for parameter in parameters]
    network.train()
    with network.batchnorm("no_update"):
        for inputs, labels in rows.batches(size, order):
            loss = task.risk(network(inputs.to(device)), labels.to(device))
            for sums, part in zip(total, gradients_of(loss, parameters), strict=True):
                sums += part * (len(labels) / len(rows))
    network.eval()
    return total


def trainable(network: nn.Module) -> list[nn.Parameter]:
    """The trainable parameters, in the network's order."""
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def flat(tensors: Iterable[Tensor], out: Tensor | None = None) -> Tensor:
    """Copy all entries of the tensors into one vector, `out` if it is given."""
    return torch.cat([tensor.flatten() for tensor in tensors], out=out)


def write_gradients(parameters: Sequence[nn.Parameter], gradient: Tensor) -> None:
    """Set each parameter's gradient from one vector [P], in the memory layout of the parameter."""
    for parameter, part in zip(
        parameters, gradient.split([parameter.numel() for parameter in parameters]), strict=True
    ):
        part = part.view_as(parameter)
        parameter.grad = (
            part if part.stride() == parameter.stride() else torch.empty_like(parameter).copy_(part)
        )


def own_gradient(parameter: nn.Parameter) -> Tensor:
    """The gradient of this parameter; zeros if it has none."""
    return parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)


def gradients_of(
    loss: Tensor, parameters: Sequence[nn.Parameter], *, keep: bool = False
) -> tuple[Tensor, ...]:
    """The gradient of a loss in each parameter, or zeros; `keep` retains the graph."""
    gradients = torch.autograd.grad(loss, list(parameters), retain_graph=keep, allow_unused=True)
    return tuple(
        gradient if gradient is not None else torch.zeros_like(parameter)
        for gradient, parameter in zip(gradients, parameters, strict=True)
    )
