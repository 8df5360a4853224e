"""Models that are fitted to all rows of a table at once: their rows, arrays, and system."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..data.domain import Rows
from ..errors import FarshoreError
from ..system import Setup, System
from ..tasks.task import Task

# The logit of a class that no training row has.
ABSENT = -30.0
# Rows per batch of a prediction: a batch is copied in double precision.
BATCH = 4096


@dataclass(frozen=True)
class Examples:
    """Rows to fit a model to; without weights every row counts the same. `seed` is of its draws."""

    inputs: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None
    task: Task
    seed: int

    def fitted(self, make: Callable[[], Any]) -> list[Any]:
        """Models of scikit-learn: one of classes, one per label of numbers."""
        columns = self.labels.T if self.labels.ndim > 1 else [self.labels]
        return [make().fit(self.inputs, each, sample_weight=self.weights) for each in columns]


class FittedModel(nn.Module):
    """A fitted model as arrays, which `fields` names. Classes not in `columns` have no rows."""

    fields: ClassVar[tuple[str, ...]]
    columns: Tensor

    def __init__(self, classes: int, parts: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.classes = classes
        for name in self.fields:
            self.register_buffer(name, parts[name])

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [n, classes] of rows [n, d]."""
        return self.logits(self.scores(inputs))

    def scores(self, inputs: Tensor) -> Tensor:
        """What it sums up [n, outputs] for rows [n, d]; the same bits for any number of rows."""
        raise NotImplementedError

    def logits(self, scores: Tensor) -> Tensor:
        """Logits [n, classes] from the scores of the classes that have rows."""
        logits = scores.new_full((scores.shape[0], self.classes), ABSENT)
        return logits.index_copy(1, self.columns, scores).float()

    def parts(self) -> dict[str, Any]:
        """Its arrays, for a saved state."""
        return {name: self.get_buffer(name) for name in self.fields}

    @property
    def bytes(self) -> int:
        """The size of the arrays."""
        return sum(self.get_buffer(name).nbytes for name in self.fields)


class TableSystem(System):
    """A system of tables whose predictor is a fitted model."""

    model: FittedModel

    def __init__(self, setup: Setup, learns: str) -> None:
        if len(setup.shape) != 1:
            raise FarshoreError(
                f"{learns} from tables, and rows of shape {list(setup.shape)} are not: use another "
                "method"
            )
        setup.refuse_steps()
        self.setup = setup
        self.seconds = {"steps": 0.0, "closing": 0.0}
        self.rows_per_step = 0
        self.notes: list[str] = []
        self._domains: list[str] = []

    @property
    def domains(self) -> list[str]:
        """The names of the domains learned so far."""
        return list(self._domains)

    def logits(self, rows: Rows) -> Tensor:
        """Logits of these rows."""
        parts = [self.model.scores(inputs) for inputs, _ in rows.batches(BATCH)]
        return self.model.logits(torch.cat(parts)).to(self.setup.device)

    def features(self, inputs: Tensor) -> Tensor:
        """The columns themselves: there are no other features."""
        return inputs.flatten(1).float()

    def predictor(self) -> nn.Module:
        """The fitted model as a module."""
        return self.model
