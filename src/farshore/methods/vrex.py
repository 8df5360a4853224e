"""CL-VREX and Naive-CL-VREX: equal risks in all domains."""

from typing import Literal

from ..invariance.risk import Risk
from ..settings import Power, Uniform, setting
from .invariant import AnnealedSettings
from .naive import Naive
from .tailored import Tailored, TailoredSettings

PENALTY = Power(10, -1, 5)


class CLVREXSettings(AnnealedSettings, TailoredSettings):
    """λ 10, 10^U(-1, 5); β 1, U(1, 1000); anneal steps 100 or 500: the paper's table."""

    penalty_weight: float = setting(
        10.0, PENALTY, ge=0, help="λ, the weight of the variance of the risks"
    )
    alignment_weight: float = setting(
        1.0, Uniform(1, 1000), ge=0, help="β, the weight of the alignment; 0: the paper's ablation"
    )
    alignment: Literal["logits", "risk"] = setting(
        "logits", help="align the replayed rows' logits (table 1) or the domain's risk"
    )
    distillation_reduction: Literal["mean", "sum_classes"] = setting(
        "mean", help="squared logit distance: mean or sum over classes"
    )


class CLVREX(Tailored):
    """V-REx over replayed domains: L = L_ERM^replay + λ · 1/s Σ_e (r_e - r̄)² + β · L_align.

    Equation: P = Var({r_e}_{e<=s}), the population variance of the domains' risks in the same
    update; L_align = 1/|E| Σ_e E_(x,z)~B_e mean_c (h(x)_c - z_c)², the replayed rows' logits
    against those stored at the end of their domain.
    Paper: Krueger et al., ICML 2021 (V-REx); the paper, table 1, row CL-VREX.

    Readings: the table's statistic is the risk but its alignment is on logits; logits are the
    default (`alignment=risk` is the other reading). λ is 1 before `anneal_steps`; then the
    optimiser is reset, as in DomainBed. There every step has a penalty, so here the steps that have
    one are counted: in the first domain, where there is none, the draws of the paper's range would
    have no effect.
    """

    name = "cl-vrex"
    results_version = 2
    reduces_to = ("er", {"penalty_weight": 0, "alignment_weight": 0, "anneal_steps": 0})
    reference = "the paper, after Krueger et al., ICML 2021"
    Settings = CLVREXSettings
    settings: CLVREXSettings
    weight_before_anneal = 1.0

    def make_invariance(self) -> Risk:
        """Risk with the chosen alignment."""
        return Risk(self.settings.alignment, self.settings.distillation_reduction)


class NaiveCLVREXSettings(AnnealedSettings):
    """λ 10, 10^U(-1, 5); anneal steps 100 or 500: the paper's table."""

    penalty_weight: float = setting(
        10.0, PENALTY, ge=0, help="λ, the weight of the distance to the stored risks"
    )


class NaiveCLVREX(Naive):
    """V-REx with stored risks: L = L_ERM(D_s) + λ · 1/(s-1) Σ_{e<s} (r_s - r̄_e)².

    Equation: r̄_e is the mean loss over D_e at the end of domain e and stays fixed (the paper's
    appendix, NaiveVREX).
    Paper: Krueger et al., ICML 2021. λ is 1 before `anneal_steps`; then the optimiser is reset, as
    in DomainBed. The steps are counted as in cl-vrex.
    """

    name = "naive-cl-vrex"
    reduces_to = ("finetune", {"penalty_weight": 0, "anneal_steps": 0})
    results_version = 3
    reference = "the paper, after Krueger et al., ICML 2021"
    Settings = NaiveCLVREXSettings
    settings: NaiveCLVREXSettings
    weight_before_anneal = 1.0

    def make_invariance(self) -> Risk:
        """Risk; the naive frame has no alignment."""
        return Risk()
