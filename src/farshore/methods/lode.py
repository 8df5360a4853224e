"""LODE: the cross-entropy of new rows, divided into new-against-old and new-against-new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..batch import Batch
from ..data.domain import Rows
from ..memory import Memory
from ..networks.network import Network
from ..settings import Choice, MethodSettings, setting
from .method import MakeOptimizer, Method, Replay, Terms, weighted_mean


class LODESettings(MethodSettings):
    """ρ 0.1, one of {0.01, 0.05, 0.1, 0.2}: the paper's table."""

    rho: float = setting(
        0.1,
        Choice((0.01, 0.05, 0.1, 0.2)),
        ge=0,
        help="ρ, the weight of new-against-old in the loss of new rows",
    )
    split: Literal["batch", "domain"] = setting(
        "batch",
        help="new classes: those of the current batch, or those of the current domain (as "
        "published; inert if it has all)",
    )
    weighting: Literal["domains", "classes"] = setting(
        "domains", help="ρ / finished domains (code), or ρ · new classes / old classes"
    )


class LODE(Method):
    """Cross-entropy is the loss of telling new from old classes plus the loss of telling new ones
    apart; forgetting comes from the first, so it gets a small weight.

    Equation: with N the new and O the old classes, CE(z, y) = inter + intra exactly, where inter =
    lse(z) - lse(z_N) and intra = lse(z_N) - z_y (lse: logsumexp). Minimise ½ [ρ/t₀ · inter + intra
    + CE(replay)], t₀ the number of finished domains. In the first domain it is plain ERM.
    Paper: Liang and Li, "Loss Decoupling for Task-Agnostic Continual Learning", NeurIPS 2023, in
    its form on ER, the only one whose one setting is ρ; a reservoir, uniform draws.

    Readings. As published N holds the classes that come with the current task. Where every domain
    has all classes, O is empty, inter is 0 and LODE is ER with weights ½ and ½ whatever ρ is
    (`split="domain"`; a class counts as new once a batch of the domain has shown it). The paper
    tunes ρ, so the default is the form in which ρ acts: N holds the classes of the current batch, O
    the others. ρ = 0 is then ER-ACE's masked loss and ρ/t₀ = 1 is ER. With a batch that shows every
    class (many rows, few classes) ρ is inert again. `weighting="classes"` is the ratio of class
    counts that the original text states.
    """

    name = "lode"
    group = "replay"
    results_version = 2
    reference = "Liang and Li, NeurIPS 2023"
    Settings: ClassVar[type[MethodSettings]] = LODESettings
    settings: LODESettings
    replay = Replay(memory="reservoir", joined=False, draws=("replay",))

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Also begin to count classes."""
        super().attach(network, memory, generator, make)
        device = next(network.parameters()).device
        self.earlier = torch.zeros(network.classes, dtype=torch.bool, device=device)
        self.current = torch.zeros_like(self.earlier)
        self.inter_weight: float | Tensor = 0.0

    def before_domain(self, domain: str) -> None:
        """No class of the domain was seen yet."""
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
        ratio: Tensor = self.settings.rho * new.sum() / (~new).sum().clamp(min=1)
        return ratio

    def after_domain(self, domain: str, rows: Rows) -> None:
        """The domain's classes are old from now on."""
        self.earlier.index_fill_(0, rows.labels[rows.index], True)

    def state_dict(self) -> dict[str, Any]:
        """The classes of the finished domains."""
        return {"earlier": self.earlier}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.earlier = state["earlier"].to(self.earlier.device)


def decoupled(logits: Tensor, labels: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """(inter, intra) of each row; `new` says which classes are new and must hold every label."""
    among_new = logits.masked_fill(~new, -torch.inf).logsumexp(dim=1)
    own = logits.gather(1, labels[:, None])[:, 0]
    # Without old classes inter is 0 to the last bit, in the gradient too.
    inter = torch.where((~new).any(), logits.logsumexp(dim=1) - among_new, 0.0)
    return inter, among_new - own
