"""Priors: the statistic Φ_e of each finished domain, and the running state of notions whose scope is the domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from ..data.domain import Rows
from ..invariance.invariance import Invariance, Statistic
from ..invariance.running import RunningMean
from ..networks.network import Network

EVALUATION_ROWS = 4096


class Priors:
    """Statistics by domain name, in the order of learning, and stacked for a step."""

    def __init__(self) -> None:
        self.by_domain: dict[str, Statistic] = {}
        self._stacked: Statistic = {}

    def __len__(self) -> int:
        return len(self.by_domain)

    def set(self, domain: str, prior: Statistic) -> None:
        """Store or replace a domain's prior."""
        self.by_domain[domain] = {name: value.detach() for name, value in prior.items()}
        self._stack()

    def forget(self, domain: str) -> None:
        """Remove a domain's prior."""
        self.by_domain.pop(domain, None)
        self._stack()

    def stacked(self, domains: Tensor | None = None) -> Statistic:
        """[E, ...]: all priors, or those of the numbered domains."""
        if domains is None:
            return self._stacked
        return {name: value[domains] for name, value in self._stacked.items()}

    def state_dict(self) -> dict[str, Any]:
        """All priors with their names."""
        return {"names": list(self.by_domain), "priors": list(self.by_domain.values())}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave."""
        moved = [{name: value.to(device) for name, value in prior.items()} for prior in state["priors"]]
        self.by_domain = dict(zip(state["names"], moved, strict=True))
        self._stack()

    def _stack(self) -> None:
        priors = list(self.by_domain.values())
        self._stacked = {name: torch.stack([prior[name] for prior in priors]) for name in priors[0]} if priors else {}


def compute_prior(
    invariance: Invariance, network: Network, rows: Rows, order: Tensor, *, level: Literal["batch", "domain"], batch_size: int
) -> Statistic:
    """Φ of a domain by the present model in evaluation mode, over its rows in this (random) order.

    level `batch`: the mean over batches of the run's size of the batch's statistic; rows that do not fill a last batch are left
    out unless there is no other. level `domain`: the statistic of all rows at once. Where the statistic is a mean over
    rows the two are the same.
    """
    if level == "domain":
        exact = invariance.domain_prior(_outputs(network, rows, order, EVALUATION_ROWS))
        if exact is not None:
            return exact
        batch_size = 1
    size = min(batch_size, len(rows))
    mean = RunningMean()
    for features, logits, labels in _outputs(network, rows, order[: len(order) // size * size], size * max(1, EVALUATION_ROWS // size)):
        parts = len(labels) // size
        shaped = [tensor.reshape(parts, size, *tensor.shape[1:]) for tensor in (features, logits, labels)]
        mean.add(invariance.statistic(*shaped), len(labels))
    return mean.result()


def domain_features(network: Network, rows: Rows) -> Tensor:
    """Features of all rows by the present model in evaluation mode."""
    order = torch.arange(len(rows), device=rows.index.device)
    return torch.cat([features for features, _, _ in _outputs(network, rows, order, EVALUATION_ROWS)])


@torch.no_grad()
def _outputs(network: Network, rows: Rows, order: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Features, logits and labels of the rows, `size` at a time."""
    network.eval()
    device = next(network.parameters()).device
    for part in order.split(size):
        inputs, labels = rows.take(part)
        features = network.extract(inputs.to(device))
        yield features, network.classifier(features), labels.to(device)
