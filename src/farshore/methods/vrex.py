"""CL-VREX and Naive-CL-VREX: equal risks in all domains."""

from typing import Literal

import torch
from torch import Tensor

from ..data.batch import Batch
from ..data.domain import Rows
from ..invariance.attainable import MOST_ROWS, attainable_risk
from ..invariance.invariance import Statistic
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
    risk: Literal["raw", "regret"] = setting(
        "raw", help="what is to be equal: the risks, or the risks minus what each domain can attain"
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
    update; with `risk=regret`, of r_e - a_e, where a_e is the risk that domain e can attain;
    L_align = 1/|E| Σ_e E_(x,z)~B_e mean_c (h(x)_c - z_c)², the replayed rows' logits against those
    stored at the end of their domain.
    Paper: Krueger et al., ICML 2021 (V-REx); the paper, table 1, row CL-VREX. Regret instead of
    risk: Agarwal and Zhang, "Minimax Regret Optimization", COLT 2022; its variance is ours.

    Readings: domains differ in noise, and equal risks then ask the model to be worse where labels
    are clean. a_e estimates the least risk of any model on domain e, in the loss of the run: that
    of kernel regressions on at most 500 of its training rows, each row predicted without its fold
    of five, with the best of six strengths (`farshore.invariance.attainable`). It is computed once,
    before the first step on e, and kept with the prior: neither the network nor a later domain
    moves the yardstick. Validation rows, which select settings, and targets have no say. Inputs are
    those of the network, so images count by their pixels.

    The table's statistic is the risk but its alignment is on logits; logits are the default
    (`alignment=risk` is the other reading). λ is 1 before `anneal_steps`; then the optimiser is
    reset, as in DomainBed. There every step has a penalty, so here the steps that have one are
    counted: in the first domain, where there is none, the draws of the paper's range would have no
    effect.
    """

    name = "cl-vrex"
    results_version = 2
    reduces_to = ("er", {"penalty_weight": 0, "alignment_weight": 0, "anneal_steps": 0})
    reference = "the paper, after Krueger et al., ICML 2021"
    Settings = CLVREXSettings
    settings: CLVREXSettings
    invariance: Risk
    weight_before_anneal = 1.0

    def make_invariance(self) -> Risk:
        """Risk or regret with the chosen alignment."""
        settings = self.settings
        align, reduction = settings.alignment, settings.distillation_reduction
        return Risk(align, reduction, regret=settings.risk == "regret")

    def look_at(self, rows: Rows) -> None:
        """With regrets: what a model can attain on this domain."""
        if self.invariance.attainable is None:
            return
        order = torch.randperm(len(rows), generator=self.generator, device=self.generator.device)
        inputs, labels = rows.take(order[:MOST_ROWS])
        prepared = self.network.inputs(inputs.to(self.device)).detach()
        found = attainable_risk(self.task, prepared.cpu(), labels.cpu())
        self.invariance.attainable = torch.tensor([found], device=self.device)

    def set_prior(self, domain: str, rows: Rows) -> None:
        """Store Φ; what an earlier domain could attain stays as it was."""
        own = self.invariance.attainable
        if own is not None and domain in self.priors.names:
            place = self.priors.names.index(domain)
            self.invariance.attainable = self.priors.stacked()["attainable"][place : place + 1]
        super().set_prior(domain, rows)
        self.invariance.attainable = own

    def _statistic(self, batch: Batch, features: Tensor, logits: Tensor) -> Statistic:
        """The risks or regrets."""
        statistic = super()._statistic(batch, features, logits)
        if self.invariance.attainable is None:
            return statistic
        past = self.priors.stacked(batch.domains)["attainable"]
        return {"risk": statistic["risk"] - torch.cat([self.invariance.attainable, past])}


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
