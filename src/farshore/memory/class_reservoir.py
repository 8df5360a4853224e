"""ClassReservoirMemory: one reservoir per class."""

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor

from ..base.forms import LARGEST_NUMBER, FormError, Like
from ..data.batch import Draw
from ..settings import RunSettings
from .memory import Fields, KeptForm, as_draw, empty_rows, share
from .reservoir import ReservoirMemory


class ClassReservoirMemory(ReservoirMemory):
    """One reservoir per class.

    The classes share the capacity evenly and are drawn evenly, however rare they are in the
    stream. Rows are stored in a grid of reservoirs x slots. Which cells are filled depends on the
    stream and is known only on the device; `observe` and `draw` never wait for it. If there are
    more classes than rows, several classes share a reservoir.
    """

    def __init__(self, capacity: int, classes: int, *, max_bytes: int | None = None) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        self.classes = classes

    @classmethod
    def build(cls, capacity: int, classes: int, run: RunSettings) -> Self:
        """Create a memory for this many classes with the settings of a run."""
        return cls(capacity, classes, max_bytes=run.memory_bytes)

    @property
    def _stored(self) -> Tensor:
        """Number of rows in each reservoir."""
        return torch.minimum(self.offered, self.quota)

    @property
    def items(self) -> int:
        """Number of stored rows."""
        return int(self._stored.sum()) if self.rows else 0

    def _divide(self, rows: Fields) -> None:
        """Divide the capacity among the reservoirs, for rows with these fields."""
        limit, device = self.limit(rows), rows["labels"].device
        self.reservoirs = min(self.classes, limit)
        self.slots = share(limit, self.reservoirs, 0)
        quota = [share(limit, self.reservoirs, number) for number in range(self.reservoirs)]
        self.quota = torch.tensor(quota, device=device)
        self.offered = torch.zeros_like(self.quota)

    def observe(self, rows: Fields, generator: torch.Generator) -> None:
        """Offer a batch of rows; each one goes to the reservoir of its class."""
        if not self.rows:
            self._divide(rows)
            cells = self.reservoirs * self.slots + 1
            self.count = self.count.to(rows["labels"].device)
            self.rows = empty_rows(rows, cells)
        labels = rows["labels"] % self.reservoirs
        device = labels.device
        members = (labels[:, None] == torch.arange(self.reservoirs, device=device)).long()
        earlier = (members.cumsum(dim=0) - members).gather(1, labels[:, None])[:, 0]
        number = self.offered[labels] + earlier
        uniform = torch.rand(len(labels), generator=generator, device=device, dtype=torch.float64)
        drawn = (uniform * (number + 1)).long()
        slot = torch.where(number < self.quota[labels], number, drawn)
        self._store(rows, labels * self.slots + slot, slot < self.quota[labels])
        self.offered += members.sum(dim=0)

    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Draw:
        """Equally many rows per class as far as there are; distinct ones until all were drawn."""
        grid, device = (self.reservoirs, self.slots), generator.device
        filled = torch.arange(self.slots, device=device) < self._stored[:, None]
        keys = torch.rand(grid, generator=generator, device=device).masked_fill_(~filled, 2.0)
        # A random order within each class; each turn takes one row of every class.
        turn = keys.argsort(dim=1).argsort(dim=1)
        order = turn + torch.rand(grid, generator=generator, device=device)
        order = order.masked_fill_(~filled, torch.inf)
        wanted = torch.arange(rows * (domains or 1), device=device) % self._stored.sum()
        index = order.flatten().argsort()[wanted]
        return as_draw({key: field[index] for key, field in self.rows.items()})

    def contents(self) -> Fields:
        """The stored rows, class by class."""
        filled = torch.arange(self.slots, device=self.quota.device) < self._stored[:, None]
        return {key: field[:-1][filled.flatten()] for key, field in self.rows.items()}

    def state_dict(self) -> dict[str, Any]:
        """The stored rows and how many of each class were observed."""
        return super().state_dict() | {"offered": self.offered if self.rows else None}

    def check_state(self, state: Any, form: KeptForm) -> None:
        """Raise a FormError unless these are the rows and the counts of the classes."""
        self._check_reservoir(state, form, {"rows": None, "seen": None, "offered": None})
        if not state["rows"]:
            return
        reservoirs = min(self.classes, self.limit(state["rows"]))
        offered = Like((reservoirs,), torch.long, below=LARGEST_NUMBER)
        offered.check(state["offered"], "memory.offered")
        if int(state["offered"].sum()) != state["seen"]:
            raise FormError("memory.offered does not add up to the rows observed")

    def _cells(self, rows: Fields) -> int:
        limit = self.limit(rows)
        reservoirs = min(self.classes, limit)
        return reservoirs * share(limit, reservoirs, 0)

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        super().load_state_dict(state, device)
        if self.rows:
            self._divide(self.rows)
            self.offered = state["offered"].to(device)
