"""MixMatch: labelled and unlabelled rows, mixed with one another. SHOT++'s last stage takes its
surest rows as labelled.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def confident_rows(entropies: Tensor, predicted: Tensor) -> Tensor:
    """Which rows count as labelled, [n]: in each predicted class the same share of rows, those of
    lowest entropy.

    The share is that of all rows whose entropy is below the mean.
    """
    share = float((entropies < entropies.mean()).double().mean())
    chosen = torch.zeros_like(predicted, dtype=torch.bool)
    for label in predicted.unique():
        members = (predicted == label).nonzero()[:, 0]
        surest = members[entropies[members].argsort(stable=True)]
        chosen[surest[: int(share * len(members))]] = True
    return chosen


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """p^(1/T), normalised: T below 1 makes the largest larger."""
    raised = probabilities ** (1 / temperature)
    return raised / raised.sum(dim=1, keepdim=True)


def mix(inputs: Tensor, targets: Tensor, share: float, order: Tensor) -> tuple[Tensor, Tensor]:
    """Each row with another one, in the order given: share · own + (1 - share) · other, inputs
    and targets alike.
    """
    return share * inputs + (1 - share) * inputs[order], share * targets + (1 - share) * targets[
        order
    ]


def mixmatch_loss(logits: Tensor, targets: Tensor, labelled: int, weight: float) -> Tensor:
    """Soft cross-entropy over the first `labelled` rows + weight · mean squared distance of
    probabilities over the others.

    The squared distance is a mean over rows and classes.
    """
    supervised = functional.cross_entropy(logits[:labelled], targets[:labelled])
    distance = (logits[labelled:].softmax(dim=1) - targets[labelled:]).square().mean()
    return supervised + weight * distance
