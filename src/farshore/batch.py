"""Batch: what one step sees. One flat tensor, the current rows first, and two rectangular views
of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Draw:
    """Rows drawn from the memory with what was stored with them (logits, features).

    `domains` numbers the domains along the first axis, in the order in which they were learned;
    it is empty where the memory mixes domains.
    """

    inputs: Tensor
    labels: Tensor
    stored: dict[str, Tensor]
    domains: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))


@dataclass
class Batch:
    """One step's rows: `rows` of the current domain first, then `replay_rows` of each replayed
    domain.

    `current(t)` and `replay(t)` view any flat per-row tensor as [1, n, ...] and [E, m, ...], so
    that statistics are batched over domains. `stored` holds what the memory kept with the replayed
    rows, as [E, m, ...]. `domains` numbers the replayed domains in the order in which they were
    learned.
    """

    inputs: Tensor
    labels: Tensor
    rows: int
    domain: int = 0
    domains: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    replay_rows: int = 0
    stored: dict[str, Tensor] = field(default_factory=dict)
    draws: dict[str, Draw] = field(default_factory=dict)
    # What the method computed for the current rows; the learner stores it beside rows that a
    # reservoir accepts.
    outputs: dict[str, Tensor] = field(default_factory=dict)

    def join(self, draw: Draw) -> None:
        """Append the rows of past domains, [E, m, ...], to the flat batch."""
        self.inputs = torch.cat([self.inputs, draw.inputs.flatten(0, 1)])
        self.labels = torch.cat([self.labels, draw.labels.flatten(0, 1)])
        self.stored, self.domains = draw.stored, draw.domains
        self.replay_rows = draw.inputs.shape[1]

    @property
    def replayed(self) -> int:
        """E, the number of past domains in this batch."""
        return len(self.domains)

    def current(self, flat: Tensor) -> Tensor:
        """The current domain's part of a per-row tensor, [1, n, ...]."""
        return flat[: self.rows].unsqueeze(0)

    def replay(self, flat: Tensor) -> Tensor:
        """The replayed part of a per-row tensor, [E, m, ...]."""
        return flat[self.rows :].reshape(self.replayed, self.replay_rows, *flat.shape[1:])

    def parts(self, flat: Tensor) -> list[Tensor]:
        """A per-row tensor divided by domain: the current one, then each replayed one, [n, ...]
        each.
        """
        return [self.current(flat)[0], *(self.replay(flat).unbind(0) if self.replayed else ())]

    def views(self, flat: Tensor) -> list[Tensor]:
        """The current and the replayed part as [k, n, ...] each; one view of both where their
        rows are equally many.
        """
        if self.replayed and self.rows == self.replay_rows:
            return [flat.reshape(1 + self.replayed, self.rows, *flat.shape[1:])]
        return [self.current(flat), *([self.replay(flat)] if self.replayed else [])]
