"""Where the rows of a step come from.

`Rehearsal` draws from one domain, and from past domains by the memory; `AllSources` from every
domain at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..data.batch import Batch
from ..data.domain import Rows
from ..memory.memory import Fields
from ..methods.method import Method
from ..networks.network import EVALUATION_ROWS
from ..settings import RunSettings
from .mixing import LabelMixing

if TYPE_CHECKING:
    from .trainer import Trainer

ALL_SOURCES = "all sources"


class Rehearsal:
    """Batches of one domain, with the draws from the memory that the method asks for.

    It also gives a memory the domain's rows in the form in which they are kept.
    """

    def __init__(self, trainer: Trainer, name: str, rows: Rows) -> None:
        self.name, self.rows = name, rows
        self.method, self.memory = trainer.method, trainer.memory
        self.generators, self.device = trainer.generators, trainer.device
        self.domains, self.per_domain = replay_plan(trainer.run, self.method)
        if self.memory is not None and not self.memory.items:
            self.domains = 0  # it was emptied: there is nothing to draw, as in the first domain
        self.weighted = trainer.setup.weighted
        self.mixing = mixing_of(trainer)

    @property
    def parts(self) -> Sequence[Rows]:
        """The domain's training rows."""
        return [self.rows]

    @property
    def rows_per_step(self) -> int:
        """Current and replayed rows of a step."""
        replay = self.method.replay
        draws = len(replay.draws) + replay.joined
        return int(self.method.settings.batch_size + draws * self.domains * self.per_domain)

    def draw(self) -> Batch:
        """The rows of a step, mixed if the run mixes them."""
        batch = self._draw()
        if self.mixing is None:
            return batch
        self.drawn = batch
        return self.mixing(batch)

    def _draw(self) -> Batch:
        """Rows of the current domain, uniform with replacement, and rows of past domains."""
        size, replay = self.method.settings.batch_size, self.method.replay
        draws = self.generators.data
        index = torch.randint(len(self.rows), (size,), generator=draws, device=self.device)
        inputs, labels = self.rows.take(index)
        batch = Batch(inputs.to(self.device), labels, rows=size, domain=len(self.method.domains))
        batch.weights = self.weights(index)
        if self.memory is None or self.domains == 0:
            return batch
        if replay.joined:
            batch.join(
                self.memory.draw(self.per_domain, self.generators.memory, domains=self.domains)
            )
        for name in replay.draws:
            batch.draws[name] = self.memory.draw(
                self.per_domain, self.generators.memory, domains=self.domains
            )
        return batch

    def observe(self, batch: Batch) -> None:
        """Offer the current rows to the memory, as they were drawn."""
        if self.memory is None or not self.memory.observes:
            return
        given = batch if self.mixing is None else self.drawn
        rows = {"inputs": given.inputs[: batch.rows], "labels": given.labels[: batch.rows]}
        outputs = batch.outputs if self.mixing is None else self._outputs(rows["inputs"])
        rows |= {name: outputs[name] for name in self.method.replay.stores}
        if given.weights is not None:
            rows["weights"] = given.weights[: batch.rows, None]
        self.memory.observe(rows, self.generators.memory)

    def weights(self, positions: Tensor) -> Tensor | None:
        """The weights of training rows, if rows have weights."""
        if not self.weighted:
            return None
        weights = self.rows.weights_at(positions)
        return torch.ones(len(positions), device=self.device) if weights is None else weights

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def labels(self) -> Tensor:
        """The label of every training row."""
        return self.rows.labels[self.rows.index]

    def fields(self, positions: Tensor) -> Fields:
        """Training rows as the memory keeps them, with z by the current model."""
        inputs, labels = (tensor.to(self.device) for tensor in self.rows.take(positions))
        fields = {"inputs": inputs, "labels": labels}
        weights = self.weights(positions)
        if weights is not None:
            fields["weights"] = weights[:, None]
        return fields | self._outputs(inputs)

    def _outputs(self, inputs: Tensor) -> Fields:
        """What the method stores with these rows, by the current model in evaluation mode."""
        network, stores = self.method.network, self.method.replay.stores
        if not stores:
            return {}
        was_training = network.training
        network.eval()
        with torch.inference_mode():
            features = torch.cat([network.extract(part) for part in inputs.split(EVALUATION_ROWS)])
            outputs = {"features": features, "logits": network.classifier(features)}
        network.train(was_training)
        # Clones are not inference tensors: steps combine them with tensors that need a gradient.
        return {name: outputs[name].clone() for name in stores}


class AllSources:
    """`batch_size` rows of every domain in each step (DomainBed's convention)."""

    name = ALL_SOURCES

    def __init__(self, trainer: Trainer, sources: Sequence[Rows]) -> None:
        self.parts: Sequence[Rows] = sources
        self.size = trainer.method.settings.batch_size
        self.generator, self.device = trainer.generators.data, trainer.device
        self.weighted = trainer.setup.weighted
        self.mixing = mixing_of(trainer)

    def draw(self) -> Batch:
        """Rows of every domain, uniform with replacement, as one flat batch."""
        indices = [
            torch.randint(len(rows), (self.size,), generator=self.generator, device=self.device)
            for rows in self.parts
        ]
        drawn = [rows.take(index) for rows, index in zip(self.parts, indices, strict=True)]
        inputs = torch.cat([x.to(self.device) for x, _ in drawn])
        batch = Batch(inputs, torch.cat([y for _, y in drawn]), rows=len(inputs))
        if self.weighted:
            pairs = zip(self.parts, indices, strict=True)
            weights = [rows.weights_at(index) for rows, index in pairs]
            ones = torch.ones(self.size, device=self.device)
            batch.weights = torch.cat([ones if part is None else part for part in weights])
        return batch if self.mixing is None else self.mixing(batch)

    def observe(self, batch: Batch) -> None:
        """Keep nothing: all rows stay available."""


def mixing_of(trainer: Trainer) -> LabelMixing | None:
    """How the run mixes the rows of a step; None if it does not."""
    run = trainer.run
    return None if run.mixing == "none" else LabelMixing(run, trainer.generators)


def replay_plan(run: RunSettings, method: Method) -> tuple[int, int]:
    """The replay budget of all methods: (past domains per step, rows per past domain)."""
    past, replay = len(method.domains), method.replay
    if replay.memory is None or past == 0:
        return 0, 0
    size = method.settings.batch_size
    if run.replay_budget == "per-domain":
        return past, size
    rows = max(replay.least_rows, min(replay.worth_rows, size), size // past)
    return min(past, max(1, size // rows)), rows
