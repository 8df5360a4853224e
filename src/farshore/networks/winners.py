"""k-winners: at each place only the strongest channels pass."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class KWinners(nn.Module):
    """Keep the k = round(share · channels) largest channels of each row and place, zero the others;
    with `relu` negative ones too.

    The gradient passes where the value passes. Ties may keep more than k. The same k in training
    and evaluation.
    """

    def __init__(self, share: float, *, relu: bool = True) -> None:
        super().__init__()
        self.share, self.relu = share, relu

    def forward(self, inputs: Tensor) -> Tensor:
        """The winners of the channels, axis 1."""
        k = max(1, round(self.share * inputs.shape[1]))
        least = inputs.detach().topk(k, dim=1).values[:, -1:]
        if self.relu:
            least = least.clamp(min=0)
        return torch.where(inputs >= least, inputs, 0.0)

    def extra_repr(self) -> str:
        """The share that wins."""
        return f"share={self.share}, relu={self.relu}"


def sparse(module: nn.Module, share: float) -> None:
    """Make k-winners of the ReLUs inside `module`, except the first of several: the stem stays
    as it is.
    """
    kinds = nn.ReLU | KWinners  # a network that was made sparse before is made so anew
    found = [
        (parent, name)
        for parent in module.modules()
        for name, child in parent.named_children()
        if isinstance(child, kinds)
    ]
    for parent, name in found[1:] if len(found) > 1 else found:
        setattr(parent, name, KWinners(share))
