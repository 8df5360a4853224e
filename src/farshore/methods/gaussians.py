"""Gaussians of features, one for each pair of domain and class: what a method without rows
remembers of the past.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# on the diagonal of a covariance, as in EFC's code; relative to the mean variance where that is
# above 1
JITTER = 1e-5


class Gaussians:
    """Label, mean and a factor of the covariance of each (a Cholesky factor, or standard
    deviations), in order of learning.
    """

    def __init__(self, *, full: bool) -> None:
        self.full = full
        self.owners: list[str] = []  # the domain of each
        self.parts: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self.owners)

    def add(self, domain: str, features: Tensor, labels: Tensor) -> None:
        """Fit one for each class that the domain has."""
        made = fit(features, labels, full=self.full)
        self.parts = {
            name: torch.cat([self.parts[name], part]) if self.owners else part
            for name, part in made.items()
        }
        self.owners += [domain] * len(made["labels"])

    def forget(self, domain: str) -> None:
        """Remove a domain's."""
        kept = [place for place, owner in enumerate(self.owners) if owner != domain]
        self.parts = {name: part[kept] for name, part in self.parts.items()}
        self.owners = [self.owners[place] for place in kept]

    def draw(self, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Features and labels of `rows` draws; every Gaussian is drawn as often as any other,
        but for one draw.
        """
        means, factors = self.parts["means"], self.parts["factors"]
        rounds = -(-rows // len(means))
        order = (
            torch.rand(rounds, len(means), generator=generator, device=means.device)
            .argsort(dim=1)
            .flatten()[:rows]
        )
        noise = torch.randn(
            rows, means.shape[1], generator=generator, device=means.device, dtype=means.dtype
        )
        spread = (
            (factors[order] @ noise[:, :, None])[:, :, 0] if self.full else factors[order] * noise
        )
        return means[order] + spread, self.parts["labels"][order]

    def state_dict(self) -> dict[str, Any]:
        """All of them."""
        return {"owners": self.owners, "parts": self.parts}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave."""
        self.owners = list(state["owners"])
        self.parts = {name: part.to(device) for name, part in state["parts"].items()}


@torch.no_grad()
def fit(features: Tensor, labels: Tensor, *, full: bool) -> dict[str, Tensor]:
    """Mean and factor of the unbiased covariance for each class there is; a class with one row
    has a point with jitter.
    """
    classes = labels.unique()
    means, factors = [], []
    for label in classes:
        rows = features[
            labels == label
        ].double()  # float32 loses the definiteness where rows are fewer than features
        centred = rows - rows.mean(dim=0)
        freedom = max(1, len(rows) - 1)
        variance = centred.square().sum(dim=0) / freedom
        jitter = JITTER * variance.mean().clamp(min=1)
        means.append(rows.mean(dim=0))
        factors.append(
            torch.linalg.cholesky(centred.T @ centred / freedom + jitter.expand_as(variance).diag())
            if full
            else (variance + jitter).sqrt()
        )
    return {
        "labels": classes,
        "means": torch.stack(means).to(features.dtype),
        "factors": torch.stack(factors).to(features.dtype),
    }
