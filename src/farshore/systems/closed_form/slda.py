"""SLDA: streaming linear discriminant analysis."""

from typing import ClassVar, Literal

import torch

from ...settings import Choice, MethodSettings, Power, setting
from .entry import ClosedForm, ClosedFormSettings
from .head import Head, folds, score, solve, temperature
from .sums import DomainSums, Sums

# Of the mean square of the features: a smaller variance within classes counts as this.
LEAST_SPREAD = 1e-12


class SLDASettings(ClosedFormSettings):
    """The shrinkage 1e-4 and equal class priors are the paper's; the distributions are ours."""

    shrinkage: float = setting(
        1e-4, Power(10, -5, -0.3), gt=1e-8, le=1, help="ε, the identity's share in the covariance"
    )
    prior: Literal["equal", "counts"] = setting(
        "equal", Choice(("equal", "counts")), help="class priors: equal, or shares of all rows"
    )


class SLDA(ClosedForm):
    """Model each class as normal, with its own mean and one covariance for all classes.

    Equation: h_c(x) = t · (μ_cᵀ Λ f(x) - μ_cᵀ Λ μ_c / 2 + log π_c) with
    Λ = ((1 - ε) Σ + ε (tr Σ / d) I)⁻¹, the class means μ_c and the shared covariance Σ of all rows
    around their class means. Each domain keeps Σ f fᵀ (its upper triangle), Σ f per class and the
    classes' counts, in float64: 4 d² bytes for d features.
    Paper: Hayes, Kanan, "Lifelong Machine Learning with Deep Streaming Linear Discriminant
    Analysis", CVPR Workshops 2020.

    A domain is learned in one pass over its rows; the run's number of steps has no influence. The
    result does not depend on the order of the domains, and forgetting one is exact, as for `ridge`,
    with the same limits: scales of a table and tuned features stay those of the first domain.
    Readings: the covariance is that around the final means, which does not depend on the order; the
    paper updates it around running means. The identity is scaled by the mean variance, because
    features can have any scale. t, the inverse temperature, is fitted as for `ridge`.
    Where there is no spread, as with one row per class, 1e-12 of their mean square stands for it.
    """

    name = "slda"
    reference = "Hayes, Kanan, CVPRW 2020, arXiv:1909.01520"
    Settings: ClassVar[type[MethodSettings]] = SLDASettings
    settings: SLDASettings

    def fit(self, domains: DomainSums) -> Head:
        """The discriminant of all domains together, calibrated on left-out ones."""
        total = domains.total()
        head = self.discriminant(total)
        if len(domains) == 1:
            spare = float((total.rows - len(total.by_class)).clamp(min=1))
            inflation = float(total.rows) / spare
            return head.scaled(temperature([score(head, total)], inflation))
        scores = [score(self.discriminant(rest), held) for rest, held in folds(domains)]
        return head.scaled(temperature(scores))

    def discriminant(self, total: Sums) -> Head:
        """The discriminant without its temperature."""
        assert total.products is not None
        counts, width = total.counts, len(total.by_class)
        means = total.by_class / counts.clamp(min=1e-12)
        covariance = (total.products - (means * counts) @ means.T) / total.rows
        # With one row per class there is no spread at all.
        least = LEAST_SPREAD * total.products.diagonal().mean() / total.rows
        least = least.clamp(min=torch.finfo(torch.float32).tiny)
        variance = covariance.diagonal().mean().clamp(min=least)
        shrinkage = self.settings.shrinkage
        identity = torch.eye(width, dtype=covariance.dtype, device=covariance.device)
        # In units of the mean variance, so that no scale of the features is too small.
        matrix = (1 - shrinkage) * covariance / variance + shrinkage * identity
        weight = solve(matrix, means, least=shrinkage) / variance
        bias = -0.5 * (means * weight).sum(dim=0)
        if self.settings.prior == "counts":
            bias = bias + (counts / total.rows).clamp(min=1e-12).log()
        return Head(weight, bias)
