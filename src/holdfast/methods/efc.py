"""EFC: features may drift only where the classifier does not look; past domains come back as Gaussians of features."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..batch import Batch
from ..data.domain import Rows
from ..errors import HoldfastError
from ..memory import Memory
from ..networks.network import Network
from ..settings import MethodSettings, Uniform, setting
from .method import MakeOptimizer, Method, Terms, empirical_risk
from .priors import domain_features
from .snapshot import frozen_copy

JITTER = 1e-5  # on the diagonal of a covariance, as in EFC's code, relative to its mean variance where that is above 1


class EFCSettings(MethodSettings):
    """λ 0.4, U(0.01, 0.5); α 0.5, U(0.01, 0.99); δ 0.9, searched in U(0.001, 0.1): the paper's table. η/λ 0.01, σ 0.2: EFC's code."""

    drift_weight: float = setting(0.4, Uniform(0.01, 0.5), ge=0, help="λ, the weight of the features' drift")
    prototype_weight: float = setting(0.5, Uniform(0.01, 0.99), ge=0, help="α, the weight of the loss on Gaussian features")
    matrix_decay: float = setting(0.9, Uniform(0.001, 0.1), ge=0, le=1, help="δ, how much of the feature matrix stays; 0: replaced (code)")
    damping: float = setting(0.01, ge=0, help="η/λ, what drift costs in every direction")
    bandwidth: float = setting(0.2, ge=0, help="σ, by which old means follow the drift of near rows; 0: they stay")
    covariance: Literal["full", "diagonal"] = setting("full", help="of each Gaussian; diagonal takes d numbers instead of d²")
    batchnorm: Literal["frozen", "train"] = setting("frozen", help="after the first domain: statistics and scales stay, or learn on")


class EFC(Method):
    """Keep no rows. Hold the features where the outputs depend on them, let them drift elsewhere, and train the classifier on Gaussian
    features of past domains.

    Equation: minimise CE(B) + α · CE(Gaussian features ∪ rows of the batch before) + λ · mean dᵀ(E + η/λ I)d, where d = f(x) - f_old(x) and
    f_old is the model at the end of the last domain. E = E_x Σ_c p_c g_c g_cᵀ with g_c = ∂log p_c/∂f; for a linear classifier W that is
    Wᵀ E_x[diag(p) - p pᵀ] W, at most C - 1 directions. At a domain's end every old mean moves by the drift of the rows near it,
    μ += Σ_j w_j d_j, w = softmax over rows of s/(2σ²), s the negative distance in E brought to [0, 1]; then E ← δ E + (1 - δ) E_new.
    Paper: Magistri et al., "Elastic Feature Consolidation for Cold Start Exemplar-Free Incremental Learning", ICLR 2024.

    Readings. The paper's α and δ have no counterpart in EFC's code and its λ is 10 there; α as the weight of the Gaussian loss and δ as
    the decay of E are a guess, and the paper's default of δ lies outside its own range. η goes with λ so that it does not take over.
    EFC's asymmetry (new rows see the new classes only) is inert without new classes: all rows see all classes here, and the Gaussians
    are kept for each pair of domain and class, as one a class would blur the domains. Of each loss on Gaussians a share 1/t is
    real rows of the batch before, t counting the current domain. The auxiliary task of turning images is left out. The number of
    Gaussians grows with the domains; no row is kept, so the memory's capacity has no meaning for it. In the first domain EFC is plain
    ERM; with α = λ = 0 it is fine-tuning (where the network has BatchNorm, with batchnorm="train").
    """

    name = "efc"
    group = "latent-replay"
    reference = "Magistri et al., ICLR 2024, arXiv:2402.03917"
    Settings: ClassVar[type[MethodSettings]] = EFCSettings
    reduces_to = ("finetune", {"drift_weight": 0.0, "prototype_weight": 0.0, "batchnorm": "train"})

    def prepare(self, network: Network) -> Network:
        """E has its closed form for a linear classifier only."""
        if not isinstance(network.classifier, nn.Linear):
            raise HoldfastError(f"method 'efc' needs a linear classifier, not {type(network.classifier).__name__}: use nn.Linear")
        return network

    def attach(self, network: Network, memory: Memory | None, generator: torch.Generator, make: MakeOptimizer) -> None:
        """Also begin without a past."""
        super().attach(network, memory, generator, make)
        self.old: Network | None = None
        self.matrix: Tensor | None = None
        self.owners: list[str] = []  # the domain of each Gaussian
        self.gaussians: dict[str, Tensor] = {}
        self.previous: tuple[Tensor, Tensor] | None = None

    def before_domain(self, domain: str) -> None:
        """No batch before the first; from the second domain on BatchNorm's scales stay."""
        self.previous = None
        if self.old is not None and self.settings.batchnorm == "frozen":
            for layer in self.network.batchnorms():
                layer.requires_grad_(False)

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and from the second domain on `prototypes` and `drift`. A term of weight 0 is not computed."""
        settings, rows = self.settings, batch.rows
        if self.old is None:
            _, logits = self.forward(batch)
            return {"erm": empirical_risk(logits, batch.labels)}
        inputs, labels = self._rows_before(batch)
        joined = replace(batch, inputs=torch.cat([batch.inputs, inputs]), labels=torch.cat([batch.labels, labels]))
        with self.network.batchnorm("frozen") if settings.batchnorm == "frozen" else nullcontext():
            features, logits = self.forward(joined)
        terms = {"erm": empirical_risk(logits[:rows], batch.labels)}
        if settings.prototype_weight > 0 and self.owners:
            made, classes = self._gaussian_rows(rows - len(labels))
            scores = torch.cat([self.network.classifier(made), logits[rows:]])
            terms["prototypes"] = empirical_risk(scores, torch.cat([classes, labels]))
        if settings.drift_weight > 0:
            assert self.matrix is not None
            terms["drift"] = drift_cost(features[:rows] - self.old.extract(batch.inputs), self.matrix, settings.damping)
        return terms

    def weights(self) -> Mapping[str, float | Tensor]:
        """α and λ."""
        return {"prototypes": self.settings.prototype_weight, "drift": self.settings.drift_weight}

    def after_step(self, batch: Batch) -> None:
        """The batch stays at hand for one step."""
        self.previous = (batch.inputs, batch.labels)

    def _rows_before(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The current domain's share of the rows beside the Gaussians: first rows of the batch before, if there was one."""
        inputs, labels = self.previous or (batch.inputs, batch.labels)
        used = self.previous is not None and self.settings.prototype_weight > 0
        share = batch.rows // (len(self.domains) + 1) if used else 0
        return inputs[:share], labels[:share]

    def _gaussian_rows(self, rows: int) -> tuple[Tensor, Tensor]:
        """Features drawn from the Gaussians, each as often as the others but for one."""
        means, factors = self.gaussians["means"], self.gaussians["factors"]
        rounds = -(-rows // len(means))
        order = torch.rand(rounds, len(means), generator=self.generator, device=means.device).argsort(dim=1).flatten()[:rows]
        noise = torch.randn(rows, means.shape[1], generator=self.generator, device=means.device, dtype=means.dtype)
        spread = factors[order] * noise if factors.ndim == 2 else (factors[order] @ noise[:, :, None])[:, :, 0]
        return means[order] + spread, self.gaussians["labels"][order]

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Old means follow the drift; then the feature matrix, the domain's Gaussians and the model of the next drift."""
        labels = rows.labels[rows.index]
        features = domain_features(self.network, rows)
        if self.old is not None and self.owners and self.settings.bandwidth > 0:
            assert self.matrix is not None
            before = domain_features(self.old, rows)
            self.gaussians["means"] = followed(self.gaussians["means"], before, features, self.matrix, self.settings.bandwidth)
        assert isinstance(self.network.classifier, nn.Linear)
        found = feature_matrix(features, self.network.classifier)
        decay = self.settings.matrix_decay
        self.matrix = found if self.matrix is None else decay * self.matrix + (1 - decay) * found
        made = fit_gaussians(features, labels, full=self.settings.covariance == "full")
        self.gaussians = {name: torch.cat([self.gaussians[name], part]) if self.owners else part for name, part in made.items()}
        self.owners += [domain] * len(made["labels"])
        self.old = frozen_copy(self.network)

    def forget(self, domain: str) -> None:
        """Remove the domain's Gaussians."""
        kept = [place for place, owner in enumerate(self.owners) if owner != domain]
        self.gaussians = {name: part[kept] for name, part in self.gaussians.items()}
        self.owners = [self.owners[place] for place in kept]

    def state_dict(self) -> dict[str, Any]:
        """The old model, the feature matrix and the Gaussians."""
        old = dict(self.old.state_dict()) if self.old is not None else None
        return {"old": old, "matrix": self.matrix, "owners": self.owners, "gaussians": self.gaussians}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        device = next(self.network.parameters()).device
        self.old = frozen_copy(self.network, state["old"]) if state["old"] is not None else None
        self.matrix = state["matrix"].to(device) if state["matrix"] is not None else None
        self.owners = list(state["owners"])
        self.gaussians = {name: part.to(device) for name, part in state["gaussians"].items()}


def drift_cost(drift: Tensor, matrix: Tensor, damping: float) -> Tensor:
    """Mean over rows of dᵀ(E + η I)d."""
    return ((drift @ matrix) * drift + damping * drift.square()).sum(dim=1).mean()


@torch.no_grad()
def feature_matrix(features: Tensor, classifier: nn.Linear) -> Tensor:
    """E = Wᵀ mean[diag(p) - p pᵀ] W."""
    p = classifier(features).softmax(dim=1)
    inner = p.mean(dim=0).diag() - p.T @ p / len(p)
    return classifier.weight.T @ inner @ classifier.weight


@torch.no_grad()
def followed(means: Tensor, before: Tensor, after: Tensor, matrix: Tensor, bandwidth: float) -> Tensor:
    """Each mean moved by the drift of the rows near it; near by E, brought to [0, 1] over all rows and means together."""
    reach = before @ matrix
    nearness = 2 * reach @ means.T - (reach * before).sum(dim=1, keepdim=True) - ((means @ matrix) * means).sum(dim=1)
    low, high = nearness.min(), nearness.max()
    scaled = (nearness - low) / (high - low).clamp(min=torch.finfo(nearness.dtype).tiny)
    weights = (scaled / (2 * bandwidth**2)).softmax(dim=0)
    return means + weights.T @ (after - before)


@torch.no_grad()
def fit_gaussians(features: Tensor, labels: Tensor, *, full: bool) -> dict[str, Tensor]:
    """Mean and a factor of the covariance for each class there is: a Cholesky factor, or standard deviations."""
    classes = labels.unique()
    means, factors = [], []
    for label in classes:
        rows = features[labels == label].double()  # float32 loses the definiteness where rows are fewer than features
        centred = rows - rows.mean(dim=0)
        variance = centred.square().sum(dim=0) / max(1, len(rows) - 1)
        jitter = JITTER * variance.mean().clamp(min=1)
        if full:
            covariance = centred.T @ centred / max(1, len(rows) - 1)
            factors.append(torch.linalg.cholesky(covariance + jitter * torch.eye(len(covariance), device=rows.device)))
        else:
            factors.append((variance + jitter).sqrt())
        means.append(rows.mean(dim=0))
    return {"labels": classes, "means": torch.stack(means).to(features.dtype), "factors": torch.stack(factors).to(features.dtype)}
