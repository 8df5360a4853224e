"""The naive frame: no replay; the current domain's statistic is pulled to the stored priors."""

from torch import Tensor

from ..data.batch import Batch
from ..invariance.invariance import Invariance, Statistic
from .invariant import InvariantMethod
from .method import Terms


class Naive(InvariantMethod):
    """L = L_ERM(D_s) + λ · 1/(s-1) Σ_{e<s} d(φ_s, Φ_e) (the paper, Eq. 2 and 4).

    Φ_e are static summaries of past domains, of which nothing else is stored. With one domain there
    is no penalty.
    """

    group = "naive"

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and `penalty` once a domain has ended; a term of weight 0 is not computed."""
        features, logits = self.forward(batch)
        terms = {"erm": self.risk(logits, batch.labels, batch.weights)}
        if len(self.priors) and self.penalty_weight:
            statistic = self.invariance.statistic(
                batch.current(features), batch.current(logits), batch.current(batch.labels)
            )
            terms["penalty"] = self._deviation(statistic)
        return terms

    def _deviation(self, statistic: Statistic) -> Tensor:
        """1/(s-1) Σ_e d(φ_s, Φ_e).

        A mean of squared distances equals the squared distance to the mean prior plus the spread of
        the priors, which is constant between domains. This has the same value and gradient, at a
        cost that does not grow with the number of domains.
        """
        if type(self.invariance).deviation is not Invariance.deviation:
            return self.invariance.deviation(statistic, self.priors.stacked()).mean()
        mean, spread = self.priors.centre(self.invariance.distance)
        return self.invariance.deviation(statistic, mean)[0] + spread
