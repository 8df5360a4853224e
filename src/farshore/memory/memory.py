"""Memory: the shape of what is kept of the past. Rows (x, y, z), bounded in items and in bytes.

The trainer calls a memory at four moments: `open_domain` when a domain begins, `draw` and `observe`
in every step, `close_domain` when the domain ends. Images stay uint8; z (logits, features) are
floats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from ..batch import Draw
from ..errors import FarshoreError
from ..settings import RunSettings

# Rows by field: `inputs`, `labels` and whatever the method stores with each row; [n, ...] each.
Fields = dict[str, Tensor]
# The name under which rows are kept whose domain is no longer known.
MIXED = "all past domains"


class Source(Protocol):
    """The training rows of the domain that is being learned, in the form in which rows are kept."""

    @property
    def labels(self) -> Tensor:
        """The label of every row."""

    def __len__(self) -> int:
        """How many rows there are."""

    def fields(self, positions: Tensor) -> Fields:
        """The rows at these positions, with z by the present model in evaluation mode."""


class Memory(ABC):
    """Base of all memories: a capacity in items and an optional one in bytes.

    `draw` and `observe` are part of a step: they read nothing on the host, so that a step can be
    recorded as a CUDA graph.
    """

    def __init__(self, capacity: int, *, max_bytes: int | None = None) -> None:
        if capacity < 1:
            raise FarshoreError(f"memory = {capacity} is not allowed: it must keep at least 1 row")
        self.capacity = capacity
        self.max_bytes = max_bytes

    @classmethod
    def build(cls, capacity: int, classes: int, run: RunSettings) -> Self:
        """A memory for this many classes with the settings of a run."""
        return cls(capacity, max_bytes=run.memory_bytes)

    def open_domain(self, domain: str, source: Source) -> None:
        """A domain begins. A memory that has no room for it refuses it here."""

    def observe(self, rows: Fields, generator: torch.Generator) -> None:
        """The current domain's rows of one step, after the update."""

    def close_domain(self, domain: str, source: Source, generator: torch.Generator) -> None:
        """A domain ended: its rows are available for the last time."""

    @abstractmethod
    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Draw:
        """Rows for a step: `rows` rows of each of `domains` domains.

        A memory that keeps rows per domain gives [E, rows, ...] and numbers the domains in
        `Draw.domains`; one that mixes them gives [domains x rows, ...].
        """

    @abstractmethod
    def forget(self, domain: str) -> None:
        """Delete the rows of a domain; refused where they cannot be told from others."""

    @abstractmethod
    def kept(self) -> dict[str, Fields]:
        """The rows held, per domain in the order of learning; under `MIXED` if domains are mixed.

        Views where possible: writing into one changes the memory.
        """

    @property
    @abstractmethod
    def items(self) -> int:
        """Rows held."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes held."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that is held, in tensors and plain values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore what `state_dict` gave."""

    def limit(self, rows: Mapping[str, Tensor]) -> int:
        """The capacity in items for rows of this form: by items or by bytes, whichever is less."""
        if self.max_bytes is None:
            return self.capacity
        fit = self.max_bytes // row_bytes(rows)
        if fit < 1:
            raise FarshoreError(
                f"memory_bytes = {self.max_bytes} is too small: one row takes "
                f"{row_bytes(rows)} bytes"
            )
        return min(self.capacity, fit)


def row_bytes(rows: Mapping[str, Tensor]) -> int:
    """Bytes of one row over all its fields."""
    return sum(field[:1].numel() * field.element_size() for field in rows.values())


def share(capacity: int, parts: int, number: int) -> int:
    """Rows of part `number` when `parts` share `capacity`: they differ by at most one row, and
    never grow as parts are added.
    """
    return -(-(capacity - number) // parts)


def positions(sizes: Tensor, rows: int, generator: torch.Generator, largest: int) -> Tensor:
    """For each size, `rows` numbers below it: [E, rows].

    All different where the size is large enough, with replacement otherwise. `largest` is the
    greatest size, known on the host; nothing here waits for the device.
    """
    device = sizes.device
    filled = torch.arange(largest, device=device) < sizes[:, None]
    keys = torch.rand(len(sizes), largest, generator=generator, device=device)
    keys = keys.masked_fill_(~filled, 2.0)
    if rows == 1:  # the usual case where many domains share a batch
        distinct = keys.argmin(dim=1, keepdim=True)
    else:
        order = keys.argsort(dim=1)
        distinct = order[:, :rows] if rows < largest else _padded(order, rows)
    drawn = torch.rand(len(sizes), rows, generator=generator, device=device)
    return torch.where(rows <= sizes[:, None], distinct, (drawn * sizes[:, None]).long())


def _padded(order: Tensor, rows: int) -> Tensor:
    return torch.nn.functional.pad(order, (0, rows - order.shape[1]))


def as_draw(fields: Fields, domains: Tensor | None = None) -> Draw:
    """Drawn fields as a Draw."""
    draw = Draw(fields.pop("inputs"), fields.pop("labels"), fields)
    if domains is not None:
        draw.domains = domains
    return draw
