"""Ridge: ridge regression onto the classes, from running sums."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from ...settings import Choice, MethodSettings, setting
from .entry import ClosedForm, ClosedFormSettings
from .head import Head, ScoreSums, folds, score, solve, temperature
from .sums import DomainSums, Sums

# The strengths that are compared, in units of the mean variance of a feature.
STRENGTHS = tuple(10 ** (exponent / 2) for exponent in range(-6, 4))
# The default width, by the number of inputs. Of two equal products one is kept, in 8 bytes.
PER_INPUT, FEWEST = 8, 400
BYTES_PER_PRODUCT = 4
# The least share of rows that is left after the degrees of freedom of a fit are taken off.
LEAST_SPARE = 0.05


class RidgeSettings(ClosedFormSettings):
    """The paper projects to 10,000 and chooses the strength on a split of the training rows. The
    width is ours: drifting columns need many features, and narrow tables gain nothing from them
    (bench/ridge_width.py). For images it is 2,000.
    """

    random_features: int | None = setting(
        None,
        Choice((200, 400, 800, 1600)),
        ge=0,
        le=10_000,
        help="M, the width of the random projection; 0: none; by default 8 per input (a column of "
        "numbers is two inputs, one tells that the value is missing), but at least 400",
    )
    sums_megabytes: float = setting(
        16.0,
        gt=0,
        le=1000,
        help="the most that the sums of products of a domain may take on disk and in memory, which "
        "limits the default width: 16 allow 1,999 features",
    )
    strength: float | None = setting(
        None,
        gt=1e-6,
        le=1e6,
        help="the ridge in units of the mean variance of a feature; by default chosen by leaving "
        "out one source at a time",
    )


class Ridge(ClosedForm):
    """Regress the one-hot classes on fixed features (RanPAC), using only sums that are kept per
    domain.

    Equation: h = relu(f(x) P) with f the scaled columns of a table or the features of the frozen
    network, and P random, N(0, 1/d) and fixed by the seed. Each domain d keeps G_d = Σ h hᵀ, Q_d =
    Σ h yᵀ and the counts of its classes. With G, Q and the mean of h over all domains, centred, W =
    (G + ρ (tr G / M) I)⁻¹ Q; the logits are t · (Wᵀ h + b), with b from the means. ρ is the one of
    10 strengths from 1e-3 to 30 with the least squared error on sources that W has not seen: each
    is left out in turn, and on its rows the error of the others' W is tr(Wᵀ G_d W) - 2 tr(Wᵀ Q_d) +
    n_d, from sums alone. With one domain it is generalised cross-validation. t, the inverse
    temperature, minimises the cross-entropy on the left-out sources, whose scores are assumed to be
    normal within each class; their moments follow from the sums.
    Paper: McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for Continual
    Learning", NeurIPS 2023; recursive sums as in Zhuang et al., "ACIL: Analytic Class-Incremental
    Learning with Absolute Memorization and Privacy Protection", NeurIPS 2022.

    No row is kept, and the run's number of steps has no influence. The result does not depend on
    the order of the domains; learning one at a time equals learning all at once; forgetting one
    equals never having seen it. This holds for fixed features: the scales of a table are those of
    its first domain, and `first_domain_tuning` trains the features on the first domain, so
    forgetting that domain leaves traces of it in them. A domain takes 4 M² bytes: 0.6 MB with M =
    400. M = max(400, 8 d) for d inputs, within `sums_megabytes`.
    Readings: sums are kept per domain, not only in total, so that a source can be left out or
    forgotten. The strength is relative to the features' variance; b is not shrunk. With more than
    10 domains, they are left out in 10 groups: every tenth of the sorted names, and with more than
    100 domains by a hash of each name. G_d adds products of float32 in float64.
    """

    name = "ridge"
    needs_classes = False
    reference = "McDonnell et al., NeurIPS 2023, arXiv:2307.02251"
    Settings: ClassVar[type[MethodSettings]] = RidgeSettings
    settings: RidgeSettings
    results_version = 2
    # Twice as fast, and the least strength is far above its rounding.
    product_type: ClassVar[torch.dtype] = torch.float32

    def projection(self, features: int) -> int:
        """M. It follows from the columns alone, never from rows: sites can be joined later."""
        settings = self.settings
        if settings.random_features is not None:
            return settings.random_features
        most = int(math.sqrt(1e6 * settings.sums_megabytes / BYTES_PER_PRODUCT)) - 1
        return max(1, min(max(FEWEST, PER_INPUT * features), most))

    def fit(self, domains: DomainSums) -> Head:
        """The regression on all domains together, with the strength and temperature as above."""
        if len(domains) == 1:
            return self._fit_one(domains.total())
        strengths = self._strengths()
        # Every third strength, then the neighbours of the best: the error has one valley.
        tried = _on_left_out(domains, strengths[::3])
        nearest = strengths.index(_least(tried))
        neighbours = [*strengths[max(0, nearest - 1) : nearest], *strengths[nearest + 1 :][:1]]
        tried |= _on_left_out(domains, neighbours)
        strength = _least(tried)
        head = Solver(domains.total()).head(strength)
        return head.scaled(self.task.tempered(lambda: temperature(tried[strength])))

    def _fit_one(self, total: Sums) -> Head:
        """The regression on one domain, by generalised cross-validation.

        Scores of the rows that W was fitted to vary too little; a left-out row's residual is larger
        by the factor 1 / (1 - degrees of freedom / n).
        """
        regression = Solver(total)
        tried = self._strengths()
        validated = [(regression.validated_error(strength), strength) for strength in tried]
        strength = min(validated)[1]
        head = regression.head(strength)
        inflation = regression.spare(strength) ** -2
        return head.scaled(self.task.tempered(lambda: temperature([score(head, total)], inflation)))

    def _strengths(self) -> tuple[float, ...]:
        fixed = self.settings.strength
        return STRENGTHS if fixed is None else (fixed,)


def _on_left_out(domains: DomainSums, strengths: Sequence[float]) -> dict[float, list[ScoreSums]]:
    """The scores on each left-out domain by the regression on the others, by strength."""
    scores: dict[float, list[ScoreSums]] = {strength: [] for strength in strengths}
    for rest, held in folds(domains) if strengths else ():
        regression = Solver(rest)
        for strength, of_folds in scores.items():
            of_folds.append(score(regression.head(strength), held))
    return scores


def _least(tried: Mapping[float, Sequence[ScoreSums]]) -> float:
    """The strength with the least squared error; every left-out domain counts the same."""
    folds = tried.items()
    errors = {strength: sum(float(of.squared_error) for of in each) for strength, each in folds}
    return min(errors, key=errors.__getitem__)


class Solver:
    """Ridge regression for one set of sums, at any strength."""

    def __init__(self, total: Sums) -> None:
        assert total.products is not None
        self.rows = total.rows
        self.mean = total.by_class.sum(dim=1) / self.rows
        self.shares = total.counts / self.rows
        self.products = total.products - self.rows * torch.outer(self.mean, self.mean)
        outputs = total.outputs
        self.targets = (total.by_class - torch.outer(self.mean, total.counts))[:, :outputs]
        self.around_means = (
            total.target_squares - self.rows * self.shares[:outputs].square()
        ).sum()
        least = torch.finfo(torch.float32).tiny * self.rows
        self.unit = self.products.diagonal().mean().clamp(min=float(least))
        self._spectrum: tuple[Tensor, Tensor] | None = None

    def head(self, strength: float) -> Head:
        """The regression at this strength."""
        shrunk = self.products.clone()
        shrunk.diagonal().add_(strength * self.unit)
        weight = solve(shrunk, self.targets, least=float(strength * self.unit))
        return Head(weight, self.shares[: weight.shape[1]] - self.mean @ weight)

    def validated_error(self, strength: float) -> float:
        """The squared error per row by generalised cross-validation."""
        weight = self._by_spectrum(strength)
        explained = 2 * (weight * self.targets).sum() - (weight * (self.products @ weight)).sum()
        return float((self.around_means - explained) / self.rows) / self.spare(strength) ** 2

    def spare(self, strength: float) -> float:
        """The share of rows that is left after the degrees of freedom of the fit are taken off."""
        values = self.spectrum[0]
        freedom = 1 + (values / (values + strength * self.unit)).sum()
        return max(LEAST_SPARE, 1 - float(freedom / self.rows))

    @property
    def spectrum(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues and eigenvectors of the centred products."""
        if self._spectrum is None:
            values, vectors = torch.linalg.eigh(self.products)
            self._spectrum = values.clamp(min=0), vectors
        return self._spectrum

    def _by_spectrum(self, strength: float) -> Tensor:
        values, vectors = self.spectrum
        return vectors @ ((vectors.T @ self.targets) / (values + strength * self.unit)[:, None])
