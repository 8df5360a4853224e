"""Inputs: rows without labels. What an adaptation is handed of the target, and all that it can
be handed.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .domain import Array, Rows


class Inputs:
    """The inputs at these row numbers, in this order. There is no place for labels in it."""

    def __init__(
        self, values: Array, index: Tensor | None = None, device: torch.device | str = "cpu"
    ) -> None:
        index = torch.arange(len(values)) if index is None else index
        # Rows reads tensors and memory maps alike but wants labels: it gets zeros.
        self.device = torch.device(device)
        self._rows = Rows(values, torch.zeros(len(values), dtype=torch.long), index).to(self.device)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The form of one row."""
        return tuple(self._rows.inputs.shape[1:])

    def take(self, positions: Tensor) -> Tensor:
        """The inputs at these positions, on the device."""
        return self._rows.take(positions)[0].to(self.device)

    def batches(self, size: int, order: Tensor | None = None) -> Iterator[Tensor]:
        """All rows, in parts of at most `size` that differ by one row at most: a last batch of
        one row does not occur by chance.
        """
        for inputs, _ in self._rows.batches(size, order):
            yield inputs.to(self.device)
