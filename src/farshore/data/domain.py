"""Domain: the labelled rows of one site, divided into training and validation rows."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..base.randomness import generator
from ..errors import FarshoreError

Array = Tensor | np.ndarray
# Shape and type of one row, without the axis of the rows.
RowForm = tuple[tuple[int, ...], torch.dtype]
# Memory-mapped inputs are moved to a GPU only if they use at most this share of its free memory.
GPU_SHARE = 0.5
MAPPED_ROWS = 64


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a domain, selected by row number from tensors or memory-mapped arrays."""

    inputs: Array
    labels: Tensor
    index: Tensor
    # How much each row of the domain counts in training; None if all count the same.
    weights: Tensor | None = None

    @classmethod
    def unlabelled(cls, inputs: Tensor) -> "Rows":
        """All these rows, with 0 for every label."""
        index = torch.arange(len(inputs))
        return cls(inputs, torch.zeros_like(index), index)

    def __len__(self) -> int:
        return len(self.index)

    def take(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and labels at these positions among the rows."""
        rows = self.index[positions.to(self.index.device)]
        if isinstance(self.inputs, Tensor):
            return self.inputs[rows.to(self.inputs.device)], self.labels[rows]
        return _gather(self.inputs, rows.cpu().numpy()), self.labels[rows]

    def weights_at(self, positions: Tensor) -> Tensor | None:
        """Return the weights at these positions among the rows."""
        if self.weights is None:
            return None
        return self.weights[self.index[positions.to(self.index.device)]]

    def batches(self, size: int, order: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all rows in batches of at most `size`, whose sizes differ by at most one."""
        order = torch.arange(len(self), device=self.index.device) if order is None else order
        for part in torch.tensor_split(order, max(1, -(-len(order) // size))):
            yield self.take(part)

    def to(self, device: torch.device) -> "Rows":
        """Return the same rows on `device`.

        Memory-mapped inputs that do not fit into a GPU's free memory are not moved.
        """
        return _on(self, device)


@dataclass(frozen=True, eq=False)
class Domain:
    """Labelled rows of one source; `train` and `validation` are row numbers.

    `weights` say how much each row counts in training; scores count every row once. Images are
    uint8 [n, channels, height, width].
    """

    name: str
    inputs: Array
    labels: Tensor
    train: Tensor
    validation: Tensor
    weights: Tensor | None = None

    @classmethod
    def divided(
        cls,
        name: str,
        inputs: Array,
        labels: Tensor,
        *,
        validation: float | int = 0.2,
        seed: int = 0,
        weights: Tensor | None = None,
    ) -> "Domain":
        """Split the rows at random; `validation` is a share (float) or a number of rows (int)."""
        check_rows(name, inputs, labels)
        held_out = validation if isinstance(validation, int) else round(len(labels) * validation)
        if not 0 <= held_out < len(labels):
            raise FarshoreError(
                f"validation = {validation!r} leaves no row to train on: domain {name!r} has "
                f"{len(labels)} rows"
            )
        order = torch.randperm(len(labels), generator=generator(seed, "split"))
        numbers = labels if labels.is_floating_point() else labels.long()
        held, train = (part.sort().values for part in (order[:held_out], order[held_out:]))
        return cls(name, inputs, numbers, train, held, weights)

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> "Domain":
        """Return the same domain on `device`, so that batches are indexed there."""
        return _on(self, device)

    def split(self, name: str) -> Rows:
        """Return the rows of the split `train`, `validation` or `all`."""
        every = torch.arange(len(self), device=self.labels.device)
        index = {"train": self.train, "validation": self.validation, "all": every}[name]
        return Rows(self.inputs, self.labels, index, self.weights)


R = TypeVar("R", Rows, Domain)


def row_form(domain: Domain) -> RowForm:
    """Shape and type of the rows of a domain, as a network receives them."""
    shape = tuple(domain.inputs.shape[1:])
    if isinstance(domain.inputs, Tensor):
        return shape, domain.inputs.dtype
    return shape, torch.uint8 if domain.inputs.dtype == np.uint8 else torch.float32


def check_row_form(form: RowForm, expected: RowForm, what: str) -> None:
    """Refuse rows of another shape or type than those that a learner was started with."""
    (shape, dtype), (known_shape, known_dtype) = form, expected
    if shape != known_shape:
        raise FarshoreError(
            f"{what}: rows of shape {list(shape)}, but this learner was started with "
            f"{list(known_shape)}"
        )
    if dtype != known_dtype:
        why = f"{what}: {dtype} values, but this learner was started with {known_dtype}"
        raise FarshoreError(why)


def check_rows(name: str, inputs: Array, labels: Tensor) -> None:
    """Refuse rows that cannot be learned from: none, unequal lengths, or non-finite values."""
    if len(inputs) != len(labels):
        raise FarshoreError(
            f"domain {name!r} has {len(inputs)} rows of inputs and {len(labels)} labels: the "
            "numbers must be equal"
        )
    if len(labels) == 0:
        raise FarshoreError(f"domain {name!r} is empty: it needs at least one row")
    if labels.ndim != 1 + labels.is_floating_point():  # numbers have a column per label
        form = "numbers with a column per label" if labels.ndim == 1 else "one label per row"
        raise FarshoreError(
            f"domain {name!r} has labels of shape {tuple(labels.shape)}: give {form}"
        )
    if isinstance(inputs, Tensor) and inputs.is_floating_point():
        bad = ~torch.isfinite(inputs.flatten(1)).all(dim=1)
        if bool(bad.any()):
            first = int(bad.nonzero()[0])
            raise FarshoreError(
                f"domain {name!r} has NaN or infinite inputs in {int(bad.sum())} rows, the first "
                f"is row {first}: fill or drop them first"
            )


def _gather(inputs: np.ndarray, rows: np.ndarray) -> Tensor:
    """Copy rows out of an array; out of a memory map, only a few rows at a time.

    Reading a row maps up to megabytes around it. These pages are released before the next rows are
    read, so that the process stays small however large the file is.
    """
    memory_map = getattr(inputs, "_mmap", None)
    if memory_map is None or inputs.flags.writeable or not hasattr(mmap, "MADV_DONTNEED"):
        return torch.from_numpy(np.ascontiguousarray(inputs[rows]))
    taken = np.empty((len(rows), *inputs.shape[1:]), inputs.dtype)
    for start in range(0, len(rows), MAPPED_ROWS):
        taken[start : start + MAPPED_ROWS] = inputs[rows[start : start + MAPPED_ROWS]]
        memory_map.madvise(mmap.MADV_DONTNEED)
    return torch.from_numpy(taken)


def _on(rows: R, device: torch.device) -> R:
    """The same rows or domain with its tensors on `device`."""
    moved: dict[str, Any] = {
        name: value.to(device)
        for name, value in vars(rows).items()
        if isinstance(value, Tensor) and name != "inputs"
    }
    return replace(rows, inputs=_moved(rows.inputs, device), **moved)


def as_tensor(values: Array) -> Tensor:
    """The values in memory."""
    return values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))


def _moved(inputs: Array, device: torch.device) -> Array:
    if isinstance(inputs, Tensor):
        return inputs.to(device)
    if device.type != "cuda" or inputs.nbytes > GPU_SHARE * torch.cuda.mem_get_info(device)[0]:
        return inputs
    return as_tensor(inputs).to(device)
