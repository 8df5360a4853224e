"""EFC: features may drift only where the classifier does not look; past domains come back as
Gaussians of features.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..batch import Batch
from ..data.domain import Rows
from ..errors import FarshoreError
from ..memory import Memory
from ..networks.network import Network
from ..settings import MethodSettings, Uniform, setting
from .gaussians import Gaussians
from .method import MakeOptimizer, Method, Terms
from .priors import domain_features
from .snapshot import frozen_copy


class EFCSettings(MethodSettings):
    """λ 0.4, U(0.01, 0.5); α 0.5, U(0.01, 0.99); δ 0.9, searched in U(0.001, 0.1): the paper's
    table. η/λ 0.01, σ 0.2: EFC's code.
    """

    drift_weight: float = setting(
        0.4, Uniform(0.01, 0.5), ge=0, help="λ, the weight of the features' drift"
    )
    prototype_weight: float = setting(
        0.5, Uniform(0.01, 0.99), ge=0, help="α, the weight of the loss on Gaussian features"
    )
    matrix_decay: float = setting(
        0.9,
        Uniform(0.001, 0.1),
        ge=0,
        le=1,
        help="δ, how much of the feature matrix stays; 0: replaced (code)",
    )
    damping: float = setting(0.01, ge=0, help="η/λ, what drift costs in every direction")
    bandwidth: float = setting(
        0.2, ge=0, help="σ, by which old means follow the drift of near rows; 0: they stay"
    )
    covariance: Literal["full", "diagonal"] = setting(
        "full", help="of each Gaussian; diagonal takes d numbers instead of d²"
    )
    batchnorm: Literal["frozen", "train"] = setting(
        "frozen", help="after the first domain: statistics and scales stay, or learn on"
    )


class EFC(Method):
    """Keep no rows. Hold the features where the outputs depend on them, let them drift elsewhere,
    and train the classifier on Gaussian features of past domains.

    Equation: minimise CE(B) + α · CE(Gaussian features ∪ rows of the batch before) + λ · mean dᵀ(E
    + η/λ I)d, with d = f(x) - f_old(x) and f_old the model at the end of the last domain. E = E_x
    Σ_c p_c g_c g_cᵀ with g_c = ∂log p_c/∂f; for a linear classifier W that is Wᵀ E_x[diag(p) - p
    pᵀ] W, at most C - 1 directions. At a domain's end every old mean moves by the drift of the rows
    near it, μ += Σ_j w_j d_j, w = softmax over rows of s/(2σ²), s the negative distance in E
    brought to [0, 1]; then E ← δ E + (1 - δ) E_new.
    Paper: Magistri et al., "Elastic Feature Consolidation for Cold Start Exemplar-Free Incremental
    Learning", ICLR 2024.

    Readings. The paper's α and δ have no counterpart in EFC's code, where λ is 10; α as the weight
    of the Gaussian loss and δ as the decay of E are a guess, and the paper's default of δ lies
    outside its own range (δ = 0 replaces E, as EFC's code does). η is given relative to λ, at EFC's
    ratio: left at its own 0.1 it would outweigh λ. EFC's asymmetry (new rows see the new classes
    only) is inert
    without new classes: all rows see all classes here, and the Gaussians are kept for each pair of
    domain and class, since one a class would blur the domains. A share 1/t of the rows in the
    Gaussian loss are real ones of the batch before, t counting the current domain. EFC's auxiliary
    task of turning images is left out. Gaussians grow with the domains; no row is kept, so the
    memory's capacity has no meaning. In the first domain EFC is plain ERM; with α = λ = 0 it is
    fine-tuning (batchnorm="train" where the network has BatchNorm).
    """

    name = "efc"
    group = "latent-replay"
    reference = "Magistri et al., ICLR 2024, arXiv:2402.03917"
    Settings: ClassVar[type[MethodSettings]] = EFCSettings
    settings: EFCSettings
    reduces_to = ("finetune", {"drift_weight": 0.0, "prototype_weight": 0.0, "batchnorm": "train"})

    def prepare(self, network: Network) -> Network:
        """E has its closed form for a linear classifier only."""
        if not isinstance(network.classifier, nn.Linear):
            raise FarshoreError(
                "method 'efc' needs a linear classifier, not "
                f"{type(network.classifier).__name__}: use nn.Linear"
            )
        return network

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Also begin without a past."""
        super().attach(network, memory, generator, make)
        self.old: Network | None = None
        self.matrix: Tensor | None = None
        self.gaussians = Gaussians(full=self.settings.covariance == "full")
        self.previous: tuple[Tensor, Tensor] | None = None

    def before_domain(self, domain: str) -> None:
        """No batch before the first; from the second domain on BatchNorm's scales stay."""
        self.previous = None
        if self.old is not None and self.settings.batchnorm == "frozen":
            for layer in self.network.batchnorms():
                layer.requires_grad_(False)

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and from the second domain on `prototypes` and `drift`. A term of weight 0 is
        not computed.
        """
        settings, rows = self.settings, batch.rows
        if self.old is None:
            _, logits = self.forward(batch)
            return {"erm": self.risk(logits, batch.labels)}
        inputs, labels = self._rows_before(batch)
        joined = replace(
            batch,
            inputs=torch.cat([batch.inputs, inputs]),
            labels=torch.cat([batch.labels, labels]),
        )
        with self.network.batchnorm("frozen") if settings.batchnorm == "frozen" else nullcontext():
            features, logits = self.forward(joined)
        terms = {"erm": self.risk(logits[:rows], batch.labels)}
        if settings.prototype_weight > 0 and len(self.gaussians):
            made, classes = self.gaussians.draw(rows - len(labels), self.generator)
            scores = torch.cat([self.network.classifier(made), logits[rows:]])
            terms["prototypes"] = self.risk(scores, torch.cat([classes, labels]))
        if settings.drift_weight > 0:
            assert self.matrix is not None
            terms["drift"] = drift_cost(
                features[:rows] - self.old.extract(batch.inputs), self.matrix, settings.damping
            )
        return terms

    def weights(self) -> Mapping[str, float | Tensor]:
        """α and λ."""
        return {"prototypes": self.settings.prototype_weight, "drift": self.settings.drift_weight}

    def after_step(self, batch: Batch) -> None:
        """The batch stays at hand for one step; written in place, so that a recorded step finds
        it again.
        """
        now = (batch.inputs, batch.labels)
        if self.previous is None:
            self.previous = now
            return
        for kept, new in zip(self.previous, now, strict=True):
            kept.copy_(new)

    def phase(self) -> Hashable:
        """Whether there was a batch before."""
        return self.previous is None

    def _rows_before(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The current domain's share of the rows beside the Gaussians: first rows of the batch
        before, if there was one.
        """
        inputs, labels = self.previous or (batch.inputs, batch.labels)
        used = self.previous is not None and self.settings.prototype_weight > 0
        share = batch.rows // (len(self.domains) + 1) if used else 0
        return inputs[:share], labels[:share]

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Old means follow the drift; then the feature matrix, the domain's Gaussians and the
        model of the next drift.
        """
        features = domain_features(self.network, rows)
        if self.old is not None and len(self.gaussians) and self.settings.bandwidth > 0:
            assert self.matrix is not None
            before, means = domain_features(self.old, rows), self.gaussians.parts["means"]
            self.gaussians.parts["means"] = followed(
                means, before, features, self.matrix, self.settings.bandwidth
            )
        assert isinstance(self.network.classifier, nn.Linear)
        found, decay = feature_matrix(features, self.network.classifier), self.settings.matrix_decay
        self.matrix = found if self.matrix is None else decay * self.matrix + (1 - decay) * found
        self.gaussians.add(domain, features, rows.labels[rows.index])
        self.old = frozen_copy(self.network)

    def forget(self, domain: str) -> None:
        """Remove the domain's Gaussians."""
        self.gaussians.forget(domain)

    def state_dict(self) -> dict[str, Any]:
        """The old model, the feature matrix and the Gaussians."""
        old = dict(self.old.state_dict()) if self.old is not None else None
        return {"old": old, "matrix": self.matrix, "gaussians": self.gaussians.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        device = next(self.network.parameters()).device
        self.old = frozen_copy(self.network, state["old"]) if state["old"] is not None else None
        self.matrix = state["matrix"].to(device) if state["matrix"] is not None else None
        self.gaussians.load_state_dict(state["gaussians"], device)


def drift_cost(drift: Tensor, matrix: Tensor, damping: float) -> Tensor:
    """Mean over rows of dᵀ(E + η I)d."""
    return ((drift @ matrix) * drift + damping * drift.square()).sum(dim=1).mean()


@torch.no_grad()
def feature_matrix(features: Tensor, classifier: nn.Linear) -> Tensor:
    """E = Wᵀ mean[diag(p) - p pᵀ] W."""
    p = classifier(features).softmax(dim=1)
    inner = p.mean(dim=0).diag() - p.T @ p / len(p)
    matrix: Tensor = classifier.weight.T @ inner @ classifier.weight
    return matrix


@torch.no_grad()
def followed(
    means: Tensor, before: Tensor, after: Tensor, matrix: Tensor, bandwidth: float
) -> Tensor:
    """Each mean moved by the drift of the rows near it; near by E, brought to [0, 1] over all
    rows and means together.
    """
    reach = before @ matrix
    nearness = (
        2 * reach @ means.T
        - (reach * before).sum(dim=1, keepdim=True)
        - ((means @ matrix) * means).sum(dim=1)
    )
    low, high = nearness.min(), nearness.max()
    scaled = (nearness - low) / (high - low).clamp(min=torch.finfo(nearness.dtype).tiny)
    weights = (scaled / (2 * bandwidth**2)).softmax(dim=0)
    return means + weights.T @ (after - before)
