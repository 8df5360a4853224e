"""Sign agreement (ANDMask): keep what the domains' gradients agree on. The sibling of Invariance over gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Mask = Literal["hard", "soft"]
Projection = Literal["global", "per-tensor", "elementwise", "none"]
DENSITY_FLOOR = 1e-10


class SignAgreement:
    """Combine per-domain gradients g_e, entry by entry, by the share a = |1/s Σ_e sign(g_e)| of domains that agree.

    Parascandolo et al., "Learning explanations that are hard to vary", ICLR 2021. With ḡ the mean over domains:
    `hard`: m = 1[a >= τ]; `soft`: m = sigmoid((a - τ) / T). Result: m ∘ ḡ / (mean(m) + ε), mean over each parameter tensor.
    """

    def __init__(self, mask: Mask = "hard", temperature: float = 0.1) -> None:
        self.mask: Mask = mask
        self.temperature = temperature

    def combine(self, gradients: Sequence[Tensor], threshold: Tensor) -> tuple[list[Tensor], Tensor]:
        """Gradients [E, ...] of each parameter tensor -> the masked gradient of each, and the hard mask's density over all."""
        combined, kept, entries = [], [], 0
        for stack in gradients:
            domains = len(stack)
            votes = stack.sign().sum(dim=0).abs()
            # Compared as votes, not as shares: 1/s in floating point would lose unanimity for some s.
            hard = (votes >= threshold * domains - 1e-6).to(stack.dtype)
            mask = hard if self.mask == "hard" else torch.sigmoid((votes / domains - threshold) / self.temperature)
            combined.append(mask * stack.mean(dim=0) / (mask.mean() + DENSITY_FLOOR))
            kept.append(hard.sum())
            entries += hard.numel()
        return combined, torch.stack(kept).sum() / entries


def remove_conflict(extra: Sequence[Tensor], main: Sequence[Tensor], how: Projection) -> list[Tensor]:
    """`extra` without the part that works against `main` (PCGrad, Yu et al. 2020, one-sided).

    global: if <q, g> < 0 over all parameters, q - <q, g>/||g||² g; per-tensor: the same for each tensor; elementwise: entries of
    opposite sign are dropped. Afterwards <q, g> is not negative.
    """
    if how == "none":
        return list(extra)
    if how == "elementwise":
        return [torch.where(q * g < 0, torch.zeros_like(q), q) for q, g in zip(extra, main, strict=True)]
    products = torch.stack([(q * g).sum() for q, g in zip(extra, main, strict=True)])
    norms = torch.stack([g.square().sum() for g in main])
    if how == "global":
        products, norms = products.sum().expand_as(products), norms.sum().expand_as(norms)
    # Not `+ ε`: near a minimum g is small, and the result must not depend on its length. Where g is 0, so is the product.
    factors = products.clamp_max(0) / norms.clamp_min(torch.finfo(norms.dtype).tiny)
    return [q - factor * g for q, g, factor in zip(extra, main, factors, strict=True)]
