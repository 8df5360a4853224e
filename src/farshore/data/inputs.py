"""Inputs: rows without labels, the only part of the target that an adaptation receives."""

from collections.abc import Iterator

import torch
from torch import Tensor

from .domain import Array, Rows


class Inputs:
    """The inputs at these row numbers, in this order; it cannot contain labels."""

    def __init__(
        self, values: Array, index: Tensor | None = None, device: torch.device | str = "cpu"
    ) -> None:
        index = torch.arange(len(values)) if index is None else index
        # Rows reads both tensors and memory maps, but it requires labels: pass zeros.
        self.device = torch.device(device)
        self._rows = Rows(values, torch.zeros(len(values), dtype=torch.long), index).to(self.device)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return tuple(self._rows.inputs.shape[1:])

    def take(self, positions: Tensor) -> Tensor:
        """Return the inputs at these positions, on the device."""
        return self._rows.take(positions)[0].to(self.device)

    def batches(self, size: int) -> Iterator[Tensor]:
        """Yield all rows in batches of at most `size`, whose sizes differ by at most one."""
        for inputs, _ in self._rows.batches(size):
            yield inputs.to(self.device)
