"""Convolution, ReLU and GroupNorm of one-channel images as one operator on a GPU.

The formulas are in `first_layer_kernels.py`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op


# Compiled code is cached on disk under the operators' names: if their arguments or results change,
# the names must change too.
@custom_op("farshore::first_layer", mutates_args=())
def first_layer(
    images: Tensor,
    weight: Tensor,
    bias: Tensor,
    gamma: Tensor,
    beta: Tensor,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """GroupNorm(relu(3x3 convolution)), and the statistics [N, 2, C] for the backward pass."""
    from . import first_layer_kernels

    parameters = (weight.contiguous(), bias, gamma, beta)
    return first_layer_kernels.forward(images, parameters, groups, eps)


@custom_op("farshore::first_layer_backward", mutates_args=())
def first_layer_backward(
    gradient: Tensor,
    images: Tensor,
    weight: Tensor,
    bias: Tensor,
    gamma: Tensor,
    facts: Tensor,
    groups: int,
) -> Tensor:
    """dW (nine rows), db, dγ and dβ [12, C]."""
    from . import first_layer_kernels

    gradient = gradient.contiguous(memory_format=torch.channels_last)
    kept = (weight.contiguous(), bias, gamma, facts)
    return first_layer_kernels.backward(gradient, images, kept, groups)


@first_layer.register_fake
def _(images: Tensor, weight: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    count, _, height, width = images.shape
    out = images.new_empty((count, height, width, len(weight))).permute(0, 3, 1, 2)
    return out, weight.new_empty((count, 2, len(weight)))


@first_layer_backward.register_fake
def _(gradient: Tensor, images: Tensor, weight: Tensor, *others: Any) -> Tensor:
    return weight.new_empty((12, len(weight)))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    images, weight, bias, gamma, _, ctx.groups, _ = inputs
    ctx.save_for_backward(images, weight, bias, gamma, output[1])


def _gradients(ctx: Any, gradient: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    rows = first_layer_backward(gradient, *ctx.saved_tensors, ctx.groups)
    return None, rows[:9].t().reshape(-1, 1, 3, 3), rows[9], rows[10], rows[11], None, None


first_layer.register_autograd(_gradients, setup_context=_setup_context)
