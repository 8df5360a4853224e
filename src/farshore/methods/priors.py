"""Priors: the statistic Φ_e of each finished domain, and the running state of notions whose
scope is the domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from ..data.domain import Rows
from ..invariance.invariance import Invariance, Statistic
from ..invariance.running import RunningMean
from ..networks.network import EVALUATION_ROWS, Network

Storage = Literal["float32", "float16"]


class Priors:
    """Statistics by domain name, in the order of learning, one behind the other in one tensor a
    name, so that a step gathers them.

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


def compute_prior(
    invariance: Invariance,
    network: Network,
    rows: Rows,
    order: Tensor,
    *,
    level: Literal["batch", "domain"],
    batch_size: int,
) -> Statistic:
    """Φ of a domain by the present model in evaluation mode, over its rows in this (random) order.

    level `batch`: the mean over batches of the run's size of the batch's statistic; rows that do
    not fill a last batch are left out unless there is no other. level `domain`: the statistic of
    all rows at once. Where the statistic is a mean over rows the two are the same.
    """
    if level == "domain":
        exact = invariance.domain_prior(_outputs(network, rows, order, EVALUATION_ROWS))
        if exact is not None:
            return exact
        batch_size = 1
    size = min(batch_size, len(rows))
    mean = RunningMean()
    for features, logits, labels in _outputs(
        network, rows, order[: len(order) // size * size], size * max(1, EVALUATION_ROWS // size)
    ):
        parts = len(labels) // size
        shaped = [
            tensor.reshape(parts, size, *tensor.shape[1:]) for tensor in (features, logits, labels)
        ]
        mean.add(invariance.statistic(*shaped), len(labels))
    return mean.result()


def domain_features(network: Network, rows: Rows) -> Tensor:
    """Features of all rows by the present model in evaluation mode."""
    order = torch.arange(len(rows), device=rows.index.device)
    return torch.cat(
        [features for features, _, _ in _outputs(network, rows, order, EVALUATION_ROWS)]
    )


@torch.no_grad()
def _outputs(
    network: Network, rows: Rows, order: Tensor, size: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Features, logits and labels of the rows, `size` at a time."""
    network.eval()
    device = next(network.parameters()).device
    for part in order.split(size):
        inputs, labels = rows.take(part)
        features = network.extract(inputs.to(device))
        yield features, network.classifier(features), labels.to(device)
