"""Head: the linear map from features to logits that a closed-form learner computes from its sums.

Its strength and its temperature are chosen by leaving out one source at a time: the head of the
other sources is judged on the sums of the one that was left out. No row is needed for it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .sums import DomainSums, Sums, unpack

# Rows that are drawn per domain to fit the temperature, in total over the classes.
DRAWS = 4096
# With more classes, rows have classes by their shares, in single precision; and with so many that
# there would be more scores than this, there are fewer rows.
MANY_CLASSES = 32
SCORES = 128 * DRAWS
TEMPERATURES = (1e-2, 1e4)
NARROWINGS, MANY_CLASSES_NARROWINGS = 30, 18
GOLDEN = 0.5 * (5**0.5 - 1)


@dataclass(frozen=True)
class Head:
    """logits = h @ weight + bias, with weight [width, classes]."""

    weight: Tensor
    bias: Tensor

    def scaled(self, factor: float) -> "Head":
        """The same head with all logits multiplied by this factor."""
        return Head(factor * self.weight, factor * self.bias)


@dataclass(frozen=True)
class ScoreSums:
    """Sums of the scores s that a head gives to the rows of a domain, computed from its sums.

    products: Σ s sᵀ; by_class: Σ s per class, one column per class; counts: rows per class;
    target_squares: Σ y² over all rows and outputs, y one-hot or numbers.
    """

    products: Tensor
    by_class: Tensor
    counts: Tensor
    target_squares: Tensor

    @property
    def squared_error(self) -> Tensor:
        """The mean over rows of |s - y|²: (tr Σ s sᵀ - 2 tr Σ s yᵀ + Σ |y|²) / n."""
        squares = self.products.trace() - 2 * self.by_class.trace() + self.target_squares
        return squares / self.counts.sum()


def solve(matrix: Tensor, right: Tensor, *, least: float) -> Tensor:
    """matrix⁻¹ right, for a symmetric matrix with eigenvalues from `least` on.

    Where rounding made it indefinite, its eigenvalues are raised to that bound.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if not int(failed):
        return torch.cholesky_solve(right, factor)
    values, vectors = torch.linalg.eigh(0.5 * (matrix + matrix.T))
    return vectors @ ((vectors.T @ right) / values.clamp(min=least)[:, None])


def score(head: Head, domain: Sums) -> ScoreSums:
    """The sums of the head's scores on the rows that were summed."""
    assert domain.products is not None
    projected = head.weight.T @ domain.by_class
    summed = torch.outer(projected.sum(dim=1), head.bias)
    products = head.weight.T @ domain.products @ head.weight + summed + summed.T
    products = products + domain.rows * torch.outer(head.bias, head.bias)
    by_class = projected + torch.outer(head.bias, domain.counts)
    return ScoreSums(products, by_class, domain.counts, domain.target_squares.sum())


def folds(domains: DomainSums) -> Iterator[tuple[Sums, Sums]]:
    """Leave out one group after the other: the sums of the rest, and those of the left-out one."""
    total = domains.total()
    for group in domains.groups():
        left_out = unpack(group)
        yield total - left_out, left_out


def temperature(scores: list[ScoreSums], inflation: float = 1.0) -> float:
    """The factor of the scores under which their softmax has the least cross-entropy.

    The scores of each class are taken as normal, with the mean of the class and a covariance that
    all classes of the domain share: both follow from the sums. Fixed draws from these
    distributions take the place of rows; every domain counts the same.

    inflation: of the covariance, for scores of rows that the head was fitted to.
    """
    drawn = [_draw(each, inflation, number) for number, each in enumerate(scores)]

    def cross_entropy(log_factor: float) -> float:
        factor = math.exp(log_factor)
        losses = (of * _cross_entropy(factor * draws, right) for draws, right, of in drawn)
        return sum(float(each.sum()) for each in losses)

    narrowings = MANY_CLASSES_NARROWINGS if len(scores[0].counts) > MANY_CLASSES else NARROWINGS
    low, high = map(math.log, TEMPERATURES)
    return math.exp(_minimum(cross_entropy, low, high, narrowings))


def _draw(scores: ScoreSums, inflation: float, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scores [n, draws, classes], the right class of each of the n, and their weights [n, 1].

    Of a few classes, each one gets the same draws. Of many, each row gets its own draw and one of
    the classes, which occur by their shares: the cost would grow by the square of their number.
    """
    counts, classes = scores.counts, len(scores.counts)
    means = scores.by_class / counts.clamp(min=1e-12)
    between = (means * counts) @ means.T
    root = _root(inflation * (scores.products - between) / counts.sum())
    if classes <= MANY_CLASSES:
        normal = _normal(0, DRAWS // classes, root)  # the same for every domain and learner
        every = torch.arange(classes, device=root.device)
        return means.T[:, None] + normal @ root.T, every, (counts / counts.sum())[:, None]
    rows = max(1, min(DRAWS, SCORES // classes))
    quantiles = (torch.arange(rows, dtype=torch.float64, device=root.device) + 0.5) / rows
    right = torch.searchsorted(counts.cumsum(0) / counts.sum(), quantiles)
    drawn = means.T[right] + _normal(number, rows, root) @ root.T
    return drawn[:, None].float(), right, means.new_full((rows, 1), 1 / rows)


def _normal(seed: int, rows: int, like: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((rows, len(like)), generator=generator, dtype=like.dtype).to(like.device)


def _root(covariance: Tensor) -> Tensor:
    """A matrix R with R Rᵀ = covariance, whose eigenvalues are 0 where rounding made them less."""
    if len(covariance) > MANY_CLASSES:  # a small ridge is much faster than the eigenvalues
        ridge = 1e-9 * covariance.diagonal().mean()
        raised = covariance + ridge * torch.eye(len(covariance)).to(covariance)
        root: Tensor
        root, failed = torch.linalg.cholesky_ex(raised)
        if not int(failed):
            return root
    values, vectors = torch.linalg.eigh(0.5 * (covariance + covariance.T))
    root = vectors * values.clamp(min=0).sqrt()
    return root


def _cross_entropy(logits: Tensor, right: Tensor) -> Tensor:
    """-log p of the right class [n], [n, draws], for logits [n, draws, classes]."""
    of_right = logits[torch.arange(len(right)), :, right]
    return (logits.logsumexp(dim=2) - of_right) / logits.shape[1]


def _minimum(function: Callable[[float], float], low: float, high: float, narrowings: int) -> float:
    """The place of the minimum of a function with one valley, by golden-section search."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(narrowings):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)
