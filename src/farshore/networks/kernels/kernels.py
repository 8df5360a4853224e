"""ReLU and GroupNorm of a convolution's output as Triton kernels.

Images are read from memory once per direction. y = GroupNorm(relu(c + b)) for images with the
channels last in memory, or its mean over all pixels. A program processes one image and a block of
whole groups: it goes over the pixels once for the sums, and once more for the result, when they are
in registers or in the cache.

With a = relu(c + b), x̂ = (a - μ) r, m entries per group, and sums over pixels P₁ = Σ dy,
P₂ = Σ dy a: dγ = Σ_n r (P₂ - μ P₁), dβ = Σ_n P₁; S₁ = Σ_c γ P₁ and S₂ = Σ_c γ r (P₂ - μ P₁) over a
group's channels; da = r γ dy + k₁ a + k₀ with k₁ = -r² S₂/m, k₀ = -r S₁/m - k₁ μ; dc = da where
a > 0. db is the sum of dc, which needs only the sums of dy and a and the count of pixels where
a > 0. For the mean over pixels, dy = g/pixels everywhere: its P₁ and P₂ need no pass.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

# Fewest channels per program: 64 bytes in half precision.
FEWEST_CHANNELS = 32
# An image with at most this many pixels is read once and stays in registers: one strip contains all
# pixels, so that both passes read the same rows. The compiler merges the two reads if nothing is
# stored between them, which is why facts and sums are stored last.
RESIDENT_PIXELS = 256
# Larger images are processed in strips: warps, entries that a thread processes at once (16 bytes),
# and registers per thread. With more registers, too few programs would run concurrently to hide the
# memory latency.
WARPS, ENTRIES, REGISTERS = 8, 8, 80


@triton.jit
def _read(images, start, channel, pixel, PIXELS: tl.constexpr, CHANNELS: tl.constexpr):
    """Read an image at these pixels and channels; zero beyond the last pixel."""
    at = images + start + pixel[:, None] * CHANNELS + channel[None, :]
    return tl.load(at, mask=pixel[:, None] < PIXELS, other=0.0).to(tl.float32)


@triton.jit
def _activated(c, bias, start, channel, pixel, PIXELS: tl.constexpr, CHANNELS: tl.constexpr):
    """relu(c + b) at these pixels and channels; zero beyond the last pixel."""
    values = _read(c, start, channel, pixel, PIXELS, CHANNELS)
    return tl.where(pixel[:, None] < PIXELS, tl.maximum(values + bias[None, :], 0.0), 0.0)


@triton.jit
def _grouped(sums, GROUPS: tl.constexpr, MEMBERS: tl.constexpr):
    """The sum over each group's channels, for each channel."""
    by_group = tl.sum(tl.reshape(sums, (GROUPS, MEMBERS)), axis=1)
    return tl.reshape(tl.broadcast_to(by_group[:, None], (GROUPS, MEMBERS)), (GROUPS * MEMBERS,))


@triton.jit
def _moments(total, square, eps, entries, GROUPS: tl.constexpr, MEMBERS: tl.constexpr):
    """μ and r of each channel's group from the channels' sums of a and a²."""
    mean = _grouped(total, GROUPS, MEMBERS) / entries
    variance = tl.maximum(_grouped(square, GROUPS, MEMBERS) / entries - mean * mean, 0.0)
    return mean, tl.rsqrt(variance + eps)


@triton.jit
def _coefficients(
    p1, x, mean, inverse, weight, entries, GROUPS: tl.constexpr, MEMBERS: tl.constexpr
):
    """k, k₁ and k₀ of each channel; x is its part of dγ."""
    k1 = -inverse * inverse * _grouped(weight * x, GROUPS, MEMBERS) / entries
    k0 = -inverse * _grouped(weight * p1, GROUPS, MEMBERS) / entries - k1 * mean
    return inverse * weight, k1, k0


@triton.jit
def _forward(
    c,
    bias,
    gamma,
    beta,
    out,
    facts,
    eps,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
    MEMBERS: tl.constexpr,
    STRIP: tl.constexpr,
    BLOCK: tl.constexpr,
    POOLED: tl.constexpr,
):
    image, channel = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    GROUPS: tl.constexpr = BLOCK // MEMBERS
    start = image * PIXELS * CHANNELS
    b = tl.load(bias + channel)
    # Each thread keeps its own sums; they are reduced across threads once at the end.
    totals, squares = tl.zeros((STRIP, BLOCK), tl.float32), tl.zeros((STRIP, BLOCK), tl.float32)
    counts = tl.zeros((STRIP, BLOCK), tl.float32)
    for first in range(0, PIXELS, STRIP):
        a = _activated(c, b, start, channel, first + tl.arange(0, STRIP), PIXELS, CHANNELS)
        totals += a
        squares += a * a
        counts += tl.where(a > 0.0, 1.0, 0.0)
    total = tl.sum(totals, axis=0)
    mean, inverse = _moments(total, tl.sum(squares, axis=0), eps, PIXELS * MEMBERS, GROUPS, MEMBERS)
    scale = inverse * tl.load(gamma + channel)
    shift = tl.load(beta + channel) - mean * scale
    if POOLED:
        tl.store(out + image * CHANNELS + channel, scale * total / PIXELS + shift)
    else:
        for first in range(0, PIXELS, STRIP):
            pixel = first + tl.arange(0, STRIP)
            a = _activated(c, b, start, channel, pixel, PIXELS, CHANNELS)
            y = a * scale[None, :] + shift[None, :]
            at = out + start + pixel[:, None] * CHANNELS + channel[None, :]
            tl.store(at, y.to(out.dtype.element_ty), mask=pixel[:, None] < PIXELS)
    own = facts + image * (4 * CHANNELS) + channel
    tl.store(own, mean)
    tl.store(own + CHANNELS, inverse)
    tl.store(own + 2 * CHANNELS, total)
    tl.store(own + 3 * CHANNELS, tl.sum(counts, axis=0))


@triton.jit
def _backward(
    gradient,
    c,
    bias,
    gamma,
    facts,
    dc,
    sums,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
    MEMBERS: tl.constexpr,
    STRIP: tl.constexpr,
    BLOCK: tl.constexpr,
    POOLED: tl.constexpr,
):
    image, channel = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    GROUPS: tl.constexpr = BLOCK // MEMBERS
    start = image * PIXELS * CHANNELS
    b = tl.load(bias + channel)
    all1, all2 = tl.zeros((STRIP, BLOCK), tl.float32), tl.zeros((STRIP, BLOCK), tl.float32)
    on1 = tl.zeros((STRIP, BLOCK), tl.float32)
    if not POOLED:
        for first in range(0, PIXELS, STRIP):
            pixel = first + tl.arange(0, STRIP)
            a = _activated(c, b, start, channel, pixel, PIXELS, CHANNELS)
            dy = _read(gradient, start, channel, pixel, PIXELS, CHANNELS)
            all1 += dy
            all2 += dy * a
            on1 += tl.where(a > 0.0, dy, 0.0)
    fact = facts + image * (4 * CHANNELS) + channel
    mean, inverse, weight = tl.load(fact), tl.load(fact + CHANNELS), tl.load(gamma + channel)
    total, count = tl.load(fact + 2 * CHANNELS), tl.load(fact + 3 * CHANNELS)
    even = tl.zeros((BLOCK,), tl.float32)
    if POOLED:
        even = tl.load(gradient + image * CHANNELS + channel).to(tl.float32) / PIXELS
        p1, p2, p1_on = even * PIXELS, even * total, even * count
    else:
        p1, p2, p1_on = tl.sum(all1, axis=0), tl.sum(all2, axis=0), tl.sum(on1, axis=0)
    x = inverse * (p2 - mean * p1)
    k, k1, k0 = _coefficients(p1, x, mean, inverse, weight, PIXELS * MEMBERS, GROUPS, MEMBERS)
    for first in range(0, PIXELS, STRIP):
        pixel = first + tl.arange(0, STRIP)
        a = _activated(c, b, start, channel, pixel, PIXELS, CHANNELS)
        dy = even[None, :]
        if not POOLED:
            dy = _read(gradient, start, channel, pixel, PIXELS, CHANNELS)
        d = tl.where(a > 0.0, k[None, :] * dy + k1[None, :] * a + k0[None, :], 0.0)
        at = dc + start + pixel[:, None] * CHANNELS + channel[None, :]
        tl.store(at, d.to(dc.dtype.element_ty), mask=pixel[:, None] < PIXELS)
    own = sums + image * (3 * CHANNELS) + channel
    tl.store(own, k * p1_on + k1 * total + k0 * count)
    tl.store(own + CHANNELS, x)
    tl.store(own + 2 * CHANNELS, p1)


@triton.jit
def _over_images(sums, out, images, WIDTH: tl.constexpr, IMAGES: tl.constexpr, BLOCK: tl.constexpr):
    """Sum [N, WIDTH] over the first axis, always in the same order."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    partial = tl.zeros((IMAGES, BLOCK), tl.float32)
    first = 0
    while first < images:
        image = first + tl.arange(0, IMAGES)
        partial += tl.load(
            sums + image[:, None] * WIDTH + column[None, :], mask=image[:, None] < images, other=0.0
        )
        first += IMAGES
    tl.store(out + column, tl.sum(partial, axis=0))


def forward(
    c: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float, pooled: bool
) -> tuple[Tensor, Tensor]:
    """y, or its mean over pixels [N, C] in float32; and facts [N, 4, C].

    The facts are μ and r of each channel's group, Σ a, and the number of pixels where a > 0.
    """
    images, channels = c.shape[:2]
    out = c.new_empty((images, channels), dtype=torch.float32) if pooled else torch.empty_like(c)
    facts = c.new_empty((images, 4, channels), dtype=torch.float32)
    form, block = _form(c, groups, pooled)
    _forward[(images, channels // block)](c, bias, gamma, beta, out, facts, eps, **form)
    return out, facts


def backward(
    gradient: Tensor, kept: Sequence[Tensor], groups: int, pooled: bool
) -> tuple[Tensor, Tensor]:
    """dc; db, dγ and dβ [3, C]; `kept` are c, bias, γ and the facts."""
    c = kept[0]
    images, channels = c.shape[:2]
    dc, sums = torch.empty_like(c), kept[-1].new_empty((images, 3, channels))
    form, block = _form(c, groups, pooled)
    _backward[(images, channels // block)](gradient, *kept, dc, sums, **form)
    return dc, over_images(sums)


def over_images(sums: Tensor) -> Tensor:
    """Sum [N, rows, C] over the images."""
    images, rows, channels = sums.shape
    out = sums.new_empty((rows, channels))
    _over_images[(rows * channels // 8,)](
        sums, out, images, WIDTH=rows * channels, IMAGES=64, BLOCK=8, num_warps=4
    )
    return out


def channels_per_program(channels: int, groups: int) -> int:
    """Channels per program: whole groups, and enough of them for efficient reads."""
    return min(channels, max(channels // groups, FEWEST_CHANNELS))


def _form(c: Tensor, groups: int, pooled: bool) -> tuple[dict[str, int | bool], int]:
    """Compile-time sizes of the kernels, and the number of channels per program.

    The number of images is not a compile-time size.
    """
    _, channels, height, width = c.shape
    members, pixels = channels // groups, height * width
    block = channels_per_program(channels, groups)
    sizes = {"PIXELS": pixels, "CHANNELS": channels, "MEMBERS": members, "BLOCK": block}
    sizes["POOLED"] = pooled
    if pixels <= RESIDENT_PIXELS:
        return {**sizes, "STRIP": triton.next_power_of_2(pixels), "num_warps": 4}, block
    strip = max(1, 32 * WARPS * ENTRIES // block)
    return {**sizes, "STRIP": strip, "num_warps": WARPS, "maxnreg": REGISTERS}, block
