"""How strange a row is: its distance from every site that the model has learned, in the space of
the features.

For each past domain the mean μ and the covariance Σ of its features are at hand: by the present
model from the rows that the memory keeps or, where the method keeps none, as they were when the
domain ended. The distance is Mahalanobis', sqrt((f - μ)ᵀ Σ⁻¹ (f - μ) / d), with Σ drawn towards a
multiple of the identity by d / (d + n), since there are few rows. It is divided by the distance
that 95% of the domain's own rows, held back from μ and Σ, stay below. So a strangeness above
1 means: further out than nearly all rows of that domain. A row's strangeness is the least over the
domains. (Lee et al., "A Simple Unified Framework for Detecting Out-of-Distribution Samples",
NeurIPS 2018, use one such distance a class.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..learner import Learner

USUAL = 0.95
FEWEST_ROWS = 4


@dataclass(frozen=True)
class Moments:
    """Mean [d], inverse covariance [d, d], and the distance that most of the domain's rows stay
    below.
    """

    mean: Tensor
    precision: Tensor
    limit: Tensor

    def distance(self, features: Tensor) -> Tensor:
        """Mahalanobis distance per dimension, [n]."""
        away = features.double() - self.mean.double()
        return (
            (away @ self.precision.double() * away).sum(dim=1).clamp(min=0) / len(self.mean)
        ).sqrt()

    def state_dict(self) -> dict[str, Tensor]:
        """All three."""
        return {"mean": self.mean, "precision": self.precision, "limit": self.limit}


def moments(features: Tensor, held: Tensor) -> Moments:
    """Mean and covariance of `features`; the usual distance from the `held` rows, or from the
    same ones where there are none.
    """
    features = features.double()
    rows, width = features.shape
    away = features - features.mean(dim=0)
    covariance = away.T @ away / max(1, rows - 1)
    drawn = width / (width + rows)
    spread = (covariance.diagonal().mean() * drawn).clamp(min=1e-12)
    matrix = (1 - drawn) * covariance + spread * torch.eye(
        width, dtype=torch.float64, device=features.device
    )
    found = Moments(
        features.mean(dim=0).float(),
        torch.cholesky_inverse(torch.linalg.cholesky(matrix)).float(),
        torch.ones(()),
    )
    usual = found.distance(held if len(held) else features).quantile(USUAL).clamp(min=1e-6)
    return Moments(found.mean, found.precision, usual.float())


def past_rows(learner: Learner) -> dict[str, tuple[Tensor, Tensor]]:
    """Copies of the inputs and labels that are kept of past domains, per domain where they can be
    told apart.
    """
    if learner.shape is None:
        return {}
    return {
        name: (rows["inputs"].clone(), rows["labels"].clone())
        for name, rows in learner.system.kept_rows().items()
    }


def known_sites(learner: Learner, stored: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Moments]:
    """The moments of every past domain: from the memory, else those that were stored."""
    found = {}
    for name, (inputs, _) in past_rows(learner).items():
        if len(inputs) >= FEWEST_ROWS:
            # The rows of a partition are in random order: its halves are alike.
            features = learner.system.features(inputs)
            found[name] = moments(features[0::2], features[1::2])
    return found or {name: Moments(**parts) for name, parts in stored.items()}


def strangeness(
    learner: Learner, sites: Mapping[str, Moments], inputs: Tensor
) -> tuple[np.ndarray, list[str]]:
    """For each row its strangeness and the site that it is nearest to."""
    features = learner.system.features(inputs)
    scaled = torch.stack([site.distance(features) / site.limit for site in sites.values()])
    least, place = scaled.min(dim=0)
    names = list(sites)
    values: np.ndarray = least.cpu().numpy()
    return values, [names[number] for number in place.tolist()]
