"""Gaussians of features, one per pair of domain and class, for methods that keep no rows."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..base.forms import Like, ListOf, MapOf, check_form

# Added to the diagonal of a covariance, as in EFC's code; relative to the mean variance if that is
# above 1.
JITTER = 1e-5


class Gaussians:
    """Label, mean and covariance factor, or deviations, of each Gaussian, in learning order."""

    def __init__(self, *, full: bool) -> None:
        self.full = full
        self.owners: list[str] = []  # the domain of each Gaussian
        # With room for more: it doubles, so that a domain costs the same after any number of them.
        self._room: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self.owners)

    def add(self, domain: str, features: Tensor, labels: Tensor) -> None:
        """Fit one Gaussian for each class of the domain."""
        fitted, before = fit(features, labels, full=self.full), len(self)
        self.owners += [domain] * len(fitted["labels"])
        for name, part in fitted.items():
            old = self._room.get(name, part[:0])
            if len(old) < len(self):
                room = part.new_empty(max(len(self), 2 * before), *part.shape[1:])
                room[:before] = old[:before]
                self._room[name] = room
            self._room[name][before : len(self)] = part

    @property
    def parts(self) -> dict[str, Tensor]:
        """Labels, means and factors of all Gaussians, as views."""
        return {name: room[: len(self)] for name, room in self._room.items()}

    def forget(self, domain: str) -> None:
        """Remove a domain's Gaussians."""
        kept = [index for index, owner in enumerate(self.owners) if owner != domain]
        self._room = {name: part[kept] for name, part in self._room.items()}
        self.owners = [self.owners[index] for index in kept]

    def draw(self, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw features and labels of `rows` rows, equally often (±1) from every Gaussian."""
        parts = self.parts
        means, factors = parts["means"], parts["factors"]
        rounds = -(-rows // len(means))
        draws = torch.rand(rounds, len(means), generator=generator, device=means.device)
        order = draws.argsort(dim=1).flatten()[:rows]
        noise = torch.randn(
            rows, means.shape[1], generator=generator, device=means.device, dtype=means.dtype
        )
        spread = (
            (factors[order] @ noise[:, :, None])[:, :, 0] if self.full else factors[order] * noise
        )
        return means[order] + spread, parts["labels"][order]

    def state_dict(self) -> dict[str, Any]:
        """All Gaussians."""
        return {"owners": self.owners, "parts": self.parts}

    def check_state(self, state: Any, width: int, classes: int) -> None:
        """Raise a FormError unless these are Gaussians of features of this width."""
        check_form(state, {"owners": ListOf(""), "parts": MapOf(None)}, "gaussians")
        count = len(state["owners"])
        if not count and not any(len(part) for part in state["parts"].values()):
            return
        parts = {
            "labels": Like((count,), torch.long, below=classes),
            "means": Like((count, width)),
            "factors": Like((count, width, width) if self.full else (count, width)),
        }
        check_form(state["parts"], parts, "gaussians.parts")

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        self.owners = list(state["owners"])
        self._room = {name: part.to(device) for name, part in state["parts"].items()}


@torch.no_grad()
def fit(features: Tensor, labels: Tensor, *, full: bool) -> dict[str, Tensor]:
    """Mean and covariance's factor per class with rows; of a single row, only the jitter."""
    classes = labels.unique()
    means, factors = [], []
    for label in classes:
        # In float32 the covariance may not be positive definite if there are fewer rows than
        # features.
        rows = features[labels == label].double()
        centred = rows - rows.mean(dim=0)
        freedom = max(1, len(rows) - 1)
        variance = centred.square().sum(dim=0) / freedom
        jitter = JITTER * variance.mean().clamp(min=1)
        means.append(rows.mean(dim=0))
        if full:
            ridge = jitter.expand_as(variance).diag()
            factors.append(torch.linalg.cholesky(centred.T @ centred / freedom + ridge))
        else:
            factors.append((variance + jitter).sqrt())
    stacked = {"means": torch.stack(means), "factors": torch.stack(factors)}
    return {"labels": classes, **{name: of.to(features.dtype) for name, of in stacked.items()}}
