"""Pseudo-labels by clustering: each row gets the class whose centroid in feature space is
nearest (SHOT).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

ROUNDS = 2


def pseudo_labels(features: Tensor, probabilities: Tensor) -> Tensor:
    """Labels [n] from features [n, D] and predicted probabilities [n, C].

    Features get a 1 appended and length 1. Centroids are c_k = Σ_i p_ik g_i / Σ_i p_ik; a row's
    label is the nearest of them by cosine distance, among the classes that are predicted for at
    least one row. Then once more with these labels as p.
    """
    places = functional.normalize(
        torch.cat([features, torch.ones_like(features[:, :1])], dim=1), dim=1
    )
    classes = probabilities.shape[1]
    allowed = torch.bincount(probabilities.argmax(dim=1), minlength=classes) > 0
    weights = probabilities
    labels = probabilities.argmax(dim=1)
    for _ in range(ROUNDS):
        total = weights.sum(dim=0)
        centroids = (weights.T @ places) / (1e-8 + total)[:, None]
        likeness = places @ functional.normalize(centroids, dim=1).T
        # A class that lost all its rows in the first round has no centroid any more.
        likeness = likeness.masked_fill(~(allowed & (total > 0)), -torch.inf)
        labels = likeness.argmax(dim=1)
        weights = functional.one_hot(labels, classes).to(places.dtype)
    return labels
