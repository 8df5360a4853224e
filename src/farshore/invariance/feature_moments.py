"""Feature moments (CORAL): mean and covariance of the features are equal in all domains."""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from .invariance import TINY, Invariance, Reduction, Statistic
from .running import RunningMoments


class FeatureMoments(Invariance):
    """φ_e = (μ_e, Σ_e); P = 1/s Σ_e (||μ_e - μ̄||² + ||Σ_e - Σ̄||²_F).

    Sun and Saenko, "Deep CORAL: Correlation Alignment for Deep Domain Adaptation", ECCV workshops
    2016, with the mean term that DomainBed and the paper add. Covariances are unbiased (divisor
    n - 1), so that the expectation over batches is the covariance of the domain; one row gives
    covariance 0. The prior is the mean of batch statistics or the exact moments of the domain.

    scope `domain`: one or two rows are too few for a useful covariance, so a running state per
    domain tracks mean and covariance. Rows of earlier batches are weighted by `decay` per batch and
    merged as in Chan et al.; the result is differentiable in the newest batch only.

    diagonal: priors keep only the variances, D numbers instead of D²; the penalty still compares
    full covariances.

    condition `label`: the penalty compares the moments of each domain at equal labels, each row
    weighted by how near its label is. Covariances are unbiased, with the divisor Σw - Σw²/Σw, and
    count only where weights are not of a single row.
    """

    least_rows = 4

    def __init__(
        self,
        reduction: Reduction = "mean",
        *,
        scope: Literal["batch", "domain"] = "batch",
        decay: float = 0.9,
        diagonal: bool = False,
        condition: Literal["none", "label"] = "none",
    ) -> None:
        super().__init__(reduction)
        self.scope = scope
        self.decay = decay
        self.diagonal = diagonal
        self.condition = condition

    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """μ [E, D] and Σ [E, D, D]."""
        mean, deviations = _moments(features)
        return {"mean": mean, "covariance": deviations / max(1, features.shape[1] - 1)}

    def at_labels(self, features: Tensor, labels: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """μ [E, A, D] and Σ [E, A, D, D] of weighted rows."""
        near = self.task.nearness(labels).to(features).mT  # [E, A, n]
        rows, squares = near.sum(dim=2), near.square().sum(dim=2)
        mean = near @ features / rows.clamp_min(TINY)[..., None]
        centred = features[:, None] - mean[:, :, None]
        several = (rows.square() > 1.5 * squares).to(rows)
        divisor = (rows - squares / rows.clamp_min(TINY)).clamp_min(TINY)
        covariance = (centred * near[..., None]).mT @ centred
        covariance = covariance * (several / divisor)[..., None, None]
        mass = rows / near.shape[2]
        return {"mean": (mean, mass), "covariance": (covariance, mass * several)}

    def kept(self, statistic: Statistic) -> Statistic:
        """Means and covariances, or means and variances."""
        if not self.diagonal:
            return statistic
        variance = statistic["covariance"].diagonal(dim1=-2, dim2=-1)
        return {"mean": statistic["mean"], "variance": variance}

    def absorb(
        self, state: Statistic | None, features: Tensor, logits: Tensor, labels: Tensor
    ) -> Statistic:
        """Decay the state and merge a batch into it.

        `rows` is the sum of the weights, `squares` the sum of the squared weights.
        """
        mean, deviations = _moments(features)
        rows = torch.full_like(mean[:, :1], features.shape[1])
        if state is None:
            return {"mean": mean, "deviations": deviations, "rows": rows, "squares": rows}
        past = self.decay * state["rows"]
        total = past + rows
        shift = mean - state["mean"]
        cross = shift[:, :, None] * shift[:, None, :] * (past * rows / total)[:, :, None]
        return {
            "mean": state["mean"] + shift * (rows / total),
            "deviations": self.decay * state["deviations"] + deviations + cross,
            "rows": total,
            "squares": self.decay**2 * state["squares"] + rows,
        }

    def summary(self, state: Statistic) -> Statistic:
        """Mean and covariance of the rows with weights w; unbiased: divisor Σw - Σw²/Σw."""
        divisor = (state["rows"] - state["squares"] / state["rows"]).clamp_min(1e-6)
        enough = (state["rows"] > 1.5).to(divisor.dtype)
        covariance = state["deviations"] * (enough / divisor)[:, :, None]
        return {"mean": state["mean"], "covariance": covariance}

    def domain_prior(self, parts: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Statistic:
        """Compute the moments over all rows of the domain, merged from parts."""
        moments = RunningMoments(outer=True)
        for features, _, labels in parts:
            mean, deviations = _moments(features[None].double())
            moments.merge(len(labels), mean[0], deviations[0])
        assert moments.mean is not None
        covariance = moments.covariance(unbiased=True).float()
        return {"mean": moments.mean.float(), "covariance": covariance}


def _moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [E, D] and summed products of deviations [E, D, D] over the rows."""
    mean = features.mean(dim=1)
    centred = features - mean[:, None]
    return mean, centred.transpose(1, 2) @ centred
