"""Sums over the rows of each class, for methods with prototypes."""

from __future__ import annotations

import torch
from torch import Tensor


def class_sums(vectors: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Sum of the vectors [classes, D] and number of rows [classes] per class."""
    members = (labels[:, None] == torch.arange(classes, device=labels.device)).to(vectors.dtype)
    return members.T @ vectors, members.sum(dim=0)
