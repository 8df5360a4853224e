"""ReservoirMemory: one uniform sample of the whole stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..batch import Draw
from ..errors import FarshoreError
from .memory import MIXED, Fields, Memory, as_draw, positions, row_bytes


class ReservoirMemory(Memory):
    """A uniform sample of all rows observed so far (Vitter's algorithm R, a batch at a time).

    The n-th row observed (n from 0) goes to slot n while there is room; afterwards to a slot drawn
    from 0..n, and is dropped if that slot lies beyond the capacity. Every row ever observed is kept
    with probability capacity / observed.
    """

    def __init__(self, capacity: int, *, max_bytes: int | None = None) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        # One row more than the limit: dropped rows are written there and never read.
        self.rows: Fields = {}
        # Rows observed so far. On the device, because it changes in every step: nothing in a step
        # may depend on a number on the host.
        self.count = torch.zeros((), dtype=torch.long)

    @property
    def seen(self) -> int:
        """Rows observed so far; reading it waits for the device."""
        return int(self.count)

    @property
    def items(self) -> int:
        """Rows held."""
        return min(self.seen, self._slots)

    @property
    def _slots(self) -> int:
        return len(self.rows["labels"]) - 1 if self.rows else 0

    @property
    def bytes(self) -> int:
        """Bytes of the rows held."""
        return row_bytes(self.rows) * self.items if self.rows else 0

    def observe(self, rows: Fields, generator: torch.Generator) -> None:
        """Offer a batch of rows in order. Where two go to one slot, the later one stays."""
        count = len(rows["labels"])
        if not self.rows:
            slots = self.limit(rows)
            self.rows = {
                key: field.new_zeros((slots + 1, *field.shape[1:])) for key, field in rows.items()
            }
            self.count = self.count.to(rows["labels"].device)
        slots = self._slots
        device = rows["labels"].device
        number = self.count + torch.arange(count, device=device)
        uniform = torch.rand(count, generator=generator, device=device, dtype=torch.float64)
        drawn = (uniform * (number + 1)).long()
        slot = torch.where(number < slots, number, drawn)
        overtaken = torch.triu(slot[:, None] == slot[None, :], diagonal=1).any(dim=1)
        slot = torch.where((slot < slots) & ~overtaken, slot, slots)
        for key, field in rows.items():
            self.rows[key].index_copy_(0, slot, field.detach())
        self.count += count

    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Draw:
        """Rows of the sample: different ones where it holds enough, with replacement otherwise."""
        size = self.count.clamp_max(self._slots)[None]
        index = positions(size, rows * (domains or 1), generator, self._slots)[0]
        return as_draw({key: field[index] for key, field in self.rows.items()})

    def forget(self, domain: str) -> None:
        """Refused: the sample does not know which row came from where."""
        raise FarshoreError(
            f"the rows of {domain!r} cannot be deleted: this method keeps one sample of all "
            "domains, in which they cannot be told apart"
        )

    def contents(self) -> Fields:
        """The rows held."""
        return {key: field[: self.items] for key, field in self.rows.items()}

    def kept(self) -> dict[str, Fields]:
        """The rows held, of all domains together."""
        return {MIXED: self.contents()} if self.rows and self.items else {}

    def state_dict(self) -> dict[str, Any]:
        """The rows and how many were observed: without that count a restored reservoir would
        favour new rows.
        """
        return {"rows": self.rows, "seen": self.seen}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore what `state_dict` gave."""
        self.rows = {key: field.to(device) for key, field in state["rows"].items()}
        self.count = torch.tensor(int(state["seen"]), device=device)
