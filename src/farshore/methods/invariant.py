"""The base of the naive and the tailored frame: a notion of invariance, its priors, and λ."""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..base.forms import NAMES, FormError, Like, ListOf, MapOf, check_form
from ..base.trees import mapped
from ..data.batch import Batch
from ..data.domain import Rows
from ..invariance.invariance import MOST_BYTES, Invariance, Priors, Statistic
from ..networks.network import Network
from ..settings import MethodSettings, Power, UniformInt, setting
from .method import Method, Terms, term_doses
from .priors import compute_prior, domain_features


class InvariantSettings(MethodSettings):
    """Settings of every method with a penalty; defaults and distributions: the paper's table."""

    penalty_weight: float = setting(
        1.0, Power(10, -1, 1), ge=0, help="λ, the weight of the invariance penalty"
    )
    prior_storage: Literal["float32", "float16"] = setting(
        "float32", help="data type of the stored priors; above 64 MB in all it is float16"
    )


class ConditionSettings(InvariantSettings):
    """Settings of penalties that can compare domains at equal labels (CORAL, MMD)."""

    condition: Literal["none", "label"] = setting(
        "none",
        help="label: the penalty compares domains at equal labels: in the same class, or by a "
        "kernel in the label (label_bandwidth)",
    )


class BatchStatisticSettings(InvariantSettings):
    """Settings of notions with statistics of many entries that are not row means (Fishr, CORAL)."""

    statistic_reduction: Literal["mean", "sum"] = setting(
        "mean", help="squared norms: mean over entries (DomainBed) or sum (as printed)"
    )
    prior_level: Literal["batch", "domain"] = setting(
        "batch", help="prior: mean of batch statistics, or the statistic of all rows"
    )


class AnnealedSettings(InvariantSettings):
    """Settings of methods with an annealed penalty (V-REx, Fishr)."""

    anneal_steps: int = setting(
        100, UniformInt(0, 1000), ge=0, help="steps before the penalty gets its weight λ"
    )
    anneal_scope: Literal["penalty", "domain", "global"] = setting(
        "penalty",
        help="count the steps that have a penalty (from the second domain on), the steps of each "
        "domain, or all steps of the run",
    )
    anneal_resets_optimizer: bool = setting(
        True, help="reset the optimiser when the penalty gets its weight"
    )


class InvariantMethod(Method):
    """A method with a notion of invariance, a prior per finished domain, and a penalty of weight λ.

    Only notions of scope `domain` have running states.

    weight_before_anneal: λ before `anneal_steps`; 1 in DomainBed's V-REx, 0 in its Fishr.
    """

    Settings: ClassVar[type[InvariantSettings]] = InvariantSettings
    settings: InvariantSettings
    needs_classes = False
    weighs_rows = True
    grows = True
    weight_before_anneal: ClassVar[float] = 0.0

    def make_invariance(self) -> Invariance:
        """Create the notion of invariance from the settings."""
        raise NotImplementedError

    def setup(self) -> None:
        """Create the notion of invariance."""
        self.invariance = self.make_invariance()
        for notion in (self.invariance, *self.invariance.notions().values()):
            notion.task = self.task
        # A notion may have further ways to store a prior, in float32: CORAL has `diagonal`.
        self.priors = Priors("float16" if self.settings.prior_storage == "float16" else "float32")
        self.running: dict[str, Statistic] = {}
        self.penalty_weight = self.settings.penalty_weight
        self.annealing = False
        self.unpenalised_steps = 0  # taken before there was a past domain to compare with

    def weights(self) -> Mapping[str, float | Tensor]:
        """λ for the penalty."""
        return {"penalty": self.penalty_weight}

    def before_step(self, step: int, domain_step: int) -> None:
        """Set λ; reset the optimisers when annealing ends."""
        settings = self.settings
        if not isinstance(settings, AnnealedSettings):
            return
        if not len(self.priors):
            self.unpenalised_steps = step + 1
        penalised = max(0, step - self.unpenalised_steps)
        counts = {"penalty": penalised, "domain": domain_step, "global": step}
        count = counts[settings.anneal_scope]
        self.annealing = count < settings.anneal_steps
        before, after = self.weight_before_anneal, settings.penalty_weight
        self.penalty_weight = before if self.annealing else after
        if count == settings.anneal_steps > 0 and settings.anneal_resets_optimizer:
            self.reset_optimizers()

    def phase(self) -> Hashable:
        """The current λ, and whether it is still that of annealing."""
        return float(self.penalty_weight), self.annealing

    def doses(self, batch: Batch) -> Terms:
        """The lengths of the terms' weighted gradients, relative to that of ERM, and λ."""
        running = dict(self.running)
        terms = self.terms(batch)
        self.running = running
        weights = self.weights_of(terms)
        found = term_doses(terms, weights, self.network)
        if "penalty" in found:
            found["penalty_weight"] = torch.as_tensor(weights["penalty"])
        return found

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Store Φ_s of the end-of-domain model; after the first domain, fit the notion first."""
        if len(self.priors) == 0:
            self.invariance.fit(domain_features(self.network, rows), self.generator)
        self.set_prior(domain, rows)

    def set_prior(self, domain: str, rows: Rows) -> None:
        """Store Φ of these rows by the current model."""
        order = torch.randperm(len(rows), generator=self.generator, device=self.generator.device)
        prior = self.invariance.joined(
            {
                name: compute_prior(
                    notion,
                    self.network,
                    rows,
                    order,
                    level=self._prior_level(notion),
                    batch_size=self.settings.batch_size,
                )
                for name, notion in self.invariance.notions().items()
            }
        )
        kept = self.invariance.kept({name: value[None] for name, value in prior.items()})
        before = self.priors.storage
        self.priors.set(domain, {name: value[0] for name, value in kept.items()})
        if self.priors.storage != before:
            self.notes.append(
                f"the priors of {len(self.priors)} domains take more than {MOST_BYTES // 10**6} "
                "MB: they are kept in float16 from here on"
            )

    def _prior_level(self, notion: Invariance) -> Literal["batch", "domain"]:
        """The level of a notion's prior: of all rows, if its statistic is a mean over rows."""
        return "domain" if notion.row_mean else getattr(self.settings, "prior_level", "domain")

    def forget(self, domain: str) -> None:
        """Remove the domain's prior and running state."""
        self.priors.forget(domain)
        self.running.pop(domain, None)

    def state_dict(self) -> dict[str, Any]:
        """Priors, running states, the fitted state of the notion, and the anneal counter."""
        return {
            "priors": self.priors.state_dict(),
            "running": self.running,
            "invariance": self.invariance.state_dict(),
            "unpenalised_steps": self.unpenalised_steps,
        }

    def grown_state(self, state: Mapping[str, Any], grown: Network) -> Mapping[str, Any]:
        """The priors and running states for additional classes."""
        before, after = self.network.classes, grown.classes
        stored = state["priors"]
        priors = [self.invariance.grown(prior, before, after) for prior in stored["priors"]]
        running = {
            domain: self.invariance.grown(of_domain, before, after)
            for domain, of_domain in state["running"].items()
        }
        return {**state, "priors": {**stored, "priors": priors}, "running": running}

    def state_form(self) -> Any:
        """The outline; what depends on the fitted notion is checked once that is restored."""
        plain = dict.fromkeys(("priors", "invariance"), MapOf(None))
        return {**plain, "running": MapOf(MapOf(None)), "unpenalised_steps": 0}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        outline: dict[str, Any] = {"names": NAMES, "priors": ListOf(MapOf(None))}
        # Large priors are kept in float16 whatever the setting.
        if self.priors.storage == "float16" or "scales" in state["priors"]:
            outline["scales"] = ListOf(MapOf(Like(())))
        check_form(state["priors"], outline, "method.priors")
        device, learned = self.device, state["priors"]["names"]
        if learned not in ([], self.domains):
            raise FormError("method.priors.names are not the domains that were learned")
        if state["invariance"] or learned:
            fitted = self.invariance.fitted_form(self.network.feature_dim)
            check_form(state["invariance"], fitted, "method.invariance")
        self.invariance.load_state_dict(state["invariance"], device)
        if learned or state["running"]:
            self._check_statistics(state, device)
        self.priors.load_state_dict(state["priors"], device)
        self.running = mapped(state["running"], lambda value: value.to(device))
        self.unpenalised_steps = int(state["unpenalised_steps"])

    def _check_statistics(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Raise a FormError unless priors and running states are those of this notion."""
        priors = state["priors"]
        form = self.invariance.forms(self.network.feature_dim, self.network.classes, device)
        half = "scales" in priors
        prior = {
            name: Like(tuple(value.shape[1:]), torch.float16 if half else torch.float32)
            for name, value in form.prior.items()
        }
        for key, each in {"priors": prior, "scales": dict.fromkeys(prior, Like(()))}.items():
            if key in priors:
                check_form(priors[key], [each] * len(priors["names"]), f"method.priors.{key}")
        check_form(state["running"], MapOf(form.running), "method.running")
