"""k-winners: only the largest channels of each pixel pass."""

import torch
from torch import Tensor, nn


class KWinners(nn.Module):
    """Keep the k = round(share · channels) largest channels of each row and pixel, zero the others.

    Negative values become zero too. Gradients pass where values pass. Ties may keep more than k. k
    is the same in training and evaluation.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, inputs: Tensor) -> Tensor:
        """Keep the winners among the channels, axis 1."""
        threshold = kth_largest(inputs.detach(), max(1, round(self.share * inputs.shape[1])))
        return torch.where(inputs >= threshold.clamp(min=0), inputs, 0.0)


def kth_largest(values: Tensor, k: int) -> Tensor:
    """The k-th largest value along axis 1, kept with length 1; the shorter side is searched."""
    smallest = values.shape[1] - k + 1
    if smallest < k:
        return values.topk(smallest, dim=1, largest=False, sorted=False).values.amax(1, True)
    return values.topk(k, dim=1, sorted=False).values.amin(1, True)


def sparse(module: nn.Module, share: float) -> None:
    """Replace the ReLUs in `module` by k-winners, of several all but the first one (the stem)."""
    kinds = nn.ReLU | KWinners  # KWinners: the network may have been made sparse before
    children = ((parent, *each) for parent in module.modules() for each in parent.named_children())
    activations = [(parent, name) for parent, name, child in children if isinstance(child, kinds)]
    for parent, name in activations[1:] if len(activations) > 1 else activations:
        setattr(parent, name, KWinners(share))
