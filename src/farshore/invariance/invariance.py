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
# Numbers in which priors are kept.
Storage = Literal["float32", "float16"]


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


class Priors:
    """The statistic Φ_e of each finished domain, by name in the order of learning, one behind the
    other in one tensor a name, so that a step gathers them.

    `storage` float16 halves their bytes: every statistic is divided by its largest entry first,
    because variances of gradients lie below the smallest half-precision number.
    """

    def __init__(self, storage: Storage = "float32") -> None:
        self.storage: Storage = storage
        self.names: list[str] = []
        # [room, ...]; the room doubles when it is full, so that a domain costs the same late as
        # early
        self._kept: Statistic = {}
        self._scale: Statistic = {}  # [room]
        self._mean: Statistic | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def by_domain(self) -> dict[str, Statistic]:
        """The prior of each domain, as a step sees it."""
        stacked = self.stacked()
        return {
            domain: {name: value[place] for name, value in stacked.items()}
            for place, domain in enumerate(self.names)
        }

    def set(self, domain: str, prior: Statistic) -> None:
        """Store or replace a domain's prior."""
        if domain not in self.names:
            self.names.append(domain)
        self._make_room(prior)
        place = self.names.index(domain)
        for name, value in prior.items():
            value = value.detach()
            if self.storage == "float16":
                largest = value.abs().max()
                self._scale[name][place] = torch.where(largest > 0, largest, 1.0)
                value = value / self._scale[name][place]
            self._kept[name][place] = value
        self._mean = None

    def forget(self, domain: str) -> None:
        """Remove a domain's prior."""
        if domain not in self.names:
            return
        place = self.names.index(domain)
        self.names.remove(domain)
        for rows in (self._kept, self._scale):
            for name, value in rows.items():
                rows[name] = torch.cat([value[:place], value[place + 1 :]])
        self._mean = None

    def stacked(self, domains: Tensor | None = None) -> Statistic:
        """[E, ...]: all priors, or those of the numbered domains."""
        chosen = slice(len(self)) if domains is None else domains
        if self.storage == "float32":
            return {name: value[chosen] for name, value in self._kept.items()}
        return {
            name: value[chosen].float() * over(self._scale[name][chosen], value)
            for name, value in self._kept.items()
        }

    def mean(self) -> Statistic:
        """The mean over the domains, [1, ...]; computed once a domain."""
        if self._mean is None:
            self._mean = {
                name: value.mean(dim=0, keepdim=True) for name, value in self.stacked().items()
            }
        return self._mean

    def state_dict(self) -> dict[str, Any]:
        """All priors with their names, as they are stored."""
        held: dict[str, Any] = {"names": list(self.names), "priors": self._listed(self._kept)}
        return held | ({"scales": self._listed(self._scale)} if self.storage == "float16" else {})

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave."""
        self.names = list(state["names"])
        self._kept = _stack(state["priors"], device)
        self._scale = _stack(state.get("scales", []), device)
        self._mean = None

    def _listed(self, rows: Statistic) -> list[Statistic]:
        return [{name: value[place] for name, value in rows.items()} for place in range(len(self))]

    def _make_room(self, prior: Statistic) -> None:
        for name, value in prior.items():
            held = self._kept.get(name)
            if held is not None and len(held) >= len(self):
                continue
            room = max(4, 2 * len(held)) if held is not None else 4
            half = self.storage == "float16"
            grown = value.new_zeros(
                (room, *value.shape), dtype=torch.float16 if half else value.dtype
            )
            scale = value.new_ones(room)
            if held is not None:
                grown[: len(held)] = held
                if half:
                    scale[: len(held)] = self._scale[name]
            self._kept[name] = grown
            if half:
                self._scale[name] = scale


def over(scale: Tensor, value: Tensor) -> Tensor:
    """[E] as [E, 1, ...], to multiply a statistic [E, ...]."""
    return scale.reshape(-1, *[1] * (value.ndim - 1))


def _stack(rows: list[Statistic], device: torch.device) -> Statistic:
    return (
        {name: torch.stack([row[name] for row in rows]).to(device) for name in rows[0]}
        if rows
        else {}
    )
