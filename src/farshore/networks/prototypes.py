"""A prototype head: it scores a row by the similarity of its direction to class prototypes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PrototypeHead(nn.Module):
    """Maps features to a direction f in R^D, and to logits π_c · f / T.

    dimension: D, the outputs of a linear layer; None: the features are the embedding.

    The prototypes are updated by the method, not by gradients.
    """

    prototypes: Tensor

    def __init__(
        self,
        feature_dim: int,
        classes: int,
        *,
        dimension: int | None,
        temperature: float,
        positive: bool,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = feature_dim, classes
        self.embedding: nn.Module = (
            nn.Identity() if dimension is None else nn.Linear(feature_dim, dimension)
        )
        self.temperature = temperature
        drawn = torch.rand(classes, dimension or feature_dim)
        self.register_buffer(
            "prototypes", nn.functional.normalize(drawn if positive else 2 * drawn - 1, dim=1)
        )

    def direction(self, features: Tensor) -> Tensor:
        """f: the embedding, normalised to unit length."""
        return nn.functional.normalize(self.embedding(features), dim=1)

    def forward(self, features: Tensor) -> Tensor:
        """One logit per class."""
        return self.direction(features) @ self.prototypes.T / self.temperature
