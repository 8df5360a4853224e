"""GroupDRO: replay in which the domains with the highest loss count most."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..base.forms import FormError, Like
from ..data.batch import Batch
from ..settings import MethodSettings, Power, setting
from .er import ER
from .finetune import Finetune
from .method import Terms

# A share of 0 would stay 0 for ever.
LEAST = 1e-12


class GroupDROSettings(MethodSettings):
    """η 0.01, 10^U(-3, -1): DomainBed's value and range; the authors' code has 0.01, too."""

    step_size: float = setting(
        0.01, Power(10, -3, -1), ge=0, help="η, how fast the weights of the domains move"
    )


class GroupDRO(Finetune):
    """Minimise a weighted mean of the domains' losses; weights follow the losses.

    Equation: with l_g the mean loss of domain g in the batch, for the current and every replayed
    domain, q_g ← q_g exp(η l_g), then q ← q / Σ q, and L = Σ_g q_g l_g. No gradient passes q.
    Paper: Sagawa, Koh, Hashimoto, Liang, "Distributionally Robust Neural Networks for Group
    Shifts", ICLR 2020. There all groups are at hand; here past ones come from the memory.

    Readings: groups are domains, not pairs of domain and class. A new domain starts with the share
    1/s of s domains, and the others keep their proportions. If a step draws only some of the past
    domains, the shares of these move, and L has their shares divided by their sum. The authors'
    adjustment for small groups, C/√n_g, is 0. With η = 0 all rows have equal weights, as in er.
    """

    name = "groupdro"
    group = "replay"
    reference = "Sagawa et al., ICLR 2020, arXiv:1911.08731"
    Settings: ClassVar[type[MethodSettings]] = GroupDROSettings
    settings: GroupDROSettings
    replay = ER.replay
    remembers = ("shares",)
    reduces_to = ("er", {"step_size": 0})

    def setup(self) -> None:
        """No domain has a share yet."""
        self.shares = torch.zeros(0, device=self.device)  # in the order of learning

    def before_domain(self, domain: str) -> None:
        """Give the new domain, the last, its share."""
        known = len(self.domains)
        if len(self.shares) == known:
            old = self.shares * (known / (known + 1))
            self.shares = torch.cat([old, old.new_full((1,), 1 / (known + 1))])

    def terms(self, batch: Batch) -> Terms:
        """`erm`: Σ_g q_g l_g."""
        _, logits = self.forward(batch)
        if not batch.replayed or not self.settings.step_size:
            return {"erm": self.risk(logits, batch.labels, batch.weights)}
        weights: Sequence[Tensor | None] = [None] * (1 + batch.replayed)
        if batch.weights is not None:
            weights = batch.parts(batch.weights)
        parts = zip(batch.parts(logits), batch.parts(batch.labels), weights, strict=True)
        losses = torch.stack([self.risk(*part) for part in parts])
        return {"erm": (self._moved(batch, losses.detach()) * losses).sum()}

    def _moved(self, batch: Batch, losses: Tensor) -> Tensor:
        """Move the shares of the domains in the batch; return them, divided by their sum."""
        current = batch.domains.new_full((1,), len(self.shares) - 1)
        index = torch.cat([current, batch.domains])
        grown = self.shares[index] * (self.settings.step_size * losses).exp()
        self.shares.index_copy_(0, index, grown.to(self.shares.dtype))
        self.shares.div_(self.shares.sum()).clamp_(min=LEAST)
        drawn = self.shares[index]
        return drawn / drawn.sum()

    def forget(self, domain: str) -> None:
        """Remove the domain's share."""
        place = self.domains.index(domain)
        kept = torch.cat([self.shares[:place], self.shares[place + 1 :]])
        self.shares = kept / kept.sum() if len(kept) else kept

    def state_form(self) -> Any:
        """A share per domain."""
        return {"shares": Like((None,), self.shares.dtype, finite=True)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the shares: of the learned domains, and within a domain also its own."""
        if len(state["shares"]) - len(self.domains) not in (0, 1):
            raise FormError("method.shares does not have a number per domain")
        super().load_state_dict(state)
