"""ReservoirMemory: one uniform sample of the whole stream."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..base.forms import FormError, check_keys, is_count
from ..data.batch import Draw
from ..errors import FarshoreError
from .memory import MIXED, Fields, KeptForm, Memory, as_draw, empty_rows, positions, row_bytes


class ReservoirMemory(Memory):
    """A uniform sample of all rows observed so far (Vitter's algorithm R, one batch at a time).

    The n-th observed row (n from 0) goes to slot n while there is room. After that, a slot is drawn
    from 0..n, and the row is dropped if the slot exceeds the capacity. Every observed row is kept
    with probability capacity / observed.
    """

    mixes_domains = True

    def __init__(self, capacity: int, *, max_bytes: int | None = None) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        # One row more than the limit: dropped rows are written to it, and it is never read.
        self.rows: Fields = {}
        # Rows observed so far. It is on the device because it changes in every step, and a step
        # must not depend on a number on the host.
        self.count = torch.zeros((), dtype=torch.long)

    @property
    def seen(self) -> int:
        """Number of rows observed so far; reading it waits for the device."""
        return int(self.count)

    @property
    def items(self) -> int:
        """Number of stored rows."""
        return min(self.seen, self._slots)

    @property
    def _slots(self) -> int:
        return len(self.rows["labels"]) - 1 if self.rows else 0

    @property
    def bytes(self) -> int:
        """Size of the stored rows in bytes."""
        return row_bytes(self.rows) * self.items if self.rows else 0

    def observe(self, rows: Fields, generator: torch.Generator) -> None:
        """Offer a batch of rows in order. If two go to the same slot, the later one stays."""
        count = len(rows["labels"])
        if not self.rows:
            slots = self.limit(rows)
            self.rows = empty_rows(rows, slots + 1)
            self.count = self.count.to(rows["labels"].device)
        slots = self._slots
        device = rows["labels"].device
        number = self.count + torch.arange(count, device=device)
        uniform = torch.rand(count, generator=generator, device=device, dtype=torch.float64)
        drawn = (uniform * (number + 1)).long()
        slot = torch.where(number < slots, number, drawn)
        self._store(rows, slot, slot < slots)

    def _store(self, rows: Fields, slot: Tensor, fits: Tensor) -> None:
        """Write the rows that fit to their slots; those overtaken by later ones are dropped."""
        overtaken = torch.triu(slot[:, None] == slot[None, :], diagonal=1).any(dim=1)
        slot = torch.where(fits & ~overtaken, slot, self._slots)
        for key, field in rows.items():
            self.rows[key].index_copy_(0, slot, field.detach())
        self.count += len(slot)

    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Draw:
        """Draw rows of the sample: distinct if it has enough, otherwise with replacement."""
        size = self.count.clamp_max(self._slots)[None]
        index = positions(size, rows * (domains or 1), generator, self._slots)[0]
        return as_draw({key: field[index] for key, field in self.rows.items()})

    def clear(self) -> None:
        """Delete all rows; the memory is then as before the first one."""
        self.rows = {}
        self.count = torch.zeros_like(self.count)

    def forget(self, domain: str) -> None:
        """Raise an error: the sample does not record which domain a row came from.

        An empty sample has nothing of any domain.
        """
        if not self.rows:
            return
        raise FarshoreError(
            f"the rows of {domain!r} cannot be deleted: this method keeps one sample of all "
            "domains, in which they cannot be distinguished"
        )

    def contents(self) -> Fields:
        """The stored rows."""
        return {key: field[: self.items] for key, field in self.rows.items()}

    def kept(self) -> dict[str, Fields]:
        """The stored rows of all domains together."""
        return {MIXED: self.contents()} if self.rows and self.items else {}

    def state_dict(self) -> dict[str, Any]:
        """The stored rows and how many rows were observed.

        Without that count a restored reservoir would favour new rows.
        """
        return {"rows": self.rows, "seen": self.seen}

    def check_state(self, state: Any, form: KeptForm) -> None:
        """Raise a FormError unless these are a reservoir's rows and their count."""
        self._check_reservoir(state, form, {"rows": None, "seen": None})

    def _check_reservoir(self, state: Any, form: KeptForm, keys: Mapping[str, None]) -> None:
        check_keys(state, keys, "memory")
        if not is_count(state["seen"]):
            raise FormError("memory.seen is not a number of rows")
        if not state["rows"]:
            if state["rows"] != {} or state["seen"]:
                raise FormError("memory.rows are missing")
            return
        rows = form.check(state["rows"], "memory.rows", most=self.capacity + 1)
        if rows != self._cells(state["rows"]) + 1:
            raise FormError(f"memory.rows has {rows} rows, not those of its capacity")
        if not state["seen"]:
            raise FormError("memory.seen is 0, but there are rows")

    def _cells(self, rows: Fields) -> int:
        """How many rows like these the memory has room for."""
        return self.limit(rows)

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        self.rows = {key: field.to(device) for key, field in state["rows"].items()}
        self.count = torch.tensor(int(state["seen"]), device=device)
