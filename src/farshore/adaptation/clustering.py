"""Pseudo-labels by clustering: each row gets the class with the nearest feature centroid (SHOT)."""

import torch
from torch import Tensor
from torch.nn import functional

ROUNDS = 2


def pseudo_labels(features: Tensor, probabilities: Tensor) -> Tensor:
    """Labels [n] from features [n, D] and predicted probabilities [n, C].

    A 1 is appended to the features, which are then normalised to unit length: g. Centroids are
    c_k = Σ_i p_ik g_i / Σ_i p_ik. The label of a row is the nearest centroid by cosine distance,
    among the classes predicted for at least one row. A second round uses these labels as p.
    """
    longer = torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
    directions = functional.normalize(longer, dim=1)
    classes = probabilities.shape[1]
    allowed = torch.bincount(probabilities.argmax(dim=1), minlength=classes) > 0
    weights = probabilities
    labels = probabilities.argmax(dim=1)
    for _ in range(ROUNDS):
        total = weights.sum(dim=0)
        centroids = (weights.T @ directions) / (1e-8 + total)[:, None]
        similarity = directions @ functional.normalize(centroids, dim=1).T
        # A class that lost all its rows in the first round no longer has a centroid.
        similarity = similarity.masked_fill(~(allowed & (total > 0)), -torch.inf)
        labels = similarity.argmax(dim=1)
        weights = functional.one_hot(labels, classes).to(directions.dtype)
    return labels
