"""Devices, optimisers, and the check that training stays among the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from .errors import DivergedError, FarshoreError
from .settings import RunSettings


def make_optimizer(
    run: RunSettings, parameters: Iterable[nn.Parameter], *, rate: float, decay: float
) -> Optimizer:
    """The optimiser that the run asks for: fused, one launch for all parameters; on a GPU its
    step can be captured.
    """
    parameters = list(parameters)
    if run.optimizer == "sgd":
        return SGD(parameters, lr=rate, momentum=run.momentum, weight_decay=decay, fused=True)
    capturable = parameters[0].device.type == "cuda"
    return (Adam if run.optimizer == "adam" else AdamW)(
        parameters, lr=rate, weight_decay=decay, fused=True, capturable=capturable
    )


def find_device(name: str) -> torch.device:
    """The device called `name`; an unknown or absent one is refused."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise FarshoreError(f"unknown device {name!r}: try 'cpu', 'cuda' or 'cuda:0'") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise FarshoreError(
            f"device {name!r} is not there: this PyTorch sees no CUDA GPU; try 'cpu'"
        )
    if (
        device.type == "cuda"
        and device.index is not None
        and device.index >= torch.cuda.device_count()
    ):
        raise FarshoreError(
            f"device {name!r} is not there: this machine has {torch.cuda.device_count()} CUDA GPUs"
        )
    if device.type not in ("cpu", "cuda"):
        raise FarshoreError(f"device {name!r} is not supported: try 'cpu' or 'cuda'")
    return device


def reset_optimizers(optimizers: Iterable[Optimizer]) -> None:
    """As if each optimiser were made anew: its moments and counters are dropped."""
    for optimizer in optimizers:
        optimizer.state.clear()


def check_finite(network: nn.Module, domain: str, step: int) -> None:
    """Stop a training that has left the numbers."""
    norms = torch.stack(
        torch._foreach_norm([parameter.detach() for parameter in network.parameters()], 1)
    )
    if not math.isfinite(float(norms.sum())):  # one look at the device for all
        raise DivergedError(
            f"training on domain {domain!r} diverged by step {step + 1}: lower learning_rate or "
            "the penalty's weight"
        )
