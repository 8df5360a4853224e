"""Invariance: the interface of a notion of invariance, and the priors of past domains.

All tensors have a leading domain axis, so that domains are compared without loops.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task

# A statistic of E domains: named tensors [E, ...]. A prior is the statistic of a single domain,
# without gradient.
Statistic = dict[str, Tensor]
Reduction = Literal["mean", "sum"]
# Data types in which priors are stored.
Storage = Literal["float32", "float16"]
# Priors that take more bytes than this are stored in float16.
MOST_BYTES = 64_000_000
# The mean of more priors than this is a running one, so that each of them is added once.
FEW_PRIORS = 16
# No weight of rows is divided by less.
TINY = 1e-12


@dataclass(frozen=True)
class StatisticForms:
    """Examples of a prior [1, ...] and of a running state, if the notion has one."""

    prior: Statistic
    running: Statistic | None


class Invariance(ABC):
    """A statistic φ of a domain, a penalty that compares domains, and distances to a prior Φ.

    reduction: whether a squared distance is the mean over the entries of a statistic (as in
    DomainBed) or their sum (as printed in the paper).
    scope: `batch` statistics are computed from the rows of one batch. A `domain` statistic needs
    more rows: it keeps a running state per domain, which `absorb` extends by a batch and `summary`
    converts to the statistic.
    """

    scope: Literal["batch", "domain"] = "batch"
    # Fewest rows per domain for which the statistic is meaningful.
    least_rows: ClassVar[int] = 1
    # Whether the statistic is a mean over rows: its prior is then that of all rows.
    row_mean: ClassVar[bool] = False
    # Whether the penalty compares domains as they are, or at equal labels.
    condition: Literal["none", "label"] = "none"
    # What a label is; set by the method.
    task: Task = CLASSIFICATION

    def __init__(self, reduction: Reduction = "mean") -> None:
        self.reduction: Reduction = reduction

    def notions(self) -> "dict[str, Invariance]":
        """The notions that this one consists of, by name; an empty name stands for itself."""
        return {"": self}

    @staticmethod
    def joined(parts: Mapping[str, Statistic]) -> Statistic:
        """One statistic from those of `notions()`, with each entry under `notion.entry`."""
        return {
            f"{name}.{entry}" if name else entry: value
            for name, statistic in parts.items()
            for entry, value in statistic.items()
        }

    @abstractmethod
    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """φ of each domain, [E, ...], from features [E, n, D], logits [E, n, C] and labels."""

    def absorb(
        self, state: Statistic | None, features: Tensor, logits: Tensor, labels: Tensor
    ) -> Statistic:
        """For scope `domain`: extend the state [E, ...] by a batch.

        The result is differentiable in the batch only.
        """
        raise NotImplementedError

    def summary(self, state: Statistic) -> Statistic:
        """For scope `domain`: convert a state to the statistic."""
        raise NotImplementedError

    def penalty(self, statistics: Statistic) -> Tensor:
        """P = 1/s Σ_e ||φ_e - mean φ||²: how far apart the domains are. One domain gives 0."""
        return sum_of(
            self._entries((value - value.mean(dim=0, keepdim=True)).square()).mean()
            for value in statistics.values()
        )

    def at_labels(self, features: Tensor, labels: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """For condition `label`: φ_e at A labels, [E, A, ...], and how much of e is there, [E, A].

        A row counts at a label as much as its own label is near (`Task.nearness`).
        """
        raise NotImplementedError

    def penalty_at_labels(self, features: Sequence[Tensor], labels: Sequence[Tensor]) -> Tensor:
        """P = Σ_e,a m_ea ||φ_ea - φ̄_a||² / Σ_e,a m_ea, with φ̄_a = Σ_e m_ea φ_ea / Σ_e m_ea.

        features: [E, n, D] of some domains each, in the order of their labels.
        """
        parts, terms = [self.at_labels(*of) for of in zip(features, labels, strict=True)], []
        for name in parts[0]:
            value, mass = (torch.cat([part[name][of] for part in parts]) for of in (0, 1))
            weight = mass.reshape(*mass.shape, *[1] * (value.ndim - 2))
            mean = (weight * value).sum(dim=0) / weight.sum(dim=0).clamp_min(TINY)
            squares = self._entries((value - mean).square().flatten(0, 1))
            terms.append((mass.flatten() * squares).sum() / mass.sum().clamp_min(TINY))
        return sum_of(terms)

    def deviation(self, statistic: Statistic, prior: Statistic) -> Tensor:
        """d(φ_s, Φ_e), [E], between the current statistic [1, ...] and the priors [E, ...].

        Used by the naive frame.
        """
        return self.distance(self.kept(statistic), prior)

    def distance(self, one: Statistic, other: Statistic) -> Tensor:
        """The squared distance of statistics [E, ...], entry by entry: [E]."""
        return sum_of(self._entries((value - other[name]).square()) for name, value in one.items())

    def kept(self, statistic: Statistic) -> Statistic:
        """The part of a statistic [E, ...] that is stored as a prior; by default all of it."""
        return statistic

    def alignment(
        self, statistic: Statistic, prior: Statistic, logits: Tensor, stored: Mapping[str, Tensor]
    ) -> Tensor:
        """d(φ_e(B_e), Φ_e) for each replayed domain: [E]. Used by the tailored frame.

        `logits` [E, m, C] are the current logits of the replayed rows; `stored` contains the values
        that the memory stored with the rows.
        """
        return self.deviation(statistic, prior)

    def domain_prior(self, parts: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Statistic | None:
        """The exact statistic of a domain, from parts (features [n, D], logits [n, C], labels [n]).

        None if the statistic is a mean over rows, because then the running mean over the parts is
        already exact.
        """
        return None

    def grown(self, statistic: Statistic, before: int, after: int) -> Statistic:
        """A stored statistic [...] of a classifier that had fewer classes; by default the same."""
        return statistic

    def fit(self, features: Tensor, generator: torch.Generator) -> None:
        """Fit the notion's own state, if any, to features, once at the end of the first domain."""

    def fitted_form(self, width: int) -> Any:
        """The form of the state that `fit` determines for features of this width."""
        return {}

    def forms(self, width: int, classes: int, device: torch.device) -> StatisticForms:
        """The form of priors [1, ...] and running states: those of zeros, by a fitted notion."""
        rows = max(2, self.least_rows)
        zeros = torch.zeros(1, rows, width, device=device)
        logits = torch.zeros(1, rows, classes, device=device)
        labels = self.task.blank(1, rows, device=device)
        with torch.no_grad():
            prior = self.kept(self.statistic(zeros, logits, labels))
            absorbed = self.absorb(None, zeros, logits, labels) if self.scope == "domain" else None
        return StatisticForms(prior, absorbed)

    def state_dict(self) -> dict[str, Any]:
        """The state that `fit` determined."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""

    def _entries(self, squares: Tensor) -> Tensor:
        """[E, ...] -> [E]: mean or sum over the entries of a statistic."""
        flat = squares.flatten(1) if squares.ndim > 1 else squares[:, None]
        return flat.mean(dim=1) if self.reduction == "mean" else flat.sum(dim=1)


def sum_of(parts: Iterable[Tensor]) -> Tensor:
    """Sum tensors; there must be at least one."""
    total: Tensor | None = None
    for part in parts:
        total = part if total is None else total + part
    assert total is not None
    return total


class Priors:
    """The statistic Φ_e of each finished domain, in learning order.

    The priors are stacked in one tensor per name, so that a step can gather them.

    `storage` float16 halves their size. Every statistic is first divided by its largest entry,
    because gradient variances are below the smallest half-precision number.
    """

    def __init__(self, storage: Storage = "float32") -> None:
        self.storage: Storage = storage
        self.names: list[str] = []
        # [capacity, ...]; the capacity doubles when it is exhausted, so that adding a domain takes
        # constant time on average.
        self._values: Statistic = {}
        self._scale: Statistic = {}  # [capacity]
        self._centre: tuple[Statistic, Tensor] | None = None
        # Of the first priors: their number, their mean and the sum of their distances from it.
        self._running: tuple[int, Statistic, Tensor] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def set(self, domain: str, prior: Statistic) -> None:
        """Store or replace a domain's prior."""
        self._centre = None
        if domain in self.names:
            self._running = None
        else:
            self.names.append(domain)
        if self.storage == "float32":
            self._make_small(sum(value.nbytes for value in prior.values()))
        self._grow(prior)
        index = self.names.index(domain)
        for name, value in prior.items():
            value = value.detach()
            if self.storage == "float16":
                largest = value.abs().max()
                self._scale[name][index] = torch.where(largest > 0, largest, 1.0)
                value = value / self._scale[name][index]
            self._values[name][index] = value

    def forget(self, domain: str) -> None:
        """Remove a domain's prior."""
        if domain not in self.names:
            return
        index = self.names.index(domain)
        self.names.remove(domain)
        for stack in (self._values, self._scale):
            for name, value in stack.items():
                stack[name] = torch.cat([value[:index], value[index + 1 :]])
        self._centre = self._running = None

    def _make_small(self, size: int) -> None:
        """Store all priors in float16 if as many of this size in bytes would be too large."""
        if len(self) * size <= MOST_BYTES:
            return
        self.storage, self._running = "float16", None
        for name, value in self._values.items():
            largest = value.flatten(1).abs().amax(dim=1)
            self._scale[name] = torch.where(largest > 0, largest, 1.0)
            self._values[name] = (value / over(self._scale[name], value)).half()

    def stacked(self, domains: Tensor | slice | None = None) -> Statistic:
        """All priors, or those of the domains with these numbers, [E, ...]."""
        chosen = slice(len(self)) if domains is None else domains
        if self.storage == "float32":
            return {name: value[chosen] for name, value in self._values.items()}
        parts = {name: (value, self._scale[name][chosen]) for name, value in self._values.items()}
        return {name: of[chosen].float() * over(by, of) for name, (of, by) in parts.items()}

    def centre(
        self, distance: Callable[[Statistic, Statistic], Tensor]
    ) -> tuple[Statistic, Tensor]:
        """The mean prior [1, ...], and the mean squared distance of the priors from it.

        They are computed once per domain; with many priors, the newest one is added to them.
        """
        if self._centre is None and len(self) <= FEW_PRIORS:
            stack = self.stacked()
            mean = {name: value.mean(dim=0, keepdim=True) for name, value in stack.items()}
            self._centre = mean, distance(mean, stack).mean()
        elif self._centre is None:
            self._centre = self._running_centre(distance)
        return self._centre

    def _running_centre(
        self, distance: Callable[[Statistic, Statistic], Tensor]
    ) -> tuple[Statistic, Tensor]:
        """By Welford's recursion in float64."""
        done, mean, total = self._running or (0, {}, None)
        for index in range(done, len(self)):
            priors = self.stacked(slice(index, index + 1))
            new = {name: value.double() for name, value in priors.items()}
            mean = mean or new
            farther = distance(mean, new)[0] * (index / (index + 1))
            total = farther if total is None else total + farther
            mean = {name: old + (new[name] - old) / (index + 1) for name, old in mean.items()}
        assert total is not None
        self._running = len(self), mean, total
        return {name: value.float() for name, value in mean.items()}, (total / len(self)).float()

    def state_dict(self) -> dict[str, Any]:
        """All priors with their names, as they are stored."""
        state: dict[str, Any] = {"names": list(self.names), "priors": self._by_index(self._values)}
        if self.storage == "float16":
            state["scales"] = self._by_index(self._scale)
        return state

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        self.names = list(state["names"])
        self._values = _stack(state["priors"], device)
        self._scale = _stack(state.get("scales", []), device)
        self._centre = self._running = None
        if self._scale:
            self.storage = "float16"

    def _by_index(self, stack: Statistic) -> list[Statistic]:
        return [{name: value[index] for name, value in stack.items()} for index in range(len(self))]

    def _grow(self, prior: Statistic) -> None:
        """Make room for the prior of the newest domain."""
        for name, value in prior.items():
            old = self._values.get(name)
            if old is not None and len(old) >= len(self):
                continue
            capacity = max(4, 2 * len(old)) if old is not None else 4
            half = self.storage == "float16"
            grown = value.new_zeros(
                (capacity, *value.shape), dtype=torch.float16 if half else value.dtype
            )
            scale = value.new_ones(capacity)
            if old is not None:
                grown[: len(old)] = old
                if half:
                    scale[: len(old)] = self._scale[name]
            self._values[name] = grown
            if half:
                self._scale[name] = scale


def over(scale: Tensor, value: Tensor) -> Tensor:
    """Reshape [E] to [E, 1, ...], to multiply a statistic [E, ...]."""
    return scale.reshape(-1, *[1] * (value.ndim - 1))


def _stack(rows: list[Statistic], device: torch.device) -> Statistic:
    names = rows[0] if rows else ()
    return {name: torch.stack([row[name] for row in rows]).to(device) for name in names}
