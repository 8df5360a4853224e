"""Batch: the rows of one step, as one flat tensor with views of its current and replayed rows."""

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Draw:
    """Rows drawn from the memory, with the logits or features stored for them.

    `domains` numbers the domains along the first axis, in the order they were learned. It is
    empty if the memory mixes domains.
    """

    inputs: Tensor
    labels: Tensor
    stored: dict[str, Tensor]
    domains: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))


@dataclass
class Batch:
    """The rows of one step: `rows` current ones, then `replay_rows` of each replayed domain.

    `current(t)` and `replay(t)` view any flat per-row tensor as [1, n, ...] and [E, m, ...], so
    that statistics are batched over domains. `stored` contains the values that the memory stored
    with the replayed rows, as [E, m, ...]. `domains` numbers the replayed domains in the order
    they were learned.
    """

    inputs: Tensor
    labels: Tensor
    rows: int
    domain: int = 0
    domains: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    replay_rows: int = 0
    stored: dict[str, Tensor] = field(default_factory=dict)
    draws: dict[str, Draw] = field(default_factory=dict)
    # Outputs that the method computed for the current rows. The learner stores them with the rows
    # that a reservoir accepts.
    outputs: dict[str, Tensor] = field(default_factory=dict)
    # How much each row counts in the ERM term; None if all count the same.
    weights: Tensor | None = None

    def join(self, draw: Draw) -> None:
        """Append the rows of past domains, [E, m, ...], to the flat batch."""
        self.inputs = torch.cat([self.inputs, draw.inputs.flatten(0, 1)])
        self.labels = torch.cat([self.labels, draw.labels.flatten(0, 1)])
        if self.weights is not None:
            self.weights = torch.cat([self.weights, draw.stored.pop("weights").flatten()])
        self.stored, self.domains = draw.stored, draw.domains
        self.replay_rows = draw.inputs.shape[1]

    @property
    def replayed(self) -> int:
        """E, the number of past domains in this batch."""
        return len(self.domains)

    def current(self, flat: Tensor) -> Tensor:
        """View the current domain's part of a per-row tensor, [1, n, ...]."""
        return flat[: self.rows].unsqueeze(0)

    def replay(self, flat: Tensor) -> Tensor:
        """View the replayed part of a per-row tensor, [E, m, ...]."""
        return flat[self.rows :].reshape(self.replayed, self.replay_rows, *flat.shape[1:])

    def parts(self, flat: Tensor) -> list[Tensor]:
        """Split a per-row tensor by domain, [n, ...] each: the current one first."""
        return [self.current(flat)[0], *(self.replay(flat).unbind(0) if self.replayed else ())]

    def views(self, flat: Tensor) -> list[Tensor]:
        """Current and replayed part as [k, n, ...] each; one view if both have as many rows."""
        if self.replayed and self.rows == self.replay_rows:
            return [flat.reshape(1 + self.replayed, self.rows, *flat.shape[1:])]
        return [self.current(flat), *([self.replay(flat)] if self.replayed else [])]
