"""CL-Fishr and Naive-CL-Fishr: equal variances of the classifier's gradients in all domains."""

from dataclasses import replace
from typing import Literal

from ..invariance.gradient_variance import GradientVariance
from ..settings import Power, Uniform, setting
from .invariant import AnnealedSettings, BatchStatisticSettings
from .naive import Naive
from .tailored import Tailored, TailoredSettings

PENALTY = Power(10, 1, 4)


class NaiveCLFishrSettings(AnnealedSettings, BatchStatisticSettings):
    """λ 1000, 10^U(1, 4); anneal steps 100 or 500: the paper's table."""

    penalty_weight: float = setting(
        1000.0, PENALTY, ge=0, help="λ, the weight of the distance of gradient variances"
    )
    variance_correction: bool = setting(
        False, help="divide variances by n - 1 instead of n, for batches of unequal size"
    )


class CLFishrSettings(NaiveCLFishrSettings, TailoredSettings):
    """λ 1000, 10^U(1, 4); β 1, U(1, 1000); anneal steps 100 or 500: the paper's table."""

    alignment_weight: float = setting(
        1.0, Uniform(1, 1000), ge=0, help="β, the weight of the alignment; 0: the paper's ablation"
    )
    log_normalisation: Literal["l2", "standardize"] = setting(
        "l2", help="normalisation of log variances: as printed, or centred first (scale-free)"
    )
    log_floor: float = setting(1e-8, gt=0, help="ε in log(v + ε)")
    variance_decay: float = setting(
        0.0, ge=0, lt=1, help="γ of DomainBed's moving variances per domain; 0 as in the paper"
    )


class CLFishr(Tailored):
    """Fishr over replayed domains: L = L_ERM^replay + λ · 1/s Σ_e ||v_e - v̄||² + β · L_align.

    Equation: v_e = Var_(x,y)~B_e ∇_ω CE(h(x), y), over the classifier's weights only; L_align =
    1/|E| Σ_e (1 - cos(Norm(log(v_e + ε)), Norm(log(Φ_e + ε)))).
    Paper: Rame, Dancette, Cord, ICML 2022 (Fishr); the paper, table 1, row CL-Fishr.

    Readings: squared norms are means over entries, as in DomainBed, whose λ the paper uses.
    Variances are centred with divisor n. Norm is l2 as printed; `log_normalisation=standardize`
    makes the term scale-free, as the text claims. The prior is stored raw and normalised when used.
    λ is 0 before `anneal_steps`, counted as in cl-vrex; then the optimiser is reset.
    `variance_decay` > 0 is DomainBed's moving statistic: the notion then has scope `domain`.
    """

    name = "cl-fishr"
    results_version = 2
    reduces_to = ("er", {"penalty_weight": 0, "alignment_weight": 0, "anneal_steps": 0})
    reference = "the paper, after Rame et al., ICML 2022"
    Settings = CLFishrSettings
    settings: CLFishrSettings
    replay = replace(Tailored.replay, least_rows=GradientVariance.least_rows)

    def make_invariance(self) -> GradientVariance:
        """Gradient variance with the chosen norms."""
        settings = self.settings
        return GradientVariance(
            settings.statistic_reduction,
            log_normalisation=settings.log_normalisation,
            log_floor=settings.log_floor,
            corrected=settings.variance_correction,
            decay=settings.variance_decay,
        )


class NaiveCLFishr(Naive):
    """Fishr with stored variances: L = L_ERM(D_s) + λ · 1/(s-1) Σ_{e<s} ||v_s - v̄_e||².

    Equation: v̄_e is the mean over batches of D_e of the gradient variance at the end of domain e
    (`prior_level=domain`: over all its rows); the paper's appendix, NaiveFishr. Paper: Rame,
    Dancette, Cord, ICML 2022. λ is 0 before `anneal_steps`, counted as in cl-vrex.
    """

    name = "naive-cl-fishr"
    reduces_to = ("finetune", {"penalty_weight": 0, "anneal_steps": 0})
    results_version = 3
    reference = "the paper, after Rame et al., ICML 2022"
    Settings = NaiveCLFishrSettings
    settings: NaiveCLFishrSettings

    def make_invariance(self) -> GradientVariance:
        """Gradient variance; the naive frame has no alignment."""
        settings = self.settings
        reduction, corrected = settings.statistic_reduction, settings.variance_correction
        return GradientVariance(reduction, corrected=corrected)
