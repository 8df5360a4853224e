"""newest: a ring buffer over the stream, which keeps the newest rows."""

from collections.abc import Mapping
from typing import Any

import torch

from farshore import FarshoreError
from farshore.memory import MIXED, Draw, Fields, Memory


class NewestMemory(Memory):
    """The newest `capacity` rows of the stream. A step reads nothing on the host: how many rows
    were seen is a tensor.
    """

    def __init__(self, capacity: int, *, max_bytes: int | None = None) -> None:
        super().__init__(capacity, max_bytes=max_bytes)
        self.rows: Fields = {}
        self.seen = torch.zeros((), dtype=torch.long)

    def observe(self, rows: Fields, generator: torch.Generator) -> None:
        """Write the rows over the oldest ones."""
        device = rows["labels"].device
        if not self.rows:
            slots = self.limit(rows)
            self.rows = {
                name: field.new_zeros((slots, *field.shape[1:])) for name, field in rows.items()
            }
            self.seen = self.seen.to(device)
        slots = len(self.rows["labels"])
        newest = {name: field[-slots:].detach() for name, field in rows.items()}
        skipped = len(rows["labels"]) - len(newest["labels"])
        numbers = self.seen + torch.arange(skipped, len(rows["labels"]), device=device)
        for name, field in newest.items():
            self.rows[name].index_copy_(0, numbers % slots, field)
        self.seen += len(rows["labels"])

    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Draw:
        """Rows of the buffer, with replacement."""
        held = self.seen.clamp_max(len(self.rows["labels"]))
        uniform = torch.rand(rows * (domains or 1), generator=generator, device=generator.device)
        index = (uniform * held).long()
        fields = {name: field[index] for name, field in self.rows.items()}
        return Draw(fields.pop("inputs"), fields.pop("labels"), fields)

    def forget(self, domain: str) -> None:
        """Refused: the buffer does not know where a row came from."""
        raise FarshoreError(f"the rows of {domain!r} cannot be told from others: use `partitions`")

    def kept(self) -> dict[str, Fields]:
        """The rows held, of all domains together."""
        if not self.items:
            return {}
        return {MIXED: {name: field[: self.items] for name, field in self.rows.items()}}

    @property
    def items(self) -> int:
        """Rows held."""
        return min(int(self.seen), len(self.rows["labels"])) if self.rows else 0

    @property
    def bytes(self) -> int:
        """Bytes of the rows held."""
        held = [field[: self.items] for field in self.rows.values()]
        return sum(field.numel() * field.element_size() for field in held)

    def state_dict(self) -> dict[str, Any]:
        """The rows and how many were seen."""
        return {"rows": self.rows, "seen": int(self.seen)}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore what `state_dict` gave."""
        self.rows = {name: field.to(device) for name, field in state["rows"].items()}
        self.seen = torch.tensor(state["seen"], device=device)
