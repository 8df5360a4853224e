"""ReLU and GroupNorm of a convolution's output in as few passes over the images as their formulas allow, for the compiler."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class ReLUGroupNorm(torch.autograd.Function):
    """y = GroupNorm(relu(c + b)), with the convolution's bias b taken in.

    PyTorch's GroupNorm is taken apart into views with channels first, so that every convolution beside it copies its images; and what
    automatic differentiation makes of the formula reads them six times. Here all sums run over places only, [N, C], which is how
    channels-last images lie in memory; everything between two passes is small. With x̂ = (a - μ) r for a = relu(c + b), m entries a
    group, and sums over places P₁ = Σ dy, P₂ = Σ dy a:
    dγ = Σ_n r (P₂ - μ P₁), dβ = Σ_n P₁; S₁ = Σ_c γ P₁ and S₂ = Σ_c γ r (P₂ - μ P₁) over a group's channels;
    da = r γ dy + k₁ a + k₀ with k₁ = -r² S₂/m, k₀ = -r S₁/m - k₁ μ; dc = da where a > 0, and db is the sum of dc, which needs
    only Σ dy, Σ a and the count of places where a > 0.
    """

    @staticmethod
    def forward(ctx: Any, c: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float) -> Tensor:
        """Images [N, C, H, W] with channels last in memory; float32 out."""
        rows, channels, height, width = c.shape
        a = _activated(c, bias)
        total, squares = a.sum(dim=1), a.square().sum(dim=1)
        entries = height * width * (channels // groups)
        mean = total.reshape(rows, groups, -1).sum(dim=2) / entries
        variance = (squares.reshape(rows, groups, -1).sum(dim=2) / entries - mean.square()).clamp_min(0)
        inverse = (variance + eps).rsqrt()
        scale = _by_channel(inverse, channels) * gamma
        shift = beta - _by_channel(mean, channels) * scale
        ctx.save_for_backward(c, bias, gamma, mean, inverse, total)
        return (a * scale[:, None] + shift[:, None]).reshape(rows, height, width, channels).permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Two passes: the sums, then dc."""
        c, bias, gamma, mean, inverse, total = ctx.saved_tensors
        rows, channels, height, width = c.shape
        groups = mean.shape[1]
        entries = height * width * (channels // groups)
        a = _activated(c, bias)
        on = (a > 0).to(a.dtype)
        dy = _flat(gradients[0]).to(a.dtype)
        p1, p2, p1_on, count = dy.sum(dim=1), (dy * a).sum(dim=1), (dy * on).sum(dim=1), on.sum(dim=1)
        mu, r = _by_channel(mean, channels), _by_channel(inverse, channels)
        x = r * (p2 - mu * p1)  # Σ dy x̂
        s1, s2 = ((gamma * part).reshape(rows, groups, -1).sum(dim=2) for part in (p1, x))
        k1 = -r.square() * _by_channel(s2, channels) / entries
        k0 = -r * _by_channel(s1, channels) / entries - k1 * mu
        k = r * gamma
        dc = (k[:, None] * dy + k1[:, None] * a + k0[:, None]) * on
        dbias = (k * p1_on + k1 * total + k0 * count).sum(dim=0)
        images = dc.to(c.dtype).reshape(rows, height, width, channels).permute(0, 3, 1, 2)
        return images, dbias, x.sum(dim=0), p1.sum(dim=0), None, None


def _flat(images: Tensor) -> Tensor:
    """[N, C, H, W] -> [N, H·W, C]: no copy where channels lie last."""
    return images.permute(0, 2, 3, 1).flatten(1, 2)


def _activated(c: Tensor, bias: Tensor) -> Tensor:
    flat = _flat(c)
    return ((flat.float() if flat.dtype in (torch.bfloat16, torch.float16) else flat) + bias).relu()


def _by_channel(groups: Tensor, channels: int) -> Tensor:
    """[N, G] -> [N, C]."""
    return groups[:, :, None].expand(-1, -1, channels // groups.shape[1]).flatten(1)
