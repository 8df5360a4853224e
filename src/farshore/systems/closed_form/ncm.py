"""NCM: the nearest class mean."""

from typing import ClassVar

import torch

from ...settings import MethodSettings
from .entry import ClosedForm, ClosedFormSettings
from .head import Head
from .sums import DomainSums, Level


class NCMSettings(ClosedFormSettings):
    """The paper has none; the features are our choice."""


class NCM(ClosedForm):
    """Predict the class whose mean is nearest in the space of the features.

    Equation: h_c(x) = -|f(x) - μ_c|² / (2σ²) with μ_c = Σ_d S_dc / Σ_d n_dc. Each domain d keeps
    S_dc, the sum of f over its rows of class c, their number n_dc, and Σ |f|², from which the
    variance σ² of one feature around its class mean follows. The term |f(x)|² is the same for all
    classes and left out, so the logits are linear in f.
    Paper: Mensink et al., "Distance-Based Image Classification: Generalizing to New Classes at
    Near-Zero Cost", TPAMI 2013, without its learned metric.

    A domain is learned in one pass over its rows; the run's number of steps has no influence. The
    result does not depend on the order of the domains, and forgetting one is exact, as for `ridge`,
    with the same limits: scales of a table and tuned features stay those of the first domain.
    Readings: probabilities are those of normal classes with one variance; features that vary
    together make them too confident. `ridge` and `slda` are calibrated.
    """

    name = "ncm"
    reference = "Mensink et al., TPAMI 2013"
    Settings: ClassVar[type[MethodSettings]] = NCMSettings
    settings: NCMSettings
    level: ClassVar[Level] = "means"

    def fit(self, domains: DomainSums) -> Head:
        """The class means of all domains together, in units of the variance around them."""
        total = domains.total()
        assert total.squares is not None
        means = total.by_class / total.counts.clamp(min=1e-12)
        norms = means.square().sum(dim=0)
        scatter = total.squares - (total.counts * norms).sum()
        # With one row per class there is no scatter: any small variance keeps the logits finite.
        least = 1e-6 * total.squares + torch.finfo(torch.float32).tiny
        variance = torch.maximum(scatter, least) / (total.rows * len(means))
        return Head(means / variance, -0.5 * norms / variance)
