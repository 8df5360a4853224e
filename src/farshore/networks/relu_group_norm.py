"""ReLU and GroupNorm of a convolution's output as one operator on a GPU, which a compiler takes as
it is.

PyTorch's GroupNorm copies images with the channels last, and what automatic differentiation makes
of the formula reads them six times; `kernels.py` has the formulas.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

# Whether the compiler of the kernels is installed, which PyTorch brings where it has CUDA. They
# were written for NVIDIA's GPUs.
HAS_KERNELS = find_spec("triton") is not None and torch.version.hip is None


# Compiled code on a disk is found by the operators' names: if what they take or return changes, so
# must the names.
@custom_op("farshore::relu_group_norm", mutates_args=())
def relu_group_norm(
    c: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float, pooled: bool
) -> tuple[Tensor, Tensor]:
    """GroupNorm(relu(c + b)), or its mean over all places; and the facts [N, 4, C] that the
    backward pass needs.
    """
    from . import kernels

    return kernels.forward(_by_channels(c), bias, gamma, beta, groups, eps, pooled)


@custom_op("farshore::relu_group_norm_backward", mutates_args=())
def relu_group_norm_backward(
    gradient: Tensor,
    c: Tensor,
    bias: Tensor,
    gamma: Tensor,
    facts: Tensor,
    groups: int,
    pooled: bool,
) -> tuple[Tensor, Tensor]:
    """dc; db, dγ and dβ [3, C]."""
    from . import kernels

    gradient = gradient.contiguous() if pooled else _by_channels(gradient)
    return kernels.backward(gradient, _by_channels(c), bias, gamma, facts, groups, pooled)


def _by_channels(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)


@relu_group_norm.register_fake
def _(
    c: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float, pooled: bool
) -> tuple[Tensor, Tensor]:
    images, channels = c.shape[:2]
    return gamma.new_empty((images, channels)) if pooled else _like(c), gamma.new_empty(
        (images, 4, channels)
    )


@relu_group_norm_backward.register_fake
def _(
    gradient: Tensor,
    c: Tensor,
    bias: Tensor,
    gamma: Tensor,
    facts: Tensor,
    groups: int,
    pooled: bool,
) -> tuple[Tensor, Tensor]:
    return _like(c), gamma.new_empty((3, c.shape[1]))


def _like(c: Tensor) -> Tensor:
    return torch.empty_like(c, memory_format=torch.channels_last)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    c, bias, gamma, _, ctx.groups, _, ctx.pooled = inputs
    ctx.save_for_backward(c, bias, gamma, output[1])


def _gradients(ctx: Any, gradient: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    dc, sums = relu_group_norm_backward(gradient, *ctx.saved_tensors, ctx.groups, ctx.pooled)
    return dc, *sums, None, None, None


relu_group_norm.register_autograd(_gradients, setup_context=_keep)


def is_whole(channels: int, groups: int) -> bool:
    """Whether a program's blocks come out even: it takes a number of channels, and of channels a
    group, that is a power of two.
    """
    members, rest = divmod(channels, groups)
    return rest == 0 and channels & (channels - 1) == 0 and members & (members - 1) == 0
