"""Convolution, ReLU and GroupNorm of one-channel images as Triton kernels.

The convolution's output c = X W + b is never stored. With one input channel and many output
channels it is much larger than the images, so recomputing it from the nine neighbours X of each
pixel is cheaper than reading it. With the names of `kernels.py`, and `on` for the pixels where
a > 0, dW = Xᵀ(on · (k dy + k₁ a + k₀)) = k · Xᵀ(on · dy) + k₁ · Xᵀa + k₀ · Xᵀon. Since k = r γ, k₁
and k₀ are constant per image and channel, one pass over dy gives all products and sums. A column of
ones among the neighbours gives db.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from .kernels import _coefficients, _moments, channels_per_program, over_images

# Rows that an image adds to the gradients: nine for W, then b, γ and β. Matrix units need 16.
ROWS = 12


@triton.jit
def _neighbours(images, start, pixel, PIXELS: tl.constexpr, WIDTH: tl.constexpr):
    """The neighbours [pixels, 16] of these pixels in a zero-padded image.

    The columns are the nine neighbours, a one, and six unused values.
    """
    tap = tl.arange(0, 16)
    known = tl.minimum(pixel, PIXELS - 1)
    corner = start + known // WIDTH * (WIDTH + 2) + known % WIDTH
    near = tl.minimum(tap, 8)
    values = tl.load(images + corner[:, None] + (near // 3 * (WIDTH + 2) + near % 3)[None, :])
    return tl.where(tap[None, :] == 9, 1.0, values.to(tl.float32)).to(values.dtype)


@triton.jit
def _activated(x, w, bias, inside, PRECISION: tl.constexpr):
    """relu(x w + b), zero beyond the last pixel."""
    return tl.where(
        inside, tl.maximum(tl.dot(x, w, input_precision=PRECISION) + bias[None, :], 0.0), 0.0
    )


@triton.jit
def _taps(weight, channel, dtype: tl.constexpr):
    """The weights [16, channels] of the neighbours; zero for the unused columns."""
    tap = tl.arange(0, 16)
    return tl.load(
        weight + channel[None, :] * 9 + tap[:, None], mask=tap[:, None] < 9, other=0.0
    ).to(dtype)


@triton.jit
def _forward(
    images,
    weight,
    bias,
    gamma,
    beta,
    out,
    facts,
    eps,
    PIXELS: tl.constexpr,
    WIDTH: tl.constexpr,
    BORDERED: tl.constexpr,
    CHANNELS: tl.constexpr,
    MEMBERS: tl.constexpr,
    STRIP: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    image, channel = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    GROUPS: tl.constexpr = BLOCK // MEMBERS
    w, b = _taps(weight, channel, images.dtype.element_ty), tl.load(bias + channel)
    totals, squares = tl.zeros((STRIP, BLOCK), tl.float32), tl.zeros((STRIP, BLOCK), tl.float32)
    for first in range(0, PIXELS, STRIP):
        pixel = first + tl.arange(0, STRIP)
        x = _neighbours(images, image * BORDERED, pixel, PIXELS, WIDTH)
        a = _activated(x, w, b, pixel[:, None] < PIXELS, PRECISION)
        totals += a
        squares += a * a
    mean, inverse = _moments(
        tl.sum(totals, axis=0), tl.sum(squares, axis=0), eps, PIXELS * MEMBERS, GROUPS, MEMBERS
    )
    tl.store(facts + image * (2 * CHANNELS) + channel, mean)
    tl.store(facts + image * (2 * CHANNELS) + CHANNELS + channel, inverse)
    scale = inverse * tl.load(gamma + channel)
    shift = tl.load(beta + channel) - mean * scale
    for first in range(0, PIXELS, STRIP):
        pixel = first + tl.arange(0, STRIP)
        inside = pixel[:, None] < PIXELS
        x = _neighbours(images, image * BORDERED, pixel, PIXELS, WIDTH)
        a = _activated(x, w, b, inside, PRECISION)
        y = a * scale[None, :] + shift[None, :]
        at = out + image * PIXELS * CHANNELS + pixel[:, None] * CHANNELS + channel[None, :]
        tl.store(at, y.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _backward(
    gradient,
    images,
    weight,
    bias,
    gamma,
    facts,
    sums,
    PIXELS: tl.constexpr,
    WIDTH: tl.constexpr,
    BORDERED: tl.constexpr,
    CHANNELS: tl.constexpr,
    MEMBERS: tl.constexpr,
    STRIP: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
):
    image, channel = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    GROUPS: tl.constexpr = BLOCK // MEMBERS
    dtype = images.dtype.element_ty
    w, b = _taps(weight, channel, dtype), tl.load(bias + channel)
    all1, all2 = tl.zeros((STRIP, BLOCK), tl.float32), tl.zeros((STRIP, BLOCK), tl.float32)
    by_dy, by_a = tl.zeros((16, BLOCK), tl.float32), tl.zeros((16, BLOCK), tl.float32)
    by_on = tl.zeros((16, BLOCK), tl.float32)
    for first in range(0, PIXELS, STRIP):
        pixel = first + tl.arange(0, STRIP)
        inside = pixel[:, None] < PIXELS
        x = _neighbours(images, image * BORDERED, pixel, PIXELS, WIDTH)
        a = _activated(x, w, b, inside, PRECISION)
        at = gradient + image * PIXELS * CHANNELS + pixel[:, None] * CHANNELS + channel[None, :]
        dy = tl.load(at, mask=inside, other=0.0).to(tl.float32)
        all1 += dy
        all2 += dy * a
        xt = tl.trans(x)
        by_dy = tl.dot(xt, tl.where(a > 0.0, dy, 0.0).to(dtype), by_dy, input_precision=PRECISION)
        by_a = tl.dot(xt, a.to(dtype), by_a, input_precision=PRECISION)
        by_on = tl.dot(xt, tl.where(a > 0.0, 1.0, 0.0).to(dtype), by_on, input_precision=PRECISION)
    fact = facts + image * (2 * CHANNELS) + channel
    mean, inverse, scale = tl.load(fact), tl.load(fact + CHANNELS), tl.load(gamma + channel)
    p1 = tl.sum(all1, axis=0)
    x_dy = inverse * (tl.sum(all2, axis=0) - mean * p1)
    k, k1, k0 = _coefficients(p1, x_dy, mean, inverse, scale, PIXELS * MEMBERS, GROUPS, MEMBERS)
    row = tl.arange(0, 16)[:, None]
    parts = k[None, :] * by_dy + k1[None, :] * by_a + k0[None, :] * by_on
    parts = tl.where(row == 10, x_dy[None, :], tl.where(row == 11, p1[None, :], parts))
    tl.store(
        sums + image * (ROWS * CHANNELS) + row * CHANNELS + channel[None, :], parts, mask=row < ROWS
    )


def forward(
    images: Tensor, parameters: Sequence[Tensor], groups: int, eps: float
) -> tuple[Tensor, Tensor]:
    """y with the channels last, and facts [N, 2, C]: μ and r of each channel's group.

    parameters: weight, bias, γ and β.
    """
    count, _, height, width = images.shape
    channels = len(parameters[0])
    out = images.new_empty((count, height, width, channels)).permute(0, 3, 1, 2)
    facts = parameters[0].new_empty((count, 2, channels))
    form, grid = _form(images, channels, groups)
    tensors = (_bordered(images), *parameters, out, facts)
    _forward[grid](*tensors, eps, **form, STRIP=128, num_warps=4)
    return out, facts


def backward(gradient: Tensor, images: Tensor, kept: Sequence[Tensor], groups: int) -> Tensor:
    """dW (nine rows), db, dγ and dβ [12, C]; `kept` are weight, bias, γ and the facts."""
    count, channels = len(images), len(kept[0])
    sums = kept[-1].new_empty((count, ROWS, channels))
    form, grid = _form(images, channels, groups)
    tensors = (gradient, _bordered(images), *kept, sums)
    _backward[grid](*tensors, **form, ROWS=ROWS, STRIP=64, num_warps=2)
    return over_images(sums)


def _bordered(images: Tensor) -> Tensor:
    return pad(images[:, 0], (1, 1, 1, 1))


def _form(
    images: Tensor, channels: int, groups: int
) -> tuple[dict[str, int | str], tuple[int, int]]:
    """Compile-time sizes of both kernels, and the grid of programs.

    A program processes one image and a block of whole groups.
    """
    count, _, height, width = images.shape
    members, block = channels // groups, channels_per_program(channels, groups)
    exact = images.dtype == torch.float32 and not torch.backends.cudnn.allow_tf32
    bordered = (height + 2) * (width + 2)
    pixels = {"PIXELS": height * width, "WIDTH": width, "BORDERED": bordered}
    sizes = {**pixels, "CHANNELS": channels, "MEMBERS": members, "BLOCK": block}
    return {**sizes, "PRECISION": "ieee" if exact else "tf32"}, (count, channels // block)
