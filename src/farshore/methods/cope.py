"""CoPE: one slowly moving prototype per class, and an embedding that clusters rows around it."""

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from ..data.batch import Batch
from ..networks.network import Network
from ..settings import Choice, MethodSettings, Uniform, setting
from .method import Method, Replay, Terms
from .priors import class_sums

# D, the dimension of the embedding that is compared with the prototypes: CoPE's value for MNIST.
EMBEDDING_DIM = 100


class CoPESettings(MethodSettings):
    """τ 1, U(0.5, 1); γ 0.9, one of {0.8, 0.9, 1}; 3 repeats, one of 1 to 5: the paper's table."""

    temperature: float = setting(1.0, Uniform(0.5, 1.0), gt=0, help="τ, divides the similarities")
    prototype_momentum: float = setting(
        0.9, Choice((0.8, 0.9, 1.0)), ge=0, le=1, help="γ, momentum of the prototypes; 1: they stay"
    )
    repeats: int = setting(
        3, Choice((1, 2, 3, 4, 5)), ge=1, le=1000, help="steps on a batch, each with other replay"
    )
    embedding: Literal["layer", "features"] = setting(
        "layer",
        help="what is compared with the prototypes: a linear layer of 100 outputs instead of the "
        "classifier (CoPE's code), or the network's features",
    )
    reading: Literal["original", "avalanche"] = setting(
        "original",
        help="avalanche: prototypes have unit length and start in all directions; the repellor "
        "moves only the anchor",
    )


class CoPE(Method):
    """Compare each row with one prototype per class; no classifier is trained.

    Rows are attracted to the prototype of their class and to its other rows, and repelled from the
    rest. Prototypes follow the mean of their rows, so they change slowly and persist across
    domains.

    Equation: f unit embeddings, π_c prototypes, R_c(f; q) = e^{q·f/τ} / (e^{q·f/τ} + Σ_{k≠c}
    e^{π_k·f/τ}). For the n_c rows of class c, A_i = -log 1/n_c [Σ_{j≠i of c} R_c(f_i; f_j) +
    R_c(f_i; π_c)] and, for i of c and j of another class, H_ij = -log(1 - ½ [R_c(f_j; f_i) +
    R_c(f_j; π_c)]). Minimise 1/B (Σ_i A_i + Σ_ij H_ij) over current and replayed rows, `repeats`
    times per batch; then π_c ← γ π_c + (1 - γ) mean f of class c. Prediction: logits π_c · f / τ.
    With γ = 1 the prototypes never move.
    Paper: De Lange and Tuytelaars, "Continual Prototype Evolution", ICCV 2021. The memory is one
    reservoir per class, drawn evenly.

    Readings. `original` is the authors' code: prototypes start in the positive orthant and are not
    normalised again; the update uses the replayed rows of every repeat but the current rows only
    once; the repellor's gradient reaches both rows. `avalanche` is the port by the same author. In
    both, all classes of the learner have a prototype from the start, and the loss is computed in
    log space. The embedding is the network's last linear layer with 100 outputs instead of C, as in
    both codes (`embedding=features` compares the features themselves). As in all methods, replay
    starts with the second domain and takes as many rows of each past domain as the batch has; the
    authors use one batch in total (`replay_budget=total`). The benchmark's τ near 1 is far from
    CoPE's own 0.05 to 0.1.
    """

    name = "cope"
    group = "latent-replay"
    reference = "De Lange and Tuytelaars, ICCV 2021, arXiv:2009.00919"
    weighs_classes = False  # its loss compares rows with prototypes and with each other
    Settings: ClassVar[type[MethodSettings]] = CoPESettings
    settings: CoPESettings
    replay = Replay(memory="class-reservoir", joined=False, draws=("replay",))

    def prepare(self, network: Network) -> Network:
        """Replace the classifier by a prototype head."""
        settings = self.settings
        network.classifier = PrototypeHead(
            network.feature_dim,
            network.classes,
            dimension=EMBEDDING_DIM if settings.embedding == "layer" else None,
            temperature=settings.temperature,
            positive=settings.reading == "original",
        )
        return network

    @property
    def head(self) -> "PrototypeHead":
        """The network's prototype head."""
        assert isinstance(self.network.classifier, PrototypeHead)
        return self.network.classifier

    def update(self, batch: Batch) -> Terms:
        """Steps on the current rows, each with other replayed rows, then new prototypes."""
        head, repeats = self.head, self.settings.repeats
        avalanche = self.settings.reading == "avalanche"
        sums = torch.zeros_like(head.prototypes)
        counts = head.prototypes.new_zeros(len(head.prototypes))
        for repeat in range(repeats):
            inputs, labels = self._joined(batch, first=repeat == 0)
            directions = head.direction(self.network.extract(inputs))
            both, temperature = self.settings.reading == "original", self.settings.temperature
            rows = (directions, labels, head.prototypes)
            loss = pseudo_prototype_loss(*rows, temperature, repel_both=both)
            with self.stepping():
                loss.backward()
            first = 0 if avalanche or repeat == repeats - 1 else batch.rows
            newest, classes = directions.detach()[first:], len(head.prototypes)
            new_sums, new_counts = class_sums(newest, labels[first:], classes)
            sums, counts = sums + new_sums, counts + new_counts
        momentum = self.settings.prototype_momentum
        head.prototypes.copy_(moved(head.prototypes, sums, counts, momentum, unit=avalanche))
        return {"pseudo_prototypes": loss.detach()}

    def _joined(self, batch: Batch, *, first: bool) -> tuple[Tensor, Tensor]:
        if "replay" not in batch.draws:
            return batch.inputs, batch.labels
        draw = batch.draws["replay"]
        if not first and self.memory is not None:
            draw = self.memory.draw(len(draw.labels), self.generator)
        return torch.cat([batch.inputs, draw.inputs]), torch.cat([batch.labels, draw.labels])


def moved(
    prototypes: Tensor, sums: Tensor, counts: Tensor, momentum: float, *, unit: bool
) -> Tensor:
    """γ π + (1 - γ) mean for classes with rows; with `unit`, both have unit length."""
    means = sums / counts.clamp(min=1)[:, None]
    mixed = momentum * prototypes + (1 - momentum) * (normalize(means, dim=1) if unit else means)
    return torch.where(counts[:, None] > 0, normalize(mixed, dim=1) if unit else mixed, prototypes)


def pseudo_prototype_loss(
    directions: Tensor, labels: Tensor, prototypes: Tensor, temperature: float, *, repel_both: bool
) -> Tensor:
    """CoPE's loss over unit vectors [n, D]; prototypes and pseudo-prototypes are constants."""
    constant = directions.detach()
    same = labels[:, None] == labels
    to_prototypes = directions @ prototypes.T / temperature
    others = _without_own(to_prototypes)  # [n, C]: log Σ_{k≠c} e^{π_k·f/τ}

    own = labels[:, None]
    rest = others.gather(1, own)
    by_rows = -softplus(rest - directions @ constant.T / temperature)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    by_rows = by_rows.masked_fill(~same | itself, -torch.inf)
    by_prototype = -softplus(rest - to_prototypes.gather(1, own))
    attracted = torch.cat([by_rows, by_prototype], dim=1).logsumexp(dim=1)
    attraction = same.sum(dim=1).to(directions.dtype).log() - attracted

    # Row j, column i: the row j of another class, repelled from i and from the prototype of i's
    # class. log(1 - sigmoid(x)) = -softplus(x).
    pushing = directions if repel_both else constant
    from_rows = -softplus(directions @ pushing.T / temperature - others[:, labels])
    from_prototypes = -softplus(to_prototypes - others)[:, labels]
    repulsion = math.log(2) - torch.logaddexp(from_rows, from_prototypes)
    return (attraction.sum() + repulsion.masked_fill(same, 0.0).sum()) / len(labels)


def _without_own(scores: Tensor) -> Tensor:
    """The logsumexp of all other columns, by running sums from both sides: nothing cancels."""
    edge = torch.full_like(scores[:, :1], -torch.inf)
    before = torch.cat([edge, scores.logcumsumexp(dim=1)[:, :-1]], dim=1)
    after = torch.cat([edge, scores.flip(1).logcumsumexp(dim=1)[:, :-1]], dim=1).flip(1)
    return torch.logaddexp(before, after)


class PrototypeHead(nn.Module):
    """Maps features to a direction f in R^D, and to logits π_c · f / T.

    dimension: D, the outputs of a linear layer; None: the features are the embedding.

    The prototypes are updated by the method, not by gradients.
    """

    prototypes: Tensor

    def __init__(
        self,
        feature_dim: int,
        classes: int,
        *,
        dimension: int | None,
        temperature: float,
        positive: bool,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = feature_dim, classes
        self.embedding: nn.Module = nn.Identity()
        if dimension is not None:
            self.embedding = nn.Linear(feature_dim, dimension)
        self.temperature = temperature
        drawn = torch.rand(classes, dimension or feature_dim)
        drawn = drawn if positive else 2 * drawn - 1
        self.register_buffer("prototypes", nn.functional.normalize(drawn, dim=1))

    def direction(self, features: Tensor) -> Tensor:
        """f: the embedding, normalised to unit length."""
        return nn.functional.normalize(self.embedding(features), dim=1)

    def forward(self, features: Tensor) -> Tensor:
        """One logit per class."""
        return self.direction(features) @ self.prototypes.T / self.temperature
