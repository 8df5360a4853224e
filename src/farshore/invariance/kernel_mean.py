"""Kernel mean (MMD): equal feature distributions in all domains, by random Fourier features."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from ..base.forms import Like
from .invariance import TINY, Invariance, Statistic

MEDIAN_ROWS = 1000


class KernelMean(Invariance):
    """φ_e = mean of z(f(x)) over domain e; P = 1/s Σ_e ||φ_e - φ̄||².

    P estimates the squared maximum mean discrepancy.

    Li et al., "Domain Generalization with Adversarial Feature Learning", CVPR 2018; Rahimi and
    Recht, "Random Features for Large-Scale Kernel Machines", 2007. z(x)·z(y) estimates the kernel
    exp(-||x - y||² / 2σ²):
    `cos`: z = sqrt(2/R) cos(wᵀx/σ + b), w ~ N(0, I), b ~ U[0, 2π); `paired`: R/2 frequencies, z =
    sqrt(2/R) [cos, sin].

    The random features and the bandwidth are fixed once, at the end of the first domain (no term
    needs them earlier), and saved: a prior is meaningless under different random features. σ is the
    median distance between the features of at most 1,000 rows, or a given number. The squared norm
    is the sum over the R entries, because 1/R is part of z.

    condition `label`: the penalty compares the mean embeddings of each domain at equal labels, each
    row weighted by how near its label is. All pairs of rows then count by a kernel of their labels.
    """

    row_mean = True

    def __init__(
        self,
        size: int = 128,
        *,
        form: Literal["cos", "paired"] = "cos",
        bandwidth: float | Literal["median"] = "median",
        condition: Literal["none", "label"] = "none",
    ) -> None:
        super().__init__("sum")
        self.condition = condition
        self.size = size
        self.form = form
        self.bandwidth: float | Literal["median"] = bandwidth
        self.frequencies: Tensor | None = None
        self.phases: Tensor | None = None
        self.sigma: Tensor | None = None

    def fit(self, features: Tensor, generator: torch.Generator) -> None:
        """Draw the frequencies and fix the bandwidth, for features [n, D] of the first domain."""
        device, dtype = features.device, features.dtype
        width = self.size // 2 if self.form == "paired" else self.size
        self.frequencies = torch.randn(
            features.shape[1], width, generator=generator, device=device, dtype=dtype
        )
        self.phases = (
            2 * math.pi * torch.rand(width, generator=generator, device=device, dtype=dtype)
        )
        chosen = torch.randperm(len(features), generator=generator, device=device)[:MEDIAN_ROWS]
        if self.bandwidth == "median":
            sigma = median_distance(features[chosen])
        else:
            sigma = torch.tensor(float(self.bandwidth))
        self.sigma = sigma.to(device=device, dtype=dtype)

    def embed(self, features: Tensor) -> Tensor:
        """z of each row, [..., R]."""
        assert self.frequencies is not None
        assert self.phases is not None
        assert self.sigma is not None
        angle = features @ self.frequencies / self.sigma
        if self.form == "paired":
            return math.sqrt(2 / self.size) * torch.cat([angle.cos(), angle.sin()], dim=-1)
        return math.sqrt(2 / self.size) * (angle + self.phases).cos()

    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """The mean embedding of each domain, [E, R]."""
        return {"embedding": self.embed(features).mean(dim=1)}

    def at_labels(self, features: Tensor, labels: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """The mean embedding of weighted rows, [E, A, R]."""
        near = self.task.nearness(labels).to(features).mT  # [E, A, n]
        rows = near.sum(dim=2)
        mean = near @ self.embed(features) / rows.clamp_min(TINY)[..., None]
        return {"embedding": (mean, rows / near.shape[2])}

    def state_dict(self) -> dict[str, Any]:
        """The random features and the bandwidth; empty before the first domain has ended."""
        if self.sigma is None:
            return {}
        return {"frequencies": self.frequencies, "phases": self.phases, "sigma": self.sigma}

    def fitted_form(self, width: int) -> Any:
        """Frequencies [width, R], phases [R] and the bandwidth."""
        features = self.size // 2 if self.form == "paired" else self.size
        shapes = {"frequencies": (width, features), "phases": (features,), "sigma": ()}
        return {name: Like(shape, torch.float32) for name, shape in shapes.items()}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        for name, value in state.items():
            setattr(self, name, value.to(device))


def median_distance(features: Tensor) -> Tensor:
    """Median distance between all pairs of rows; 1 if there is no pair or all rows are equal."""
    if len(features) < 2:
        return features.new_ones(())
    median = torch.pdist(features).quantile(0.5)
    return torch.where(median > 0, median, torch.ones_like(median))
