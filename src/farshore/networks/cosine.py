"""A cosine head: it scores a row by the angle between its features and each class's weights."""

from __future__ import annotations

from torch import Tensor, nn


class CosineHead(nn.Module):
    """Maps features f to logits s · cos(f, w_c), without bias.

    Neither the length of the features nor that of the weights affects the prediction.
    """

    def __init__(self, feature_dim: int, classes: int, *, scale: float) -> None:
        super().__init__()
        self.in_features, self.out_features = feature_dim, classes
        self.scale = scale
        # Drawn as the weights of a linear layer.
        self.weight = nn.Parameter(nn.Linear(feature_dim, classes, bias=False).weight.detach())

    def forward(self, features: Tensor) -> Tensor:
        """One logit per class."""
        directions = nn.functional.normalize(features, dim=1)
        logits: Tensor = directions @ nn.functional.normalize(self.weight, dim=1).T
        return self.scale * logits
