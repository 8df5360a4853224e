"""What the naive and the tailored frame share: an invariance, its priors, the weight of its
penalty, and annealing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..data.domain import Rows
from ..invariance.invariance import Invariance, Statistic
from ..memory import Memory
from ..networks.network import Network
from ..optimization import reset_optimizers
from ..settings import MethodSettings, Power, UniformInt, setting
from .method import MakeOptimizer, Method
from .priors import Priors, compute_prior, domain_features


class InvariantSettings(MethodSettings):
    """Settings of every method with a penalty. Defaults and distributions are the paper's table."""

    penalty_weight: float = setting(
        1.0, Power(10, -1, 1), ge=0, help="λ, the weight of the invariance penalty"
    )
    prior_storage: Literal["float32", "float16"] = setting(
        "float32", help="numbers in which the domains' priors are kept"
    )


class BatchStatisticSettings(InvariantSettings):
    """Settings of notions whose statistic has many entries and is no mean over rows (Fishr,
    CORAL).
    """

    statistic_reduction: Literal["mean", "sum"] = setting(
        "mean", help="squared norms: mean over entries (DomainBed) or sum (as printed)"
    )
    prior_level: Literal["batch", "domain"] = setting(
        "batch", help="prior: mean of batch statistics, or the statistic of all rows"
    )


class AnnealedSettings(InvariantSettings):
    """Settings of methods whose penalty begins later (V-REx, Fishr)."""

    anneal_steps: int = setting(
        100,
        UniformInt(0, 1000),
        ge=0,
        help="steps before the penalty gets its weight λ",
    )
    anneal_scope: Literal["global", "domain"] = setting(
        "global", help="count the steps over the run, or anew in each domain"
    )
    anneal_resets_optimizer: bool = setting(
        True, help="a fresh optimiser when the penalty gets its weight"
    )


class InvariantMethod(Method):
    """An Invariance with stored priors. Subclasses say how the statistic is compared: with other
    domains or with the priors.
    """

    Settings: ClassVar[type[InvariantSettings]] = InvariantSettings
    # The penalty's weight while annealing: 1 in DomainBed's V-REx, 0 in its Fishr.
    weight_before_anneal: ClassVar[float] = 0.0

    def make_invariance(self) -> Invariance:
        """The notion, built from the settings."""
        raise NotImplementedError

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Also build the notion."""
        super().attach(network, memory, generator, make)
        self.invariance = self.make_invariance()
        self.priors = Priors("float16" if self.settings.prior_storage == "float16" else "float32")
        self.running: dict[str, Statistic] = {}
        self.penalty_weight = self.settings.penalty_weight

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    def before_step(self, step: int, domain_step: int) -> None:
        """Set the penalty's weight; at the moment when annealing ends, the optimiser starts
        afresh.
        """
        if not isinstance(self.settings, AnnealedSettings):
            return
        count = step if self.settings.anneal_scope == "global" else domain_step
        annealing = count < self.settings.anneal_steps
        self.penalty_weight = (
            self.weight_before_anneal if annealing else self.settings.penalty_weight
        )
        if count == self.settings.anneal_steps > 0 and self.settings.anneal_resets_optimizer:
            reset_optimizers(self.opts)

    def phase(self) -> Hashable:
        """The penalty's present weight."""
        return float(self.penalty_weight)

    def weights(self) -> Mapping[str, float | Tensor]:
        """λ for the penalty."""
        return {"penalty": self.penalty_weight}

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Φ_s by the end-of-domain model; the notion's own state is fitted on the first domain
        just before.
        """
        if len(self.priors) == 0:
            self.invariance.fit(domain_features(self.network, rows), self.generator)
        self.set_prior(domain, rows)

    def set_prior(self, domain: str, rows: Rows) -> None:
        """Store Φ of these rows by the present model."""
        prior = {name: value[None] for name, value in self._prior(rows).items()}
        self.priors.set(
            domain, {name: value[0] for name, value in self.invariance.kept(prior).items()}
        )

    def _prior(self, rows: Rows) -> Statistic:
        order = torch.randperm(len(rows), generator=self.generator, device=self.device)
        level: Literal["batch", "domain"] = getattr(self.settings, "prior_level", "domain")
        return compute_prior(
            self.invariance,
            self.network,
            rows,
            order,
            level=level,
            batch_size=self.settings.batch_size,
        )

    def forget(self, domain: str) -> None:
        """Remove the domain's prior and running state."""
        self.priors.forget(domain)
        self.running.pop(domain, None)

    def state_dict(self) -> dict[str, Any]:
        """Priors, running states, and what the notion fitted."""
        return {
            "priors": self.priors.state_dict(),
            "running": self.running,
            "invariance": self.invariance.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.priors.load_state_dict(state["priors"], self.device)
        self.running = {
            domain: {name: value.to(self.device) for name, value in running.items()}
            for domain, running in state["running"].items()
        }
        self.invariance.load_state_dict(state["invariance"], self.device)
