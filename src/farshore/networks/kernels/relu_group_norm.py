"""ReLU and GroupNorm of a convolution's output as one operator on a GPU.

The compiler treats it as a single operator. PyTorch's GroupNorm copies images with the channels
last, and automatic differentiation of the formula reads them six times. The formulas are in
`kernels.py`.
"""

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

# Whether Triton, which compiles the kernels, is installed. It comes with CUDA builds of PyTorch.
# The kernels were written for NVIDIA GPUs.
HAS_KERNELS = find_spec("triton") is not None and torch.version.hip is None


# Compiled code is cached on disk under the operators' names: if their arguments or results change,
# the names must change too.
@custom_op("farshore::relu_group_norm", mutates_args=())
def relu_group_norm(
    c: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float, pooled: bool
) -> tuple[Tensor, Tensor]:
    """GroupNorm(relu(c + b)) or its mean, and the statistics [N, 4, C] for the backward pass."""
    from . import kernels

    return kernels.forward(_channels_last(c), bias, gamma, beta, groups, eps, pooled)


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

    gradient = gradient.contiguous() if pooled else _channels_last(gradient)
    return kernels.backward(gradient, (_channels_last(c), bias, gamma, facts), groups, pooled)


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)


@relu_group_norm.register_fake
def _(
    c: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float, pooled: bool
) -> tuple[Tensor, Tensor]:
    images, channels = c.shape[:2]
    out = gamma.new_empty((images, channels)) if pooled else _like(c)
    return out, gamma.new_empty((images, 4, channels))


@relu_group_norm_backward.register_fake
def _(
    gradient: Tensor, c: Tensor, bias: Tensor, gamma: Tensor, *others: Any
) -> tuple[Tensor, Tensor]:
    return _like(c), gamma.new_empty((3, c.shape[1]))


def _like(c: Tensor) -> Tensor:
    return torch.empty_like(c, memory_format=torch.channels_last)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    c, bias, gamma, _, ctx.groups, _, ctx.pooled = inputs
    ctx.save_for_backward(c, bias, gamma, output[1])


def _gradients(ctx: Any, gradient: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    dc, sums = relu_group_norm_backward(gradient, *ctx.saved_tensors, ctx.groups, ctx.pooled)
    return dc, *sums, None, None, None


relu_group_norm.register_autograd(_gradients, setup_context=_setup_context)


def is_whole(channels: int, groups: int) -> bool:
    """Whether channels, and channels per group, are powers of two, as the kernels need."""
    members, rest = divmod(channels, groups)
    return rest == 0 and channels & (channels - 1) == 0 and members & (members - 1) == 0
