"""How strange a row is: far in its features from every learned site, or in inputs from all rows.

Each past domain is described by the mean μ and the covariance Σ of its features. They are computed
with the current model from the rows in the memory. For methods that keep no rows, they are those
from the end of the domain. The distance is the Mahalanobis distance
sqrt((f - μ)ᵀ Σ⁻¹ (f - μ) / d), with Σ shrunk towards a multiple of the identity by d / (d + n)
because there are few rows. It is divided by the 95% quantile of the distances of the domain's own
rows, which are held out from μ and Σ. A strangeness above 1 therefore means: further out than
nearly all rows of that domain. A row's strangeness is the minimum over the domains. (Lee et al.,
"A Simple Unified Framework for Detecting Out-of-Distribution Samples", NeurIPS 2018, use one such
distance per class.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..errors import FarshoreError
from ..learner.learner import Learner
from ..networks.network import EVALUATION_ROWS

USUAL = 0.95
FEWEST_ROWS = 4


@dataclass(frozen=True)
class Moments:
    """Mean [d], inverse covariance [d, d], and the usual distance of a domain's own rows."""

    mean: Tensor
    precision: Tensor
    limit: Tensor

    @cached_property
    def _factor(self) -> Tensor | None:
        """L with L Lᵀ = Σ⁻¹; None if there is none, in moments that were not made here."""
        factor, failed = torch.linalg.cholesky_ex(self.precision.double())
        return None if int(failed) else factor.float()

    def distance(self, features: Tensor) -> Tensor:
        """Mahalanobis distance per dimension, [n].

        |(f - μ)ᵀ L|² is a sum of squares, for which single precision is enough: the shrinkage
        bounds the condition of Σ.
        """
        # In place: new memory for every intermediate takes longer than the arithmetic.
        if self._factor is None:
            centred = features.double() - self.mean.double()
            squares = (centred @ self.precision.double()).mul_(centred).sum(dim=1)
        else:
            squares = ((features.float() - self.mean) @ self._factor).square_().sum(dim=1).double()
        return squares.clamp_(min=0).div_(len(self.mean)).sqrt_()

    def state_dict(self) -> dict[str, Tensor]:
        """The three tensors by name."""
        return {"mean": self.mean, "precision": self.precision, "limit": self.limit}


def moments(features: Tensor, held_out: Tensor) -> Moments:
    """Mean, covariance and usual distance of `held_out`, or of `features` if there are none."""
    features = features.double()
    rows, width = features.shape
    centred = features - features.mean(dim=0)
    covariance = centred.T @ centred / max(1, rows - 1)
    shrinkage = width / (width + rows)
    spread = (covariance.diagonal().mean() * shrinkage).clamp(min=1e-12)
    if not bool(torch.isfinite(covariance).all()):
        raise FarshoreError(
            "the model's features are not finite numbers: it has diverged or is damaged; `farshore "
            "undo` returns to the version before its last change"
        )
    unit = torch.eye(width, dtype=torch.float64, device=features.device)
    factor = torch.linalg.cholesky((1 - shrinkage) * covariance + spread * unit)
    precision = torch.cholesky_inverse(factor).float()
    unscaled = Moments(features.mean(dim=0).float(), precision, torch.ones(()))
    distances = unscaled.distance(held_out if len(held_out) else features)
    return replace(unscaled, limit=distances.quantile(USUAL).clamp(min=1e-6).float())


def past_rows(learner: Learner) -> dict[str, tuple[Tensor, Tensor]]:
    """Copies of the inputs and labels in the memory, by domain if the method distinguishes them."""
    if learner.shape is None:
        return {}
    return {
        name: (rows["inputs"].clone(), rows["labels"].clone())
        for name, rows in learner.system.kept_rows().items()
    }


def known_sites(learner: Learner, stored: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Moments]:
    """The moments of every past domain: computed from the memory, or the stored ones."""
    from_memory = {}
    for name, (inputs, _) in past_rows(learner).items():
        if len(inputs) >= FEWEST_ROWS:
            # The rows of a partition are in random order, so both halves are alike.
            features = learner.system.features(inputs)
            from_memory[name] = moments(features[0::2], features[1::2])
    return from_memory or {name: Moments(**parts) for name, parts in stored.items()}


def nearest_distance(mean: Tensor, sites: Mapping[str, Moments]) -> float:
    """The distance of a mean of features from the nearest site."""
    return min(float(site.distance(mean[None])[0]) for site in sites.values())


def strangeness(sites: Mapping[str, Moments], features: Tensor) -> tuple[np.ndarray, list[str]]:
    """The strangeness of rows with these features, and the nearest site of each."""
    names, found = list(sites), []
    for part in features.split(EVALUATION_ROWS):
        scaled = torch.stack([site.distance(part) / site.limit for site in sites.values()])
        found.append(scaled.min(dim=0))
    values, nearest = (torch.cat(parts).cpu() for parts in zip(*found, strict=True))
    return values.numpy(), [names[index] for index in nearest.tolist()]


# The search looks at no more rows of a site.
MOST_ROWS = 500


@dataclass(frozen=True)
class Neighbours:
    """Kept rows of each site, scaled, and the usual distance between neighbours.

    Distances are Euclidean, over the inputs that count for the predictions, each divided by its
    standard deviation. Their unit is the distance that 95% of the kept rows have to their own
    nearest neighbour. A row between two groups is far from both, even where the mean is near.
    """

    rows: dict[str, np.ndarray]
    relevant: np.ndarray
    scale: np.ndarray
    unit: float

    @classmethod
    def of(cls, kept: Mapping[str, np.ndarray], relevant: np.ndarray) -> "Neighbours | None":
        """From the kept rows of each site; None if they are too few."""
        chosen = {name: each[:MOST_ROWS, relevant] for name, each in kept.items()}
        together = np.concatenate(list(chosen.values())) if chosen else np.zeros((0, 1))
        if len(together) < 2 / (1 - USUAL):
            return None
        scale = np.maximum(together.std(axis=0), 1e-6)
        distances = _nearest(together / scale, together / scale, exclude_self=True)
        unit = max(float(np.quantile(distances, USUAL)), 1e-6)
        rows = {name: each / scale for name, each in chosen.items()}
        return cls(rows, relevant, scale, unit)

    def strangeness(self, inputs: np.ndarray) -> np.ndarray:
        """The distance of each row from all kept rows, in units of the usual one."""
        everything = np.concatenate(list(self.rows.values()))
        scaled = inputs[:, self.relevant] / self.scale
        return _nearest(scaled, everything) / self.unit

    def between(self) -> list[float]:
        """Per known site: the share of its rows that would be strange to the other sites alone."""
        shares = []
        for name, own in self.rows.items() if len(self.rows) > 1 else ():
            others = np.concatenate([each for other, each in self.rows.items() if other != name])
            shares.append(float((_nearest(own, others) > self.unit).mean()))
        return shares


def _nearest(rows: np.ndarray, kept: np.ndarray, *, exclude_self: bool = False) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1).fit(kept)
    return search.kneighbors(None if exclude_self else rows)[0][:, 0]
