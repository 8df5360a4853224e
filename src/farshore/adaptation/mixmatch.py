"""MixMatch: train on mixtures of labelled and unlabelled rows.

The last stage of SHOT++ uses its most confident rows as the labelled ones.
"""

import torch
from torch import Tensor
from torch.nn import functional


def confident_rows(entropies: Tensor, predicted: Tensor) -> Tensor:
    """Which rows count as labelled, [n]: the same share of each predicted class, lowest entropy.

    The share is the fraction of all rows with an entropy below the mean.
    """
    share = float((entropies < entropies.mean()).double().mean())
    chosen = torch.zeros_like(predicted, dtype=torch.bool)
    for label in predicted.unique():
        members = (predicted == label).nonzero()[:, 0]
        by_entropy = members[entropies[members].argsort(stable=True)]
        chosen[by_entropy[: int(share * len(members))]] = True
    return chosen


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """p^(1/T), normalised; T < 1 increases the largest probability."""
    raised = probabilities ** (1 / temperature)
    return raised / raised.sum(dim=1, keepdim=True)


def mix(inputs: Tensor, targets: Tensor, share: float, order: Tensor) -> tuple[Tensor, Tensor]:
    """Mix inputs and targets with those that `order` gives: share · own + (1 - share) · other."""
    mixed, labels = (share * of + (1 - share) * of[order] for of in (inputs, targets))
    return mixed, labels


def mixmatch_loss(logits: Tensor, targets: Tensor, labelled: int, weight: float) -> Tensor:
    """Soft cross-entropy of the first `labelled` rows + weight · squared error of the others.

    The squared error is between probabilities, as a mean over rows and classes.
    """
    supervised = functional.cross_entropy(logits[:labelled], targets[:labelled])
    distance = (logits[labelled:].softmax(dim=1) - targets[labelled:]).square().mean()
    return supervised + weight * distance
