"""Memory: the interface of memories. They keep rows (x, y, z), bounded in number and in bytes.

The trainer calls `open_domain` when a domain starts, `draw` and `observe` in every step, and
`close_domain` when the domain ends. Images stay uint8; z (logits, features) are floats.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor

from ..base.allocation import check_fits
from ..base.forms import FormError, Like, check_keys
from ..data.batch import Draw
from ..errors import FarshoreError
from ..settings import RunSettings
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task

# Rows by field: `inputs`, `labels` and the outputs the method stores per row; [n, ...] each.
Fields = dict[str, Tensor]
# The key for rows whose domain is not known.
MIXED = "all past domains"


@dataclass(frozen=True)
class KeptForm:
    """What the fields of a row look like, for a check of saved rows.

    shape: of an input; its type is float32 or uint8.
    outputs: width of each output that the method stores with a row.
    """

    shape: tuple[int, ...]
    task: Task
    outputs: Mapping[str, int]

    def check(self, fields: Any, where: str, *, most: int) -> int:
        """Raise a FormError unless these are at most `most` such rows; return how many."""
        check_keys(fields, {"inputs": None, "labels": None, **self.outputs}, where)
        self.task.label_form(None).check(fields["labels"], f"{where}.labels")
        rows = len(fields["labels"])
        if rows > most:
            raise FormError(f"{where} has {rows} rows, more than the memory keeps")
        inputs = fields["inputs"]
        images = isinstance(inputs, Tensor) and inputs.dtype == torch.uint8
        Like(
            (rows, *self.shape), torch.uint8 if images else torch.float32, finite=not images
        ).check(inputs, f"{where}.inputs")
        for name, width in self.outputs.items():
            Like((rows, width)).check(fields[name], f"{where}.{name}")
        return rows


class Source(Protocol):
    """The training rows of the domain being learned, in the form in which memories store them."""

    @property
    def labels(self) -> Tensor:
        """The label of every row."""

    def __len__(self) -> int:
        """Number of rows."""

    def fields(self, positions: Tensor) -> Fields:
        """The rows at these positions, with z computed by the current model in evaluation mode."""


class Memory(ABC):
    """Base of all memories: a capacity in rows and an optional one in bytes.

    `draw` and `observe` are part of a step. They must not read device values on the host, so that
    a step can be recorded as a CUDA graph.
    """

    # Whether rows are kept without their domain, so that those of one domain cannot be deleted.
    mixes_domains: ClassVar[bool] = False
    # What a label is; set by the system that keeps the memory.
    task: Task = CLASSIFICATION

    def __init__(self, capacity: int, *, max_bytes: int | None = None) -> None:
        if capacity < 1:
            raise FarshoreError(f"memory = {capacity} is not allowed: it must keep at least 1 row")
        self.capacity = capacity
        self.max_bytes = max_bytes

    @classmethod
    def build(cls, capacity: int, classes: int, run: RunSettings) -> Self:
        """Create a memory for this many outputs with the settings of a run."""
        return cls(capacity, max_bytes=run.memory_bytes)

    def open_domain(self, domain: str, source: Source) -> None:
        """A domain starts. Raises an error if the memory has no room for it."""

    def observe(self, rows: Fields, generator: torch.Generator) -> None:
        """Receive the current domain's rows of one step, after the update."""

    def close_domain(self, domain: str, source: Source, generator: torch.Generator) -> None:
        """A domain ended: its rows are available for the last time."""

    @property
    def observes(self) -> bool:
        """Whether `observe` may keep rows now."""
        return True

    @abstractmethod
    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Draw:
        """Draw rows for a step: `rows` rows from each of `domains` domains.

        A memory that keeps rows per domain returns [E, rows, ...] and numbers the domains in
        `Draw.domains`; one that mixes domains returns [domains x rows, ...].
        """

    def clear(self) -> None:
        """Delete all rows, in a memory that mixes domains."""
        raise NotImplementedError

    @abstractmethod
    def forget(self, domain: str) -> None:
        """Delete the rows of a domain; an error if they cannot be distinguished from others."""

    @abstractmethod
    def kept(self) -> dict[str, Fields]:
        """The rows per domain in learning order, or under `MIXED`; views where possible."""

    @property
    @abstractmethod
    def items(self) -> int:
        """Number of stored rows."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Size of the stored rows in bytes."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """The whole state, as tensors and plain values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""

    def check_state(self, state: Any, form: KeptForm) -> None:
        """Raise a FormError if a saved state cannot be this memory's, before it is loaded.

        By default every dictionary with labels in it must be rows of this form.
        """
        _check_rows(state, form, "memory", most=self.capacity + 1)

    def limit(self, rows: Mapping[str, Tensor]) -> int:
        """The capacity in rows with these fields: by count or by bytes, whichever is smaller."""
        if self.max_bytes is None:
            return self.capacity
        fit = self.max_bytes // row_bytes(rows)
        if fit < 1:
            raise FarshoreError(
                f"memory_bytes = {self.max_bytes} is too small: one row takes "
                f"{row_bytes(rows)} bytes"
            )
        return min(self.capacity, fit)


def _check_rows(node: Any, form: KeptForm, where: str, *, most: int) -> None:
    if isinstance(node, Mapping) and "labels" in node:
        form.check(node, where, most=most)
        return
    parts = list(node.items()) if isinstance(node, Mapping) else []
    if isinstance(node, list | tuple):
        parts = list(enumerate(node))
    for name, part in parts:
        _check_rows(part, form, f"{where}.{name}", most=most)


def empty_rows(like: Fields, rows: int) -> Fields:
    """Fields of zeros with room for `rows` rows like these, if the machine can hold them."""
    check_fits(row_bytes(like) * rows, f"a memory of {rows - 1} rows", "keep fewer rows (--memory)")
    return {key: field.new_zeros((rows, *field.shape[1:])) for key, field in like.items()}


def row_bytes(rows: Mapping[str, Tensor]) -> int:
    """Size of one row in bytes, over all its fields."""
    return sum(field[:1].numel() * field.element_size() for field in rows.values())


def share(capacity: int, parts: int, number: int) -> int:
    """Rows of part `number` of `parts`: they differ by at most one, and never grow."""
    return -(-(capacity - number) // parts)


def positions(
    sizes: Tensor, rows: int, generator: torch.Generator, largest: int, least: int = 0
) -> Tensor:
    """Draw, for each size, `rows` indices below it: [E, rows].

    Distinct if the size is large enough, otherwise with replacement. `largest` and `least` bound
    the sizes; they are known on the host, so that nothing here waits for the device.
    """
    device = sizes.device
    keys = torch.rand(len(sizes), largest, generator=generator, device=device)
    if least < largest:
        keys.masked_fill_(torch.arange(largest, device=device) >= sizes[:, None], 2.0)
    if rows == 1:  # the usual case when many domains share a batch
        distinct = keys.argmin(dim=1, keepdim=True)
    else:
        order = keys.argsort(dim=1)
        padding = (0, max(0, rows - order.shape[1]))
        distinct = torch.nn.functional.pad(order[:, :rows], padding)
    drawn = torch.rand(len(sizes), rows, generator=generator, device=device)
    if rows <= least:
        return distinct
    return torch.where(rows <= sizes[:, None], distinct, (drawn * sizes[:, None]).long())


def as_draw(fields: Fields, domains: Tensor | None = None) -> Draw:
    """Convert drawn fields to a Draw."""
    draw = Draw(fields.pop("inputs"), fields.pop("labels"), fields)
    if domains is not None:
        draw.domains = domains
    return draw
