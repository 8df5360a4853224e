"""Gradient variance (Fishr): equal variances of the classifier's gradients in all domains."""

from collections.abc import Iterable, Mapping
from typing import Literal

import torch
from torch import Tensor

from .invariance import Invariance, Reduction, Statistic
from .running import RunningMoments

LogNormalisation = Literal["l2", "standardize"]


class GradientVariance(Invariance):
    """φ_e = v_e, the variance over rows of the classifier's gradients; P = 1/s Σ_e ||v_e - v̄||².

    Rame, Dancette, Cord, "Fishr: Invariant Gradient Variances for Out-of-Distribution
    Generalization", ICML 2022.

    Closed form for a linear classifier: with δ the derivative of a row's loss in its outputs
    (softmax(z) - onehot(y) for classes), the gradient of a row is δ fᵀ (and δ for the bias). The
    mean gradient is G = Δᵀ F / n, the second moment S = (Δ∘Δ)ᵀ (F∘F) / n and v = S - G∘G: two
    matrix products, no loop over rows. Centred, divisor n (`corrected`: n - 1). S - G∘G can fall
    below 0 by cancellation and is clamped at 0.

    Alignment: 1 - cos(Norm(log(v_e + floor)), Norm(log(Φ_e + floor))), where Φ_e is the raw
    variance. Norm is `l2` (the printed formula; cos alone already does it) or `standardize`, which
    makes it a correlation and scale-free.

    decay > 0 gives scope `domain`: DomainBed's moving statistic V_e(t) = v_e(t) + decay · V_e(t-1),
    kept per domain, without gradients through earlier steps. The alignment uses V divided by its
    weight, because the prior is a plain variance.
    """

    least_rows = 4

    def __init__(
        self,
        reduction: Reduction = "mean",
        *,
        log_normalisation: LogNormalisation = "l2",
        log_floor: float = 1e-8,
        corrected: bool = False,
        decay: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.log_normalisation: LogNormalisation = log_normalisation
        self.log_floor = log_floor
        self.corrected = corrected
        self.decay = decay
        self.scope = "domain" if decay > 0 else "batch"

    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """v_e [E, C·D + C]: weights first, then biases. One row gives 0."""
        rows = labels.shape[1]
        mean, second = gradient_moments(features, self.task.slopes(logits, labels))
        variance = (second - mean.square()).clamp_min(0)
        if rows == 1:
            return {"variance": variance * 0}
        return {"variance": variance * (rows / (rows - 1)) if self.corrected else variance}

    def absorb(
        self, state: Statistic | None, features: Tensor, logits: Tensor, labels: Tensor
    ) -> Statistic:
        """V(t) = v(t) + decay · V(t-1), and its weight 1 + decay · weight(t-1)."""
        variance = self.statistic(features, logits, labels)["variance"]
        weight = torch.ones_like(variance[:, :1])
        if state is None:
            return {"variance": variance, "weight": weight}
        new = {"variance": variance, "weight": weight}
        return {name: value + self.decay * state[name] for name, value in new.items()}

    def summary(self, state: Statistic) -> Statistic:
        """The moving statistic with its weight."""
        return state

    def penalty(self, statistics: Statistic) -> Tensor:
        """P over the variances; the weight of a moving statistic is not compared."""
        return super().penalty({"variance": statistics["variance"]})

    def alignment(
        self, statistic: Statistic, prior: Statistic, logits: Tensor, stored: Mapping[str, Tensor]
    ) -> Tensor:
        """1 - cosine of the normalised log variances of replayed rows and prior, [E]."""
        variance = statistic["variance"]
        if "weight" in statistic:
            variance = variance / statistic["weight"]
        now, then = self._logs(variance), self._logs(prior["variance"])
        return 1 - torch.nn.functional.cosine_similarity(now, then, dim=1)

    def _logs(self, variance: Tensor) -> Tensor:
        logs = (variance + self.log_floor).log()
        if self.log_normalisation == "standardize":
            logs = logs - logs.mean(dim=1, keepdim=True)
        return torch.nn.functional.normalize(logs, dim=1)

    def grown(self, statistic: Statistic, before: int, after: int) -> Statistic:
        """The variances of additional classes are 0.

        A model that has learned a domain hardly ever predicts a class that does not occur in it, so
        the gradients of that output are 0 on its rows.
        """
        variance = statistic["variance"]
        weights, biases = variance.split([variance.shape[-1] - before, before], dim=-1)
        width = weights.shape[-1] // before
        parts = [
            torch.cat([part, part.new_zeros(*part.shape[:-1], (after - before) * per_class)], -1)
            for part, per_class in ((weights, width), (biases, 1))
        ]
        return {**statistic, "variance": torch.cat(parts, dim=-1)}

    def domain_prior(self, parts: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Statistic:
        """Compute the variance over all rows of the domain, merged from parts."""
        moments = RunningMoments(outer=False)
        for features, logits, labels in parts:
            rows = len(labels)
            slopes = self.task.slopes(logits[None].double(), labels[None])
            mean, second = gradient_moments(features[None].double(), slopes)
            moments.merge(rows, mean[0], rows * (second - mean.square())[0])
        return {"variance": moments.covariance(unbiased=self.corrected).clamp_min(0).float()}


def gradient_moments(features: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """First and second moments of the rows' gradients in (W, b): two tensors [E, C·D + C].

    delta: the derivative of each row's loss in its outputs, [E, n, C].
    """
    rows = delta.shape[1]
    with_bias = torch.cat([features, features.new_ones(*features.shape[:2], 1)], dim=2)
    mean = delta.transpose(1, 2) @ with_bias / rows
    second = delta.square().transpose(1, 2) @ with_bias.square() / rows
    return _weights_then_bias(mean), _weights_then_bias(second)


def _weights_then_bias(moments: Tensor) -> Tensor:
    """[E, C, D + 1] -> [E, C·D + C]."""
    return torch.cat([moments[:, :, :-1].flatten(1), moments[:, :, -1]], dim=1)
