"""Invariance: the shape of a notion. Everything has a leading domain axis, so that domains are
compared without loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

# A statistic of E domains: named tensors [E, ...]. A prior is one of a single domain's, without
# gradient.
Statistic = dict[str, Tensor]
Reduction = Literal["mean", "sum"]


class Invariance(ABC):
    """A statistic φ of a domain, a penalty that compares domains, and distances to a stored prior
    Φ.

    reduction: whether a squared distance is the mean over a statistic's entries (as DomainBed) or
    their sum (as printed in the paper).
    scope: `batch` statistics are computed on the rows of one batch. A `domain` notion cannot be: it
    keeps a running state per domain, which `absorb` extends by a batch and `summary` turns into the
    statistic.
    """

    scope: Literal["batch", "domain"] = "batch"
    # Fewest rows of a domain with which the statistic means something.
    least_rows: ClassVar[int] = 1

    def __init__(self, reduction: Reduction = "mean") -> None:
        self.reduction: Reduction = reduction

    @abstractmethod
    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """φ of each domain: features [E, n, D], logits [E, n, C], labels [E, n] -> tensors [E,
        ...].
        """

    def absorb(
        self, state: Statistic | None, features: Tensor, logits: Tensor, labels: Tensor
    ) -> Statistic:
        """For scope `domain`: the state [E, ...] extended by a batch, differentiable in the
        batch alone.
        """
        raise NotImplementedError

    def summary(self, state: Statistic) -> Statistic:
        """For scope `domain`: the statistic that a state stands for."""
        raise NotImplementedError

    def penalty(self, statistics: Statistic) -> Tensor:
        """P = 1/s Σ_e ||φ_e - mean φ||²: how far the domains are apart. One domain gives 0."""
        return sum_of(
            self._entries((value - value.mean(dim=0, keepdim=True)).square()).mean()
            for value in statistics.values()
        )

    def deviation(self, statistic: Statistic, prior: Statistic) -> Tensor:
        """d(φ_s, Φ_e) for each stored prior [E, ...] against one current statistic [1, ...]:
        [E]. Used by the naive frame.
        """
        return self.distance(self.kept(statistic), prior)

    def distance(self, one: Statistic, other: Statistic) -> Tensor:
        """The squared distance of statistics [E, ...], entry by entry: [E]."""
        return sum_of(self._entries((value - other[name]).square()) for name, value in one.items())

    def kept(self, statistic: Statistic) -> Statistic:
        """What of a statistic [E, ...] is stored as a prior and compared with one: all of it,
        unless the notion can do with less.
        """
        return statistic

    def alignment(
        self, statistic: Statistic, prior: Statistic, logits: Tensor, stored: Mapping[str, Tensor]
    ) -> Tensor:
        """d(φ_e(B_e), Φ_e) for each replayed domain: [E]. Used by the tailored frame.

        `logits` [E, m, C] are the current ones of the replayed rows; `stored` holds what the memory
        kept beside the rows.
        """
        return self.deviation(statistic, prior)

    def domain_prior(self, parts: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Statistic | None:
        """The exact statistic of a whole domain, from parts (features [n, D], logits [n, C], labels
        [n]).

        None where it is the mean over rows, for then the running mean of the parts' statistics is
        exact already.
        """
        return None

    def fit(self, features: Tensor, generator: torch.Generator) -> None:
        """Called once, at the end of the first domain, with features of its rows: for notions
        that have state of their own.
        """

    def state_dict(self) -> dict[str, Any]:
        """What `fit` fixed."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave."""

    def _entries(self, squares: Tensor) -> Tensor:
        """[E, ...] -> [E]: mean or sum over a statistic's entries."""
        flat = squares.flatten(1) if squares.ndim > 1 else squares[:, None]
        return flat.mean(dim=1) if self.reduction == "mean" else flat.sum(dim=1)


def sum_of(parts: Iterable[Tensor]) -> Tensor:
    """The sum of some tensors."""
    total: Tensor | None = None
    for part in parts:
        total = part if total is None else total + part
    assert total is not None
    return total
