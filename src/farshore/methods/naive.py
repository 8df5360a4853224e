"""The naive frame: no replay; the current domain's statistic is pulled to the stored priors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..base.forms import FormError
from ..data.batch import Batch
from ..data.domain import Rows
from ..invariance.invariance import Invariance, Statistic
from ..memory import Memory
from ..networks.network import Network
from .invariant import InvariantSettings, InvariantState
from .method import MakeOptimizer, Method, Terms


class Naive(Method):
    """L = L_ERM(D_s) + λ · 1/(s-1) Σ_{e<s} d(φ_s, Φ_e) (the paper, Eq. 2 and 4).

    Φ_e are static summaries of past domains, of which nothing else is stored. With one domain there
    is no penalty.
    """

    Settings: ClassVar[type[InvariantSettings]] = InvariantSettings
    settings: InvariantSettings
    group = "naive"
    weighs_rows = True
    grows = True
    weight_before_anneal: ClassVar[float] = 0.0
    _mean: Statistic | None = None
    _spread: Tensor

    def make_invariance(self) -> Invariance:
        """Create the notion of invariance from the settings."""
        raise NotImplementedError

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Also create the notion of invariance."""
        super().attach(network, memory, generator, make)
        self.state = InvariantState(
            self.make_invariance(), self.settings, self.weight_before_anneal
        )
        self.invariance, self.priors = self.state.invariance, self.state.priors

    def weights(self) -> Mapping[str, float | Tensor]:
        """λ for the penalty."""
        return {"penalty": self.state.penalty_weight}

    def terms(self, batch: Batch) -> Terms:
        """`erm` on the current rows, and `penalty` once a domain has ended.

        A term of weight 0 is not computed.
        """
        features, logits = self.forward(batch)
        terms = {"erm": self.risk(logits, batch.labels, batch.weights)}
        if len(self.priors) and self.state.penalty_weight:
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
        mean = self.priors.mean()
        if self._mean is not mean:  # the first step since the priors changed
            self._mean = mean
            self._spread = self.invariance.distance(mean, self.priors.stacked()).mean()
        return self.invariance.deviation(statistic, mean)[0] + self._spread

    def before_step(self, step: int, domain_step: int) -> None:
        """Set λ."""
        self.state.before_step(step, domain_step, self.opts)

    def phase(self) -> Hashable:
        """The current λ."""
        return float(self.state.penalty_weight)

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Store Φ_s."""
        self.state.close_domain(domain, rows, self.network, self.generator)

    def forget(self, domain: str) -> None:
        """Remove the domain's prior."""
        self.state.forget(domain)

    def state_dict(self) -> dict[str, Any]:
        """Priors and the fitted state of the notion."""
        return self.state.state_dict()

    def grown_state(self, state: Mapping[str, Any], before: int, after: int) -> Mapping[str, Any]:
        """The priors and running states for additional classes."""
        return self.state.grown(state, before, after)

    def state_form(self) -> Any:
        """Priors, running states and the fitted state of the notion, for the network's features."""
        return self.state.state_form()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        if state["priors"]["names"] not in ([], self.domains):
            raise FormError("method.priors.names are not the domains that were learned")
        self.state.load_state_dict(state, self.network, self.device)
