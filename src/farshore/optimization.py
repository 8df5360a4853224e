"""Devices, optimisers, and a check for diverged training."""

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
    """Create the run's optimiser, fused over all parameters; on a GPU its step can be captured."""
    parameters = list(parameters)
    if run.optimizer == "sgd":
        return SGD(parameters, lr=rate, momentum=run.momentum, weight_decay=decay, fused=True)
    capturable = parameters[0].device.type == "cuda"
    return (Adam if run.optimizer == "adam" else AdamW)(
        parameters, lr=rate, weight_decay=decay, fused=True, capturable=capturable
    )


def find_device(name: str) -> torch.device:
    """Return the device called `name`; raise an error if it is unknown or not available."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise FarshoreError(f"unknown device {name!r}: try 'cpu', 'cuda' or 'cuda:0'") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise FarshoreError(
            f"device {name!r} is not available: this PyTorch sees no CUDA GPU; try 'cpu'"
        )
    if (
        device.type == "cuda"
        and device.index is not None
        and device.index >= torch.cuda.device_count()
    ):
        raise FarshoreError(
            f"device {name!r} is not available: this machine has {torch.cuda.device_count()} "
            "CUDA GPUs"
        )
    if device.type not in ("cpu", "cuda"):
        raise FarshoreError(f"device {name!r} is not supported: try 'cpu' or 'cuda'")
    return device


def reset_optimizers(optimizers: Iterable[Optimizer]) -> None:
    """Drop the moments and counters of each optimiser, as if it had just been created."""
    for optimizer in optimizers:
        optimizer.state.clear()


def check_finite(network: nn.Module, domain: str, step: int) -> None:
    """Raise DivergedError if a parameter is no longer finite."""
    norms = torch.stack(
        torch._foreach_norm([parameter.detach() for parameter in network.parameters()], 1)
    )
    if not math.isfinite(float(norms.sum())):  # one device synchronisation for all parameters
        raise DivergedError(
            f"training on domain {domain!r} diverged by step {step + 1}: lower learning_rate or "
            "the penalty's weight"
        )
