"""ReLU and GroupNorm of a convolution's output as Triton kernels: images are read from memory once
each way.

y = GroupNorm(relu(c + b)) for images with the channels last in memory, or its mean over all places.
A program has one image and a
block of whole groups: it goes through the places once for the sums and once more, when they lie in
registers or the cache, for the result. With a = relu(c + b), x̂ = (a - μ) r, m entries a group, and
sums over places P₁ = Σ dy, P₂ = Σ dy a: dγ = Σ_n r (P₂ - μ P₁), dβ = Σ_n P₁; S₁ = Σ_c γ P₁ and S₂ =
Σ_c γ r (P₂ - μ P₁) over a group's channels; da = r γ dy + k₁ a + k₀ with k₁ = -r² S₂/m, k₀ = -r
S₁/m - k₁ μ; dc = da where a > 0, and db is the sum of dc, which needs only the sums of dy and a and
the count of places where a > 0. The mean over places has dy = g/places everywhere: its P₁ and P₂
need no pass.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Channels of a program at least: 64 bytes in half precision.
FEWEST_CHANNELS = 32
# Up to so many places an image is read once and stays in registers: the strip has all places, so
# that both passes read the same rows, and the compiler makes one of two reads between which nothing
# is stored. Hence facts and sums are stored last.
RESIDENT_PLACES = 256
# Larger ones go through memory in strips: warps, the entries that a thread works on at once (16
# bytes), and its registers; with more of them, too few programs would run side by side to hide the
# latency of the memory.
WARPS, ENTRIES, REGISTERS = 8, 8, 80


@triton.jit
def _read(images, start, channel, place, PLACES: tl.constexpr, CHANNELS: tl.constexpr):
    """What an image has at these places and channels; zero beyond the last place."""
    at = images + start + place[:, None] * CHANNELS + channel[None, :]
    return tl.load(at, mask=place[:, None] < PLACES, other=0.0).to(tl.float32)


@triton.jit
def _activated(c, bias, start, channel, place, PLACES: tl.constexpr, CHANNELS: tl.constexpr):
    """relu(c + b) at these places and channels; zero beyond the last place."""
    found = _read(c, start, channel, place, PLACES, CHANNELS)
    return tl.where(place[:, None] < PLACES, tl.maximum(found + bias[None, :], 0.0), 0.0)


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
    return (
        inverse * weight,
        k1,
        -inverse * _grouped(weight * p1, GROUPS, MEMBERS) / entries - k1 * mean,
    )


@triton.jit
def _forward(
    c,
    bias,
    gamma,
    beta,
    out,
    facts,
    eps,
    PLACES: tl.constexpr,
    CHANNELS: tl.constexpr,
    MEMBERS: tl.constexpr,
    STRIP: tl.constexpr,
    BLOCK: tl.constexpr,
    POOLED: tl.constexpr,
):
    image, channel = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    GROUPS: tl.constexpr = BLOCK // MEMBERS
    start = image * PLACES * CHANNELS
    b = tl.load(bias + channel)
    # Threads add up for themselves; only then do they put their sums together.
    totals, squares = tl.zeros((STRIP, BLOCK), tl.float32), tl.zeros((STRIP, BLOCK), tl.float32)
    counts = tl.zeros((STRIP, BLOCK), tl.float32)
    for first in range(0, PLACES, STRIP):
        a = _activated(c, b, start, channel, first + tl.arange(0, STRIP), PLACES, CHANNELS)
        totals += a
        squares += a * a
        counts += tl.where(a > 0.0, 1.0, 0.0)
    total = tl.sum(totals, axis=0)
    mean, inverse = _moments(total, tl.sum(squares, axis=0), eps, PLACES * MEMBERS, GROUPS, MEMBERS)
    scale = inverse * tl.load(gamma + channel)
    shift = tl.load(beta + channel) - mean * scale
    if POOLED:
        tl.store(out + image * CHANNELS + channel, scale * total / PLACES + shift)
    else:
        for first in range(0, PLACES, STRIP):
            place = first + tl.arange(0, STRIP)
            a = _activated(c, b, start, channel, place, PLACES, CHANNELS)
            y = a * scale[None, :] + shift[None, :]
            at = out + start + place[:, None] * CHANNELS + channel[None, :]
            tl.store(at, y.to(out.dtype.element_ty), mask=place[:, None] < PLACES)
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
    PLACES: tl.constexpr,
    CHANNELS: tl.constexpr,
    MEMBERS: tl.constexpr,
    STRIP: tl.constexpr,
    BLOCK: tl.constexpr,
    POOLED: tl.constexpr,
):
    image, channel = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    GROUPS: tl.constexpr = BLOCK // MEMBERS
    start = image * PLACES * CHANNELS
    b = tl.load(bias + channel)
    all1, all2, on1 = (
        tl.zeros((STRIP, BLOCK), tl.float32),
        tl.zeros((STRIP, BLOCK), tl.float32),
        tl.zeros((STRIP, BLOCK), tl.float32),
    )
    if not POOLED:
        for first in range(0, PLACES, STRIP):
            place = first + tl.arange(0, STRIP)
            a = _activated(c, b, start, channel, place, PLACES, CHANNELS)
            dy = _read(gradient, start, channel, place, PLACES, CHANNELS)
            all1 += dy
            all2 += dy * a
            on1 += tl.where(a > 0.0, dy, 0.0)
    fact = facts + image * (4 * CHANNELS) + channel
    mean, inverse, weight = tl.load(fact), tl.load(fact + CHANNELS), tl.load(gamma + channel)
    total, count = tl.load(fact + 2 * CHANNELS), tl.load(fact + 3 * CHANNELS)
    even = tl.zeros((BLOCK,), tl.float32)
    if POOLED:
        even = tl.load(gradient + image * CHANNELS + channel).to(tl.float32) / PLACES
        p1, p2, p1_on = even * PLACES, even * total, even * count
    else:
        p1, p2, p1_on = tl.sum(all1, axis=0), tl.sum(all2, axis=0), tl.sum(on1, axis=0)
    x = inverse * (p2 - mean * p1)
    k, k1, k0 = _coefficients(p1, x, mean, inverse, weight, PLACES * MEMBERS, GROUPS, MEMBERS)
    for first in range(0, PLACES, STRIP):
        place = first + tl.arange(0, STRIP)
        a = _activated(c, b, start, channel, place, PLACES, CHANNELS)
        dy = even[None, :]
        if not POOLED:
            dy = _read(gradient, start, channel, place, PLACES, CHANNELS)
        d = tl.where(a > 0.0, k[None, :] * dy + k1[None, :] * a + k0[None, :], 0.0)
        at = dc + start + place[:, None] * CHANNELS + channel[None, :]
        tl.store(at, d.to(dc.dtype.element_ty), mask=place[:, None] < PLACES)
    own = sums + image * (3 * CHANNELS) + channel
    tl.store(own, k * p1_on + k1 * total + k0 * count)
    tl.store(own + CHANNELS, x)
    tl.store(own + 2 * CHANNELS, p1)


@triton.jit
def _over_images(sums, out, images, WIDTH: tl.constexpr, IMAGES: tl.constexpr, BLOCK: tl.constexpr):
    """Sums [N, WIDTH] over the first axis, always in the same order."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.zeros((IMAGES, BLOCK), tl.float32)
    first = 0
    while first < images:
        image = first + tl.arange(0, IMAGES)
        found += tl.load(
            sums + image[:, None] * WIDTH + column[None, :], mask=image[:, None] < images, other=0.0
        )
        first += IMAGES
    tl.store(out + column, tl.sum(found, axis=0))


def forward(
    c: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float, pooled: bool
) -> tuple[Tensor, Tensor]:
    """y, or its mean over places [N, C] in float32; and facts [N, 4, C]: μ and r of the
    channel's group, Σ a, places where a > 0.
    """
    images, channels = c.shape[:2]
    out = c.new_empty((images, channels), dtype=torch.float32) if pooled else torch.empty_like(c)
    facts = c.new_empty((images, 4, channels), dtype=torch.float32)
    form, block = _form(c, groups, pooled)
    _forward[(images, channels // block)](c, bias, gamma, beta, out, facts, eps, **form)
    return out, facts


def backward(
    gradient: Tensor,
    c: Tensor,
    bias: Tensor,
    gamma: Tensor,
    facts: Tensor,
    groups: int,
    pooled: bool,
) -> tuple[Tensor, Tensor]:
    """dc; db, dγ and dβ [3, C]."""
    images, channels = c.shape[:2]
    dc, sums = torch.empty_like(c), facts.new_empty((images, 3, channels))
    form, block = _form(c, groups, pooled)
    _backward[(images, channels // block)](gradient, c, bias, gamma, facts, dc, sums, **form)
    return dc, over_images(sums)


def over_images(sums: Tensor) -> Tensor:
    """Sums [N, rows, C] over the images."""
    images, rows, channels = sums.shape
    out = sums.new_empty((rows, channels))
    _over_images[(rows * channels // 8,)](
        sums, out, images, WIDTH=rows * channels, IMAGES=64, BLOCK=8, num_warps=4
    )
    return out


def channels_a_program(channels: int, groups: int) -> int:
    """Whole groups, and enough of them for a read of some length."""
    return min(channels, max(channels // groups, FEWEST_CHANNELS))


def _form(c: Tensor, groups: int, pooled: bool) -> tuple[dict[str, int | bool], int]:
    """What the kernels are compiled for, and how many channels a program has. Not for how many
    images: any number will do.
    """
    _, channels, height, width = c.shape
    members, places = channels // groups, height * width
    block = channels_a_program(channels, groups)
    sizes = {
        "PLACES": places,
        "CHANNELS": channels,
        "MEMBERS": members,
        "BLOCK": block,
        "POOLED": pooled,
    }
    if places <= RESIDENT_PLACES:
        return {**sizes, "STRIP": triton.next_power_of_2(places), "num_warps": 4}, block
    return {
        **sizes,
        "STRIP": max(1, 32 * WARPS * ENTRIES // block),
        "num_warps": WARPS,
        "maxnreg": REGISTERS,
    }, block
