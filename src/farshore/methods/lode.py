"""LODE: the cross-entropy of new rows, split into new-against-old and new-against-new."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..data.batch import Batch
from ..data.domain import Rows
from ..settings import Choice, MethodSettings, setting
from .method import Method, Replay, Terms, weighted_mean


class LODESettings(MethodSettings):
    """ρ 0.1, one of {0.01, 0.05, 0.1, 0.2}: the paper's table."""

    rho: float = setting(
        0.1, Choice((0.01, 0.05, 0.1, 0.2)), ge=0, help="ρ, weight of new-against-old for new rows"
    )
    split: Literal["batch", "domain"] = setting(
        "batch",
        help="new classes: those of the current batch, or of the current domain (as published; "
        "no effect if it has all classes)",
    )
    weighting: Literal["domains", "classes"] = setting(
        "domains", help="weight ρ / finished domains (code), or ρ · new classes / old classes"
    )


class LODE(Method):
    """Split the cross-entropy into new-against-old and new-against-new classes.

    Forgetting comes from the first part, so it gets a small weight.

    Equation: with N the new and O the old classes, CE(z, y) = inter + intra exactly, where inter =
    lse(z) - lse(z_N) and intra = lse(z_N) - z_y (lse: logsumexp). Minimise ½ [ρ/t₀ · inter + intra
    + CE(replay)], t₀ the number of finished domains. In the first domain it is plain ERM.
    Paper: Liang and Li, "Loss Decoupling for Task-Agnostic Continual Learning", NeurIPS 2023, in
    its form on ER, the only one whose one setting is ρ; a reservoir, uniform draws.

    Readings. As published, N are the classes of the current task. If every domain has all classes,
    O is empty, inter is 0, and LODE is ER with weights ½ and ½ for any ρ (`split="domain"`; a class
    counts as new once it occurs in a batch of the domain). The paper tunes ρ, so the default is the
    form in which ρ has an effect: N are the classes of the current batch, O the others. Then ρ = 0
    is ER-ACE's masked loss and ρ/t₀ = 1 is ER. If a batch contains every class (many rows, few
    classes), ρ has no effect again. `weighting="classes"` is the ratio of class counts in the
    original text.
    """

    name = "lode"
    group = "replay"
    results_version = 2
    reference = "Liang and Li, NeurIPS 2023"
    Settings: ClassVar[type[MethodSettings]] = LODESettings
    settings: LODESettings
    remembers = ("earlier",)  # the classes of the finished domains
    replay = Replay(memory="reservoir", joined=False, draws=("replay",))

    def setup(self) -> None:
        """Start with no class seen."""
        self.earlier = torch.zeros(self.network.classes, dtype=torch.bool, device=self.device)
        self.current = torch.zeros_like(self.earlier)
        self.inter_weight: float | Tensor = 0.0

    def before_domain(self, domain: str) -> None:
        """Start the domain with no class seen."""
        self.current.zero_()

    def terms(self, batch: Batch) -> Terms:
        """`inter`, `intra` and `replay`; in the first domain `erm`."""
        _, logits = self.forward(batch)
        self.current.index_fill_(0, batch.labels, True)
        if "replay" not in batch.draws:
            return {"erm": self.risk(logits, batch.labels)}
        draw = batch.draws["replay"]
        new = self._new_classes(batch.labels)
        self.inter_weight = self._weight(new)
        inter, intra = decoupled(logits, batch.labels, new)
        replay = self.risk(self.network(draw.inputs), draw.labels)
        inter, intra = (
            weighted_mean(losses, batch.labels, self.class_weight) for losses in (inter, intra)
        )
        return {"inter": inter, "intra": intra, "replay": replay}

    def weights(self) -> Mapping[str, float | Tensor]:
        """One half for the new rows, one half for the replayed ones."""
        return {"inter": 0.5 * self.inter_weight, "intra": 0.5, "replay": 0.5}

    def _new_classes(self, labels: Tensor) -> Tensor:
        if self.settings.split == "domain":
            return self.current | ~self.earlier
        return torch.zeros_like(self.current).index_fill_(0, labels, True)

    def _weight(self, new: Tensor) -> float | Tensor:
        if self.settings.weighting == "domains":
            return float(self.settings.rho / max(1, len(self.domains)))
        return self.settings.rho * new.sum() / (~new).sum().clamp(min=1)

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Mark the domain's classes as old."""
        self.earlier.index_fill_(0, rows.labels[rows.index], True)


def decoupled(logits: Tensor, labels: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """(inter, intra) of each row; `new` marks the new classes and must include every label."""
    among_new = logits.masked_fill(~new, -torch.inf).logsumexp(dim=1)
    own = logits.gather(1, labels[:, None])[:, 0]
    # Without old classes inter is exactly 0, and so is its gradient.
    inter = torch.where((~new).any(), logits.logsumexp(dim=1) - among_new, 0.0)
    return inter, among_new - own
