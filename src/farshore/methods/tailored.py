"""The tailored frame: invariance over replayed domains in each update, aligned to stored priors."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..data.batch import Batch
from ..data.domain import Rows
from ..invariance.invariance import Statistic
from ..invariance.risk import distillation
from ..settings import Power, setting
from .invariant import InvariantMethod, InvariantSettings
from .method import Replay, Terms, gradient_norm

Forward = Literal["joint", "per-domain"]
# A shorter gradient of the penalty is rounding error and gets no larger weight.
LEAST_NORM = 1e-12


class TailoredSettings(InvariantSettings):
    """Settings of the tailored methods; β's default and distribution are the paper's table."""

    alignment_weight: float = setting(
        1.0, Power(10, -1, 1), ge=0, help="β, the weight of the alignment; 0: the paper's ablation"
    )
    distillation_weight: float = setting(
        0.0, ge=0, help="α, weight of distilling the stored logits, as in er-kd; not in the paper"
    )
    penalty_ratio: float | None = setting(
        None,
        gt=0,
        help="r: weigh the penalty in every step so that its gradient is r times as long as that "
        "of ERM, instead of by a fixed λ",
    )
    alignment_reduction: Literal["mean", "sum"] = setting(
        "mean", help="alignment over replayed domains: mean (appendix, pseudocode) or sum (Eq. 7)"
    )
    priors: Literal["static", "dynamic"] = setting(
        "static", help="dynamic: recompute priors from the memory after every domain (ablation)"
    )
    erm_reduction: Literal["pooled", "domain-mean"] = setting(
        "pooled", help="ERM: mean over all rows (pseudocode) or mean of the domains' means"
    )
    forward: Forward = setting(
        "joint",
        help="BatchNorm sees the whole batch, or one domain at a time (DomainBed's CORAL, MMD)",
    )


class Tailored(InvariantMethod):
    """L = L_ERM^replay + λ · P_s^replay + β · L_align (the paper, Eq. 8).

    P compares the statistics of the current and every replayed domain within the same update;
    L_align keeps the statistic of each replayed domain at the prior that was stored when the domain
    ended. With one domain both are absent. `distillation_weight` adds α · 1/|E| Σ_e E_(x,z)~B_e
    mean_c (h(x)_c - z_c)², the distance of replayed rows' logits to the stored ones.

    With `penalty_ratio`, λ = r ||∇L_ERM|| / ||∇P|| in every step, once annealing has ended: norms
    are over all trained parameters, and λ is a constant for the gradient. A penalty then acts
    with the same strength whatever its unit, even if the domains hardly differ any more.
    `penalty_weight=0` still switches it off.
    """

    Settings: ClassVar[type[TailoredSettings]] = TailoredSettings
    settings: TailoredSettings
    group = "tailored"
    # If many domains share a budget: a statistic of fewer rows is noisy, and each one has a cost.
    replay = Replay(memory="partitions", stores=("logits",), worth_rows=16)

    def uncaptured(self) -> str:
        """A notion of scope `domain` reads on the host which domains were drawn."""
        by_name = "running states of domains are looked up by name"
        return by_name if self.invariance.scope == "domain" else ""

    def weights(self) -> Mapping[str, float | Tensor]:
        """λ for the penalty, β for the alignment, α for the distillation."""
        return {
            **super().weights(),
            "alignment": self.settings.alignment_weight,
            "distillation": self.settings.distillation_weight,
        }

    def weights_of(self, terms: Terms) -> Mapping[str, float | Tensor]:
        """The weights, with λ from the gradients' norms if they are to have a fixed ratio."""
        ratio = self.settings.penalty_ratio
        if ratio is None or self.annealing or "penalty" not in terms:
            return self.weights()
        norms = [gradient_norm(terms[name], self.network) for name in ("erm", "penalty")]
        return {**self.weights(), "penalty": ratio * norms[0] / norms[1].clamp_min(LEAST_NORM)}

    def extract(self, batch: Batch) -> Tensor:
        """Features of the flat batch, in one pass or one pass per domain."""
        if self.settings.forward == "joint":
            return super().extract(batch)
        return torch.cat([self.network.extract(part) for part in batch.parts(batch.inputs)])

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and with replay the other terms; one of weight 0 is not computed."""
        features, logits = self.forward(batch)
        terms = {"erm": self._risk(batch, logits)}
        weights = self.weights()
        if batch.replayed and weights["distillation"]:
            distances = distillation(batch.replay(logits), batch.stored["logits"], "mean")
            terms["distillation"] = distances.mean()
        domain_scope = self.invariance.scope == "domain"
        if not batch.replayed or not (weights["penalty"] or weights["alignment"] or domain_scope):
            return terms
        statistic = self._statistic(batch, features, logits)
        if weights["penalty"]:
            terms["penalty"] = self._penalty(batch, features, statistic)
        if weights["alignment"]:
            replayed = {name: value[1:] for name, value in statistic.items()}
            prior = self.priors.stacked(batch.domains)
            of_rows = (batch.replay(logits), batch.stored)
            distances = self.invariance.alignment(replayed, prior, *of_rows)
            mean = self.settings.alignment_reduction == "mean"
            terms["alignment"] = distances.mean() if mean else distances.sum()
        return terms

    def _risk(self, batch: Batch, logits: Tensor) -> Tensor:
        if self.settings.erm_reduction == "pooled" or not batch.replayed:
            return self.risk(logits, batch.labels, batch.weights)
        weights: Sequence[Tensor | None] = [None] * (1 + batch.replayed)
        if batch.weights is not None:
            weights = batch.parts(batch.weights)
        parts = zip(batch.parts(logits), batch.parts(batch.labels), weights, strict=True)
        return torch.stack([self.risk(*part) for part in parts]).mean()

    def _penalty(self, batch: Batch, features: Tensor, statistic: Statistic) -> Tensor:
        """P of the statistics, or of those at equal labels."""
        if self.invariance.condition == "none":
            return self.invariance.penalty(statistic)
        return self.invariance.penalty_at_labels(batch.views(features), batch.views(batch.labels))

    def _statistic(self, batch: Batch, features: Tensor, logits: Tensor) -> Statistic:
        """φ of the current domain first, then of each replayed one, [1 + E, ...]."""
        if self.invariance.scope == "domain":
            return self._running_statistic(batch, features, logits)
        views = [batch.views(tensor) for tensor in (features, logits, batch.labels)]
        parts = [self.invariance.statistic(*view) for view in zip(*views, strict=True)]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def _running_statistic(self, batch: Batch, features: Tensor, logits: Tensor) -> Statistic:
        """For scope `domain`: add the rows to each domain's state, stored without gradients."""
        names = [self.current, *(self.domains[number] for number in batch.domains.tolist())]
        views = [batch.parts(tensor) for tensor in (features, logits, batch.labels)]
        summaries = []
        for name, *view in zip(names, *views, strict=True):
            own = (tensor[None] for tensor in view)
            state = self.invariance.absorb(self.running.get(name), *own)
            self.running[name] = {key: value.detach() for key, value in state.items()}
            summaries.append(self.invariance.summary(state))
        return {key: torch.cat([summary[key] for summary in summaries]) for key in summaries[0]}

    def before_domain(self, domain: str) -> None:
        """Remember which domain is current."""
        self.current = domain

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Store Φ_s; with dynamic priors, also recompute the earlier ones from the memory."""
        super().after_domain(domain, rows)
        if self.settings.priors == "dynamic" and self.memory is not None:
            for name, kept in self.memory.kept().items():
                if name != domain:
                    self._refresh(name, kept)

    def _refresh(self, domain: str, kept: dict[str, Tensor]) -> None:
        """Recompute Φ of the kept rows, and their stored logits, by the current model."""
        index = torch.arange(len(kept["labels"]), device=self.device)
        self.set_prior(domain, Rows(kept["inputs"], kept["labels"], index))
        with torch.no_grad():
            kept["logits"].copy_(self.network(kept["inputs"]))
