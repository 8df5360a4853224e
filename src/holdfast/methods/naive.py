"""The naive frame: no replay; the current domain's statistic is pulled to the stored priors."""

from __future__ import annotations

from ..batch import Batch
from .invariant import InvariantMethod
from .method import Terms


class Naive(InvariantMethod):
    """L = L_ERM(D_s) + λ · 1/(s-1) Σ_{e<s} d(φ_s, Φ_e) (the paper, Eq. 2 and 4).

    Φ_e are static summaries of past domains; nothing else is kept of them. With one domain there is no penalty.
    """

    group = "naive"

    def terms(self, batch: Batch) -> Terms:
        """`erm` on the current rows, and `penalty` once a domain has ended. A term of weight 0 is not computed."""
        features, logits = self.forward(batch)
        terms = {"erm": self.risk(logits, batch.labels)}
        if len(self.priors) and self.penalty_weight:
            statistic = self.invariance.statistic(batch.current(features), batch.current(logits), batch.current(batch.labels))
            terms["penalty"] = self.invariance.deviation(statistic, self.priors.stacked()).mean()
        return terms
