"""Risk (V-REx): equal mean losses in all domains."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from .invariance import Invariance, Statistic

DistillationReduction = Literal["mean", "sum_classes"]


class Risk(Invariance):
    """φ_e = r_e, the mean loss on domain e; P = 1/s Σ_e (r_e - r̄)².

    P is the population variance of the risks.
    Krueger et al., "Out-of-Distribution Generalization via Risk Extrapolation", ICML 2021.
    With `regret`, φ_e = r_e - a_e, with the attainable risk a_e of the domain, a constant: what its
    noise leaves differs from domain to domain, and no model can make it equal.
    Alignment: keep the logits of replayed rows close to the stored ones (`align="logits"`, the
    paper's formula), or the risk close to the stored risk (`align="risk"`).
    """

    row_mean = True

    def __init__(
        self,
        align: Literal["logits", "risk"] = "logits",
        distillation: DistillationReduction = "mean",
        *,
        regret: bool = False,
    ) -> None:
        super().__init__()
        self.align = align
        # a of the current domain, [1], if risks are regrets; priors keep that of each past one.
        self.attainable = torch.zeros(1) if regret else None
        self.distillation: DistillationReduction = distillation

    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """r_e: mean loss over the rows of each domain, [E]."""
        losses = self.task.losses(logits.flatten(0, 1), labels.flatten(0, 1))
        return {"risk": losses.reshape(logits.shape[:2]).mean(dim=1)}

    def kept(self, statistic: Statistic) -> Statistic:
        """The risk, or the regret and what the domain could attain."""
        if self.attainable is None:
            return statistic
        risk = statistic["risk"]
        floor = self.attainable.to(risk).expand(len(risk))
        return {"risk": risk - floor, "attainable": floor}

    def alignment(
        self, statistic: Statistic, prior: Statistic, logits: Tensor, stored: Mapping[str, Tensor]
    ) -> Tensor:
        """E_(x,z) ||h(x) - z||² per replayed domain, or (r_e(B_e) - r̄_e)²."""
        if self.align == "risk":
            return self.distance(statistic, prior)
        return distillation(logits, stored["logits"], self.distillation)


def distillation(logits: Tensor, stored: Tensor, reduction: DistillationReduction) -> Tensor:
    """Squared distance of current logits [E, m, C] to stored ones, per domain: [E].

    Mean over rows; mean or sum over classes.
    """
    squares = (logits - stored.detach()).square()
    per_row = squares.mean(dim=2) if reduction == "mean" else squares.sum(dim=2)
    return per_row.mean(dim=1)
