"""Sign agreement (ANDMask): keep the gradient entries on which the domains agree.

The counterpart of Invariance for gradients.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

Mask = Literal["hard", "soft"]
Projection = Literal["global", "per-tensor", "elementwise", "none"]
DENSITY_FLOOR = 1e-10


class SignAgreement:
    """Combine per-domain gradients g_e per entry, by their agreement a = |1/s Σ_e sign(g_e)|.

    Parascandolo et al., "Learning explanations that are hard to vary", ICLR 2021. With ḡ the mean
    over domains:
    `hard`: m = 1[a >= τ]; `soft`: m = sigmoid((a - τ) / T). Result: m ∘ ḡ / (mean(m) + ε), with the
    mean over each parameter tensor.
    """

    def __init__(self, mask: Mask = "hard", temperature: float = 0.1) -> None:
        self.mask: Mask = mask
        self.temperature = temperature

    def combine(
        self, gradients: Tensor, sizes: Sequence[int], threshold: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Combine gradients [E, P] of parameter tensors with these sizes, and overwrite them.

        Returns the masked gradient [P] and the density of the hard mask over all entries.
        """
        total = gradients.sum(dim=0)
        return self.decide(gradients.sign_().sum(dim=0), total, len(gradients), sizes, threshold)

    def decide(
        self, signs: Tensor, total: Tensor, domains: int, sizes: Sequence[int], threshold: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same as `combine`, from Σ_e sign(g_e) and Σ_e g_e over this many domains."""
        mask, hard = self._masks(signs.abs(), domains, threshold)
        combined = (total / domains).mul_(mask)
        pairs = zip(combined.split(list(sizes)), mask.split(list(sizes)), strict=True)
        for part, own in pairs:
            part.div_(own.mean() + DENSITY_FLOOR)
        return combined, hard.mean()

    def masked_share(self, signs: Tensor, domains: int, threshold: Tensor) -> Tensor:
        """1 - mean(m) / m(1): what the mask takes away, where unanimous entries lose nothing.

        m(1) is the weight of a unanimous entry. For a hard mask it is the share of dropped entries.
        """
        unanimous = self._masks(signs.new_full((1,), domains), domains, threshold)[0]
        return 1 - self._masks(signs.abs(), domains, threshold)[0].mean() / unanimous[0]

    def _masks(self, votes: Tensor, domains: int, threshold: Tensor) -> tuple[Tensor, Tensor]:
        """The mask and the hard mask, from |Σ_e sign(g_e)|."""
        # Compare votes, not shares: with 1/s in floating point, unanimity would be missed for
        # some s.
        hard = (votes >= threshold * domains - 1e-6).to(votes.dtype)
        if self.mask == "hard":
            return hard, hard
        return (votes / domains).sub_(threshold).div_(self.temperature).sigmoid_(), hard


def per_tensor(values: Tensor, sizes: Sequence[int], reduce: Callable[[Tensor], Tensor]) -> Tensor:
    """[P] -> [P]: replace every entry by a reduction, such as the mean, over its tensor."""
    return torch.cat([reduce(part).expand(len(part)) for part in values.split(list(sizes))])


def remove_conflict(extra: Tensor, main: Tensor, how: Projection, sizes: Sequence[int]) -> Tensor:
    """Remove the part of `extra` [P] that conflicts with `main` [P].

    This is the one-sided form of PCGrad (Yu et al. 2020).

    global: if <q, g> < 0 over all parameters, q - <q, g>/||g||² g; per-tensor: the same for each
    tensor; elementwise: entries of opposite sign are dropped. Afterwards <q, g> is not negative.
    """
    if how == "none":
        return extra
    if how == "elementwise":
        return torch.where(extra * main < 0, 0.0, extra)
    if how == "global":
        product, norm = extra.dot(main), main.dot(main)
    else:
        product, norm = (
            per_tensor(extra * main, sizes, torch.sum),
            per_tensor(main.square(), sizes, torch.sum),
        )
    # clamp_min instead of `+ ε`: near a minimum g is small, and the result must not depend on its
    # length. If g is 0, so is the product.
    return extra - product.clamp_max(0) / norm.clamp_min(torch.finfo(norm.dtype).tiny) * main
