"""Head: the linear map from features to logits that a closed-form learner computes from its sums.

Its strength and its temperature are chosen by leaving out one source at a time: the head of the
other sources is judged on the sums of the one that was left out. No row is needed for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .sums import Sums, SumsOfDomain, add_up

# With more domains than this, several are left out together, so that the cost stays bounded.
MOST_FOLDS = 10
# Scores that are drawn per domain to fit the temperature, in total over the classes.
DRAWS = 4096
FEWEST_DRAWS = 8
TEMPERATURES = (1e-2, 1e4)
NARROWINGS = 30
GOLDEN = 0.5 * (5**0.5 - 1)


@dataclass(frozen=True)
class Head:
    """logits = h @ weight + bias, with weight [width, classes]."""

    weight: Tensor
    bias: Tensor

    def scaled(self, factor: float) -> Head:
        """The same head with all logits multiplied by this factor."""
        return Head(factor * self.weight, factor * self.bias)


@dataclass(frozen=True)
class ScoreSums:
    """Sums of the scores s that a head gives to the rows of a domain, computed from its sums.

    products: Σ s sᵀ; by_class: Σ s per class, one column per class; counts: rows per class.
    """

    products: Tensor
    by_class: Tensor
    counts: Tensor

    @property
    def squared_error(self) -> Tensor:
        """The mean over rows of |s - y|², y one-hot: (tr Σ s sᵀ - 2 Σ_i s_{y_i} + n) / n."""
        rows = self.counts.sum()
        return (self.products.trace() - 2 * self.by_class.trace() + rows) / rows


def solve(matrix: Tensor, right: Tensor, *, least: float) -> Tensor:
    """matrix⁻¹ right, for a symmetric matrix with eigenvalues from `least` on.

    Where rounding made it indefinite, its eigenvalues are raised to that bound.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if not int(failed):
        return torch.cholesky_solve(right, factor)
    values, vectors = torch.linalg.eigh(0.5 * (matrix + matrix.T))
    solution: Tensor = vectors @ ((vectors.T @ right) / values.clamp(min=least)[:, None])
    return solution


def score(head: Head, domain: Sums) -> ScoreSums:
    """The sums of the head's scores on the rows that were summed."""
    assert domain.products is not None
    projected = head.weight.T @ domain.by_class
    summed = torch.outer(projected.sum(dim=1), head.bias)
    products = head.weight.T @ domain.products @ head.weight + summed + summed.T
    products = products + domain.rows * torch.outer(head.bias, head.bias)
    by_class = projected + torch.outer(head.bias, domain.counts)
    return ScoreSums(products, by_class, domain.counts)


def folds(domains: Mapping[str, SumsOfDomain]) -> Iterator[tuple[Sums, Sums]]:
    """Leave out one domain after the other: the sums of the rest, and those of the left-out one."""
    names = sorted(domains)
    total = add_up(domains)
    for number in range(min(MOST_FOLDS, len(names))):
        left_out = add_up({name: domains[name] for name in names[number::MOST_FOLDS]})
        yield total - left_out, left_out


def temperature(scores: list[ScoreSums], inflation: float = 1.0) -> float:
    """The factor of the scores under which their softmax has the least cross-entropy.

    The scores of each class are taken as normal, with the mean of the class and a covariance that
    all classes of the domain share: both follow from the sums. Fixed draws from these
    distributions take the place of rows; every domain counts the same.

    inflation: of the covariance, for scores of rows that the head was fitted to.
    """
    drawn = [_draw(each, inflation) for each in scores]

    def cross_entropy(log_factor: float) -> float:
        factor = math.exp(log_factor)
        return sum(
            float((weights * _cross_entropy(factor * draws)).sum()) for draws, weights in drawn
        )

    return math.exp(_minimum(cross_entropy, *map(math.log, TEMPERATURES)))


def _draw(scores: ScoreSums, inflation: float) -> tuple[Tensor, Tensor]:
    """Scores [classes, draws, classes] and the share of each class, [classes, 1]."""
    counts, classes = scores.counts, len(scores.counts)
    means = scores.by_class / counts.clamp(min=1e-12)
    between = (means * counts) @ means.T
    covariance = inflation * (scores.products - between) / counts.sum()
    values, vectors = torch.linalg.eigh(0.5 * (covariance + covariance.T))
    root = vectors * values.clamp(min=0).sqrt()
    generator = torch.Generator().manual_seed(0)  # the same for every domain and learner
    shape = (max(FEWEST_DRAWS, DRAWS // classes), classes)
    normal = torch.randn(shape, generator=generator, dtype=torch.float64).to(root.device)
    return means.T[:, None] + normal @ root.T, (counts / counts.sum())[:, None]


def _cross_entropy(logits: Tensor) -> Tensor:
    """-log p of the right class, [classes, draws]; the first axis is the right class."""
    right = logits.diagonal(dim1=0, dim2=2).T
    return (logits.logsumexp(dim=2) - right) / logits.shape[1]


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """The place of the minimum of a function with one valley, by golden-section search."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(NARROWINGS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)
