"""What is kept of the past: rows (x, y, z), bounded in items and in bytes.

Three kinds. `PartitionedMemory` has one partition a domain; the partitions share the capacity
evenly and shrink as domains come. `ReservoirMemory` is one uniform sample of the whole stream,
`ClassReservoirMemory` one of each class. Images stay uint8; z (logits, features) are floats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .batch import Draw
from .errors import FarshoreError
from .settings import RunSettings

Fields = dict[str, Tensor]


def row_bytes(rows: Mapping[str, Tensor]) -> int:
    """Bytes of one row over all its fields."""
    return sum(field[:1].numel() * field.element_size() for field in rows.values())


def share(capacity: int, domains: int, place: int) -> int:
    """Rows of the partition at `place` when `domains` share `capacity`: they differ by one at
    most and never grow.
    """
    return -(-(capacity - place) // domains)


def balanced_order(labels: Tensor, generator: torch.Generator) -> Tensor:
    """A random order in which every beginning holds nearly equally many rows of each class."""
    order = torch.randperm(len(labels), generator=generator, device=labels.device)
    shuffled = labels[order]
    rank = torch.zeros_like(shuffled)  # how many rows of the same class stand before
    for label in shuffled.unique():
        of_class = shuffled == label
        rank[of_class] = torch.arange(int(of_class.sum()), device=labels.device)
    return order[torch.argsort(rank, stable=True)]


def positions(sizes: Tensor, rows: int, generator: torch.Generator, largest: int) -> Tensor:
    """For each size, `rows` numbers below it: all different where it is large enough, with
    replacement otherwise. [E, rows]

    `largest` is the greatest size, known on the host; nothing here waits for the device.
    """
    device = sizes.device
    filled = torch.arange(largest, device=device) < sizes[:, None]
    keys = torch.rand(len(sizes), largest, generator=generator, device=device).masked_fill_(
        ~filled, 2.0
    )
    if rows == 1:  # as it often is where many domains share a batch
        distinct = keys.argmin(dim=1, keepdim=True)
    else:
        distinct = (
            keys.argsort(dim=1)[:, :rows] if rows < largest else _padded(keys.argsort(dim=1), rows)
        )
    repeated = (
        torch.rand(len(sizes), rows, generator=generator, device=device) * sizes[:, None]
    ).long()
    return torch.where(rows <= sizes[:, None], distinct, repeated)


def _padded(order: Tensor, rows: int) -> Tensor:
    return torch.nn.functional.pad(order, (0, rows - order.shape[1]))


class Memory(ABC):
    """What both kinds share: a capacity in items, an optional one in bytes, and what is stored
    beside inputs and labels.
    """

    def __init__(self, capacity: int, *, max_bytes: int | None = None) -> None:
        if capacity < 1:
            raise FarshoreError(f"memory = {capacity} is not allowed: it must keep at least 1 row")
        self.capacity = capacity
        self.max_bytes = max_bytes

    def limit(self, rows: Mapping[str, Tensor]) -> int:
        """The capacity in items for rows of this form: the bound in items or the one in bytes,
        whichever is less.
        """
        if self.max_bytes is None:
            return self.capacity
        fit = self.max_bytes // row_bytes(rows)
        if fit < 1:
            raise FarshoreError(
                f"memory_bytes = {self.max_bytes} is too small: one row takes {row_bytes(rows)} "
                "bytes"
            )
        return min(self.capacity, fit)

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
        """Take over what `state_dict` gave."""


class PartitionedMemory(Memory):
    """One partition a domain, named by the domain.

    All partitions stand behind one another in one tensor a field, so that a draw is one gather
    however many domains there are. The rows of a partition stand in random order: its first k rows
    are a uniform (or class-balanced) sample of it, and shrinking cuts the end off and needs no
    random number.
    """

    def __init__(
        self, capacity: int, *, max_bytes: int | None = None, class_balanced: bool = False
    ) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        self.class_balanced = class_balanced
        self.fields: Fields = {}
        self.sizes: dict[str, int] = {}

    @property
    def partitions(self) -> dict[str, Fields]:
        """The rows of each domain, in the order of learning, as views: writing into one changes
        the memory.
        """
        found, start = {}, 0
        for name, size in self.sizes.items():
            found[name] = {key: field[start : start + size] for key, field in self.fields.items()}
            start += size
        return found

    def check_room(self, domain: str) -> None:
        """Refuse a further domain if the capacity does not give every domain a row."""
        needed = len(self.sizes) + (domain not in self.sizes)
        if self.capacity < needed:
            raise FarshoreError(
                f"memory = {self.capacity} is smaller than the number of domains ({needed}): "
                "give at least one row a domain"
            )

    def room(self, rows: Mapping[str, Tensor], domain: str) -> int:
        """Rows that a further domain of this form would get."""
        count = len(self.sizes) + (domain not in self.sizes)
        limit = self.limit(rows)
        if limit < count:
            raise FarshoreError(
                f"memory_bytes = {self.max_bytes} holds {limit} rows, fewer than the number of "
                f"domains ({count})"
            )
        return share(limit, count, count - 1)

    def choose(self, labels: Tensor, rows: int, generator: torch.Generator) -> Tensor:
        """Which rows of a domain to keep, in random order: without replacement, class-balanced
        if asked for.
        """
        if self.class_balanced:
            return balanced_order(labels, generator)[:rows]
        return torch.randperm(len(labels), generator=generator, device=labels.device)[:rows]

    def add(self, domain: str, rows: Fields) -> None:
        """Give `domain` a partition with these rows (already in random order) and shrink the
        others to even shares.
        """
        self.check_room(domain)
        room = self.room(rows, domain)
        self.forget(domain)
        limit, count = self.limit(rows), len(self.sizes) + 1
        kept = {
            name: min(size, share(limit, count, place))
            for place, (name, size) in enumerate(self.sizes.items())
        }
        self._keep(kept)
        new = {key: field[:room].detach() for key, field in rows.items()}
        self.fields = {
            key: torch.cat([self.fields[key], field]) if self.fields else field.clone()
            for key, field in new.items()
        }
        self._describe({**kept, domain: len(new["labels"])})

    def forget(self, domain: str) -> None:
        """Delete a domain's rows. Rows of the others that were cut off before do not come back."""
        if domain in self.sizes:
            self._keep({**self.sizes, domain: 0})
            self._describe({name: size for name, size in self.sizes.items() if name != domain})

    def _keep(self, sizes: Mapping[str, int]) -> None:
        """Cut each partition to its first rows."""
        if list(sizes.values()) == list(self.sizes.values()):
            return
        starts = np.cumsum([0, *self.sizes.values()])[:-1]
        index = [
            np.arange(start, start + size)
            for start, size in zip(starts, sizes.values(), strict=True)
        ]
        places = torch.from_numpy(np.concatenate(index))
        self.fields = {key: field[places.to(field.device)] for key, field in self.fields.items()}

    def _describe(self, sizes: dict[str, int]) -> None:
        """Where each partition begins and ends, on the host and on the device."""
        self.sizes = sizes
        if not sizes:
            self.fields = {}
            return
        device = self.fields["labels"].device
        counts = torch.tensor(list(sizes.values()))
        self._counts, self._starts = counts.to(device), (counts.cumsum(0) - counts).to(device)
        self._numbers = torch.arange(len(sizes), device=device)
        self._largest = max(sizes.values())

    def draw(
        self, rows: int, generator: torch.Generator, *, domains: int | None = None
    ) -> tuple[Draw, Tensor]:
        """`rows` rows of each partition, or of `domains` partitions chosen at random, as [E,
        rows, ...]; and their numbers.
        """
        numbers = self._numbers
        if domains is not None and domains < len(numbers):
            keys = torch.rand(len(numbers), generator=generator, device=generator.device)
            numbers = keys.topk(domains, sorted=False).indices.sort().values
        index = (
            positions(self._counts[numbers], rows, generator, self._largest)
            + self._starts[numbers, None]
        )
        fields = {key: field[index] for key, field in self.fields.items()}
        return Draw(fields.pop("inputs"), fields.pop("labels"), fields), numbers

    @property
    def items(self) -> int:
        """Rows held."""
        return sum(self.sizes.values())

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return sum(field.numel() * field.element_size() for field in self.fields.values())

    def state_dict(self) -> dict[str, Any]:
        """All rows, by domain in the order of learning."""
        return {"names": list(self.sizes), "rows": list(self.partitions.values())}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave."""
        rows = state["rows"]
        self.fields = (
            {key: torch.cat([fields[key] for fields in rows]).to(device) for key in rows[0]}
            if rows
            else {}
        )
        self._describe(
            {name: len(fields["labels"]) for name, fields in zip(state["names"], rows, strict=True)}
        )


class ReservoirMemory(Memory):
    """A uniform sample of everything offered so far (Vitter's algorithm R, a whole batch at a
    time).

    The n-th row offered (n from 0) goes to slot n while there is room; afterwards to a slot drawn
    from 0..n, and is dropped if that lies beyond the capacity. Every row ever offered is kept with
    probability capacity / seen.
    """

    def __init__(self, capacity: int, *, max_bytes: int | None = None) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        # one row more than the limit: the place where dropped rows are written, never read
        self.rows: Fields = {}
        # Rows offered so far. On the device, because it changes in every step: nothing in a step
        # may depend on a number on the host.
        self.count = torch.zeros((), dtype=torch.long)

    @property
    def seen(self) -> int:
        """Rows offered so far; reading it waits for the device."""
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

    def offer(self, rows: Fields, generator: torch.Generator) -> None:
        """Offer a batch of rows, one after the other. Where two go to one slot, the later stays."""
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
        drawn = (
            torch.rand(count, generator=generator, device=device, dtype=torch.float64)
            * (number + 1)
        ).long()
        slot = torch.where(number < slots, number, drawn)
        overtaken = torch.triu(slot[:, None] == slot[None, :], diagonal=1).any(dim=1)
        slot = torch.where((slot < slots) & ~overtaken, slot, slots)
        for key, field in rows.items():
            self.rows[key].index_copy_(0, slot, field.detach())
        self.count += count

    def draw(self, rows: int, generator: torch.Generator) -> Draw:
        """`rows` rows of the sample: different ones where it holds enough, with replacement
        otherwise.
        """
        index = positions(self.count.clamp_max(self._slots)[None], rows, generator, self._slots)[0]
        fields = {key: field[index] for key, field in self.rows.items()}
        return Draw(fields.pop("inputs"), fields.pop("labels"), fields)

    def contents(self) -> Fields:
        """The rows held."""
        return {key: field[: self.items] for key, field in self.rows.items()}

    def state_dict(self) -> dict[str, Any]:
        """The rows and how many were offered: without that count a loaded reservoir would favour
        new rows.
        """
        return {"rows": self.rows, "seen": self.seen}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave."""
        self.rows = {key: field.to(device) for key, field in state["rows"].items()}
        self.count = torch.tensor(int(state["seen"]), device=device)


class ClassReservoirMemory(ReservoirMemory):
    """A reservoir for each class. The classes share the capacity evenly and are drawn evenly,
    however rare they are in the stream.

    The rows stand in a grid of reservoirs x places. Which cells hold a row depends on the stream,
    so it is known to the device only; nothing in `offer` and `draw` waits for it. Where there are
    more classes than rows, several classes share a reservoir.
    """

    def __init__(self, capacity: int, classes: int, *, max_bytes: int | None = None) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        self.classes = classes

    @property
    def _held(self) -> Tensor:
        """Rows in each reservoir."""
        return torch.minimum(self.offered, self.quota)

    @property
    def items(self) -> int:
        """Rows held."""
        return int(self._held.sum()) if self.rows else 0

    def _begin(self, rows: Fields) -> None:
        """Divide the capacity, for rows of this form."""
        limit, device = self.limit(rows), rows["labels"].device
        self.reservoirs = min(self.classes, limit)
        self.places = share(limit, self.reservoirs, 0)
        self.quota = torch.tensor(
            [share(limit, self.reservoirs, place) for place in range(self.reservoirs)],
            device=device,
        )
        self.offered = torch.zeros_like(self.quota)

    def offer(self, rows: Fields, generator: torch.Generator) -> None:
        """Offer a batch of rows; each goes to the reservoir of its class."""
        if not self.rows:
            self._begin(rows)
            cells = self.reservoirs * self.places + 1
            self.count = self.count.to(rows["labels"].device)
            self.rows = {
                key: field.new_zeros((cells, *field.shape[1:])) for key, field in rows.items()
            }
        labels = rows["labels"] % self.reservoirs
        members = (labels[:, None] == torch.arange(self.reservoirs, device=labels.device)).long()
        before = (members.cumsum(dim=0) - members).gather(1, labels[:, None])[:, 0]
        number = self.offered[labels] + before
        drawn = (
            torch.rand(len(labels), generator=generator, device=labels.device, dtype=torch.float64)
            * (number + 1)
        ).long()
        place = torch.where(number < self.quota[labels], number, drawn)
        cell = labels * self.places + place
        overtaken = torch.triu(cell[:, None] == cell[None, :], diagonal=1).any(dim=1)
        cell = torch.where((place < self.quota[labels]) & ~overtaken, cell, self._slots)
        for key, field in rows.items():
            self.rows[key].index_copy_(0, cell, field.detach())
        self.offered += members.sum(dim=0)
        self.count += len(labels)

    def draw(self, rows: int, generator: torch.Generator) -> Draw:
        """`rows` rows, equally many of each class as far as it has them: different ones until
        all were drawn, then from the first again.
        """
        grid = (self.reservoirs, self.places)
        filled = torch.arange(self.places, device=generator.device) < self._held[:, None]
        keys = torch.rand(grid, generator=generator, device=generator.device).masked_fill_(
            ~filled, 2.0
        )
        turn = keys.argsort(dim=1).argsort(
            dim=1
        )  # a random order inside each class; a turn takes one row of every class
        order = (
            turn + torch.rand(grid, generator=generator, device=generator.device)
        ).masked_fill_(~filled, torch.inf)
        index = order.flatten().argsort()[
            torch.arange(rows, device=generator.device) % self._held.sum()
        ]
        fields = {key: field[index] for key, field in self.rows.items()}
        return Draw(fields.pop("inputs"), fields.pop("labels"), fields)

    def contents(self) -> Fields:
        """The rows held, class by class."""
        filled = torch.arange(self.places, device=self.quota.device) < self._held[:, None]
        return {key: field[:-1][filled.flatten()] for key, field in self.rows.items()}

    def state_dict(self) -> dict[str, Any]:
        """The rows and how many of each class were offered."""
        return super().state_dict() | {"offered": self.offered if self.rows else None}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state, device)
        if self.rows:
            self._begin(self.rows)
            self.offered = state["offered"].to(device)


def make_memory(kind: str | None, capacity: int, classes: int, run: RunSettings) -> Memory | None:
    """The memory that a method asks for: `partitions`, `reservoir`, `class-reservoir` or None."""
    if kind == "partitions":
        return PartitionedMemory(
            capacity, max_bytes=run.memory_bytes, class_balanced=run.class_balanced_memory
        )
    if kind == "class-reservoir":
        return ClassReservoirMemory(capacity, classes, max_bytes=run.memory_bytes)
    return ReservoirMemory(capacity, max_bytes=run.memory_bytes) if kind == "reservoir" else None
