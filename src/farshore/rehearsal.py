"""Rehearsal: which rows of the past a step sees, and which rows of a finished domain stay."""

from __future__ import annotations

import torch
from torch import Tensor

from .batch import Batch
from .data.domain import Domain, Rows
from .memory import Memory, PartitionedMemory, ReservoirMemory
from .methods.method import Method
from .networks.network import EVALUATION_ROWS
from .randomness import Generators
from .settings import RunSettings


class Rehearsal:
    """The draws of a method's steps from the current domain and from the memory."""

    def __init__(
        self,
        method: Method,
        memory: Memory | None,
        generators: Generators,
        run: RunSettings,
        device: torch.device,
    ) -> None:
        self.method = method
        self.memory = memory
        self.generators = generators
        self.run = run
        self.device = device

    def batch(self, rows: Rows) -> Batch:
        """Rows of the current domain, uniform with replacement, and the draws that the method
        asks for.
        """
        size = self.method.settings.batch_size
        replay, draw_by = self.method.replay, self.generators.memory
        inputs, labels = rows.take(
            torch.randint(len(rows), (size,), generator=self.generators.data, device=self.device)
        )
        batch = Batch(inputs.to(self.device), labels, rows=size, domain=len(self.method.domains))
        domains, per_domain = self.plan()
        if domains == 0:
            return batch
        if isinstance(self.memory, ReservoirMemory):
            for name in replay.draws:
                batch.draws[name] = self.memory.draw(domains * per_domain, draw_by)
        elif isinstance(self.memory, PartitionedMemory):
            if replay.joined:
                draw, batch.domains = self.memory.draw(per_domain, draw_by, domains=domains)
                batch.inputs = torch.cat([batch.inputs, draw.inputs.flatten(0, 1)])
                batch.labels = torch.cat([batch.labels, draw.labels.flatten(0, 1)])
                batch.stored, batch.replay_rows = draw.stored, per_domain
            for name in replay.draws:
                batch.draws[name] = self.memory.draw(per_domain, draw_by, domains=domains)[0]
        return batch

    def plan(self) -> tuple[int, int]:
        """(past domains a step, rows of each): the replay budget, the same for all methods that
        replay.
        """
        past = len(self.method.domains)
        if self.memory is None or past == 0:
            return 0, 0
        size = self.method.settings.batch_size
        if self.run.replay_budget == "per-domain":
            return past, size
        replay = self.method.replay
        rows = max(replay.least_rows, min(replay.worth_rows, size), size // past)
        return min(past, max(1, size // rows)), rows

    @property
    def rows_a_step(self) -> int:
        """Rows that a step on the next domain would use: current and replayed."""
        domains, rows = self.plan()
        replay = self.method.replay
        draws = len(replay.draws) + (replay.memory == "partitions" and replay.joined)
        return int(self.method.settings.batch_size + draws * domains * rows)

    def staging(self, domain: Domain, rows: Rows) -> ReservoirMemory | None:
        """Where rows are offered during training: the reservoir itself, or the coming partition
        if it is filled so.
        """
        if isinstance(self.memory, ReservoirMemory):
            return self.memory
        if isinstance(self.memory, PartitionedMemory) and self.run.memory_fill == "reservoir":
            room = self.memory.room(self._described(rows), domain.name)
            return ReservoirMemory(min(room, len(rows)))
        return None

    def offered(self, batch: Batch) -> dict[str, Tensor]:
        """The current rows of a batch in the form in which a reservoir keeps them."""
        fields = {"inputs": batch.inputs[: batch.rows], "labels": batch.labels[: batch.rows]}
        return fields | {name: batch.outputs[name] for name in self.method.replay.stores}

    def kept(self, domain: str, rows: Rows, staging: ReservoirMemory | None) -> dict[str, Tensor]:
        """The rows of a finished domain that stay, in random order, with z by the end-of-domain
        model in evaluation mode.
        """
        assert isinstance(self.memory, PartitionedMemory)
        draw = self.generators.memory
        if staging is not None:
            held = staging.contents()
            order = self.memory.choose(held["labels"], len(held["labels"]), draw)
            return {name: field[order] for name, field in held.items()}
        room = self.memory.room(self._described(rows), domain)
        index = self.memory.choose(rows.labels[rows.index], room, draw)
        inputs, labels = rows.take(index)
        return self._with_outputs(inputs.to(self.device), labels.to(self.device))

    def _described(self, rows: Rows) -> dict[str, Tensor]:
        """One row in the form in which the memory keeps it."""
        inputs, labels = rows.take(torch.zeros(1, dtype=torch.long))
        return self._with_outputs(inputs.to(self.device), labels.to(self.device))

    def _with_outputs(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        fields = {"inputs": inputs, "labels": labels}
        stores = self.method.replay.stores
        if not stores:
            return fields
        network = self.method.network
        was_training = network.training
        network.eval()
        with torch.inference_mode():
            features = torch.cat([network.extract(part) for part in inputs.split(EVALUATION_ROWS)])
            outputs = {"features": features, "logits": network.classifier(features)}
        network.train(was_training)
        # Not inference tensors any more: steps read them beside tensors that take a gradient.
        return fields | {name: outputs[name].clone() for name in stores}
