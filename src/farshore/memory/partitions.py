"""PartitionedMemory: one partition per domain."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from ..base.forms import NAMES, FormError, check_form, check_keys
from ..data.batch import Draw
from ..errors import FarshoreError
from ..settings import RunSettings
from .memory import Fields, KeptForm, Memory, Source, as_draw, positions, share
from .reservoir import ReservoirMemory


class PartitionedMemory(Memory):
    """One partition per domain. They share the capacity evenly and shrink as domains are added.

    All partitions are concatenated in one tensor per field, so that a draw is a single gather for
    any number of domains. The rows of a partition are in random order: its first k rows are a
    uniform (or class-balanced) sample, so that shrinking drops the last rows and needs no random
    numbers.

    fill: `end` draws the rows of a partition when its domain ends; `reservoir` samples them during
    training, with z at that time.
    """

    def __init__(
        self,
        capacity: int,
        *,
        max_bytes: int | None = None,
        class_balanced: bool = False,
        fill: Literal["end", "reservoir"] = "end",
    ) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        self.class_balanced = class_balanced
        self.fill = fill
        self.fields: Fields = {}
        self.sizes: dict[str, int] = {}
        self.coming: ReservoirMemory | None = None  # the partition being filled

    @classmethod
    def build(cls, capacity: int, classes: int, run: RunSettings) -> Self:
        """Create a memory with the settings of a run."""
        balanced, fill = run.class_balanced_memory, run.memory_fill
        return cls(capacity, max_bytes=run.memory_bytes, class_balanced=balanced, fill=fill)

    # ---- life cycle of a domain ------------------------------------------------------------------

    def open_domain(self, domain: str, source: Source) -> None:
        """Raise an error if the domain would get no rows; start its reservoir if it has one."""
        self.check_room(domain)
        if self.fill == "reservoir":
            room = self.room(_first(source), domain)
            self.coming = ReservoirMemory(min(room, len(source)))

    @property
    def observes(self) -> bool:
        """Whether a partition is being filled."""
        return self.coming is not None

    def observe(self, rows: Fields, generator: torch.Generator) -> None:
        """Offer the rows to the partition being filled."""
        if self.coming is not None:
            self.coming.observe(rows, generator)

    def close_domain(self, domain: str, source: Source, generator: torch.Generator) -> None:
        """Create the domain's partition."""
        if self.coming is not None:
            sampled = self.coming.contents()
            order = self.choose(sampled["labels"], len(sampled["labels"]), generator)
            rows = {name: field[order] for name, field in sampled.items()}
            self.coming = None
        else:
            room = self.room(_first(source), domain)
            rows = source.fields(self.choose(source.labels, room, generator))
        self.add(domain, rows)

    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Draw:
        """Draw `rows` rows from each partition, or from `domains` partitions chosen at random."""
        numbers, counts, starts = self._numbers, self._counts, self._starts
        if domains is not None and domains < len(numbers):
            keys = torch.rand(len(numbers), generator=generator, device=generator.device)
            numbers = keys.topk(domains, sorted=False).indices.sort().values
            counts, starts = counts[numbers], starts[numbers]
        index = positions(counts, rows, generator, *self._bounds) + starts[:, None]
        return as_draw({key: field[index] for key, field in self.fields.items()}, numbers)

    # ---- partitions ------------------------------------------------------------------------------

    def kept(self) -> dict[str, Fields]:
        """The rows of each domain, in learning order, as views."""
        partitions, start = {}, 0
        for name, size in self.sizes.items():
            rows = slice(start, start + size)
            partitions[name] = {key: field[rows] for key, field in self.fields.items()}
            start += size
        return partitions

    def check_room(self, domain: str) -> None:
        """Raise an error if the capacity is less than one row per domain."""
        needed = len(self.sizes) + (domain not in self.sizes)
        if self.capacity < needed:
            raise FarshoreError(
                f"memory = {self.capacity} is smaller than the number of domains ({needed}): "
                "give at least one row per domain"
            )

    def room(self, rows: Mapping[str, Tensor], domain: str) -> int:
        """Number of rows that a further domain with these fields would get."""
        count = len(self.sizes) + (domain not in self.sizes)
        limit = self.limit(rows)
        if limit < count:
            raise FarshoreError(
                f"memory_bytes = {self.max_bytes} has room for {limit} rows, fewer than the number "
                f"of domains ({count})"
            )
        return share(limit, count, count - 1)

    def choose(self, labels: Tensor, rows: int, generator: torch.Generator) -> Tensor:
        """Which rows of a domain to keep, in random order, balanced by class if asked for."""
        if self.class_balanced:
            return balanced_order(self.task.strata(labels), generator)[:rows]
        return torch.randperm(len(labels), generator=generator, device=labels.device)[:rows]

    def add(self, domain: str, rows: Fields) -> None:
        """Add a partition with these rows, already in random order, and shrink the others."""
        self.check_room(domain)
        room = self.room(rows, domain)
        self.forget(domain)
        limit, count = self.limit(rows), len(self.sizes) + 1
        numbered = enumerate(self.sizes.items())
        sizes = {name: min(size, share(limit, count, place)) for place, (name, size) in numbered}
        self._shrink(sizes)
        new = {key: field[:room].detach() for key, field in rows.items()}
        self.fields = {
            key: torch.cat([self.fields[key], field]) if self.fields else field.clone()
            for key, field in new.items()
        }
        self._describe({**sizes, domain: len(new["labels"])})

    def forget(self, domain: str) -> None:
        """Delete a domain's rows. Rows that other domains lost earlier are not recovered."""
        if domain in self.sizes:
            self._shrink({**self.sizes, domain: 0})
            self._describe({name: size for name, size in self.sizes.items() if name != domain})

    def _shrink(self, sizes: Mapping[str, int]) -> None:
        """Cut each partition to its first rows, as many as `sizes` gives."""
        if list(sizes.values()) == list(self.sizes.values()):
            return
        starts = np.cumsum([0, *self.sizes.values()])[:-1]
        ranges = zip(starts, sizes.values(), strict=True)
        index = np.concatenate([np.arange(start, start + size) for start, size in ranges])
        chosen = torch.from_numpy(index)
        self.fields = {key: field[chosen.to(field.device)] for key, field in self.fields.items()}

    def _describe(self, sizes: dict[str, int]) -> None:
        """Record where each partition starts and ends, on the host and on the device."""
        self.sizes = sizes
        if not sizes:
            self.fields = {}
            return
        device = self.fields["labels"].device
        counts = torch.tensor(list(sizes.values()))
        self._counts, self._starts = counts.to(device), (counts.cumsum(0) - counts).to(device)
        self._numbers = torch.arange(len(sizes), device=device)
        self._bounds = max(sizes.values()), min(sizes.values())

    # ---- size and state --------------------------------------------------------------------------

    @property
    def items(self) -> int:
        """Number of stored rows."""
        return sum(self.sizes.values())

    @property
    def bytes(self) -> int:
        """Size of the stored rows in bytes."""
        return sum(field.numel() * field.element_size() for field in self.fields.values())

    def state_dict(self) -> dict[str, Any]:
        """All rows per domain, in learning order, and the partition being filled."""
        coming = self.coming.state_dict() if self.coming is not None else None
        return {"names": list(self.sizes), "rows": list(self.kept().values()), "coming": coming}

    def check_state(self, state: Any, form: KeptForm) -> None:
        """Raise a FormError unless these are named partitions within the capacity."""
        check_keys(state, {"names": None, "rows": None, "coming": None}, "memory")
        check_form(state["names"], NAMES, "memory.names")
        rows = state["rows"]
        if not isinstance(rows, list) or len(rows) != len(state["names"]):
            raise FormError("memory.rows is not a list with the rows of each domain")
        left = self.capacity
        for index, fields in enumerate(rows):
            size = form.check(fields, f"memory.rows.{index}", most=left)
            if size == 0:
                raise FormError(f"memory.rows.{index} is empty")
            left -= size
        if len({fields["inputs"].dtype for fields in rows}) > 1:
            raise FormError("memory.rows have inputs of different types")
        if state["coming"] is not None:
            if self.coming is None:
                raise FormError("memory.coming is there, but no partition is being filled")
            self.coming.check_state(state["coming"], form)

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        rows = state["rows"]
        keys = rows[0] if rows else ()
        self.fields = {key: torch.cat([of[key] for of in rows]).to(device) for key in keys}
        pairs = zip(state["names"], rows, strict=True)
        self._describe({name: len(fields["labels"]) for name, fields in pairs})
        if self.coming is not None and state["coming"] is not None:
            self.coming.load_state_dict(state["coming"], device)


def balanced_order(strata: Tensor, generator: torch.Generator) -> Tensor:
    """A random order in which every prefix has nearly the same number of rows per stratum."""
    order = torch.randperm(len(strata), generator=generator, device=strata.device)
    shuffled = strata[order]
    rank = torch.zeros_like(shuffled)  # how many rows of the same stratum come earlier
    for each in shuffled.unique():
        within = shuffled == each
        rank[within] = torch.arange(int(within.sum()), device=strata.device)
    return order[torch.argsort(rank, stable=True)]


def _first(source: Source) -> Fields:
    """One row, which shows the fields and their sizes."""
    return source.fields(torch.zeros(1, dtype=torch.long))
