"""Conversion: what a user hands to a learner (tables, arrays, data sets) as inputs of a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .data.convert import as_inputs, as_weights, from_dataset
from .data.domain import Domain
from .data.frames import Preprocess, as_table, check_images, learn_columns
from .data.hf_columns import is_hf_dataset, read_hf_dataset
from .data.image_folder import ImagePreprocessing
from .data.preprocessing import Preprocessing
from .data.table import TablePreprocessing
from .networks.form import Settled


@dataclass(frozen=True)
class Conversion:
    """How rows become inputs, from what the domains so far have determined.

    preprocess: whether the columns of a table are scaled and encoded.
    known: how raw rows became inputs so far; None if they were inputs as they came.
    started: whether a domain was learned. What it was, a table or not, later ones are too.
    settled: tells the images that the network takes. Asked only for images in files, because it
        may run the code of a user's own network.
    """

    preprocess: Preprocess
    known: Preprocessing | None
    started: bool
    settled: Callable[[], Settled]

    def read(self, x: Any, y: Any = None) -> tuple[Any, Any, Preprocessing | None]:
        """Rows and labels, read from a data set if they are one, and how raw rows become inputs."""
        known = self.known
        if is_hf_dataset(x):
            form = self.settled().form
            images = known if isinstance(known, ImagePreprocessing) else None
            x, y, read = read_hf_dataset(x, y, images, form.size, form.interpolation)
            known = read or known
        x, y = from_dataset(x, y)
        return x, y, known

    def divided(
        self,
        name: str,
        x: Any,
        labels: Tensor,
        known: Preprocessing | None,
        *,
        validation: float | int,
        seed: int,
        weights: Any,
        tell: Callable[[str], None],
    ) -> tuple[Domain, Preprocessing | None]:
        """The rows that were read as a divided domain, and the preprocessing after it.

        Columns are fitted to the training rows alone. `tell` gets notes on the columns.
        """
        tables = isinstance(self.known, TablePreprocessing)
        if not self.started:
            tables = self.preprocess == "columns"
        frame = as_table(x, known) if tables else None
        if frame is not None:
            empty = torch.empty(len(frame), 0)
            split = Domain.divided(name, empty, labels, validation=validation, seed=seed)
            known = learn_columns(frame, split.train, known, tell)
            inputs = known.transform(frame)
        else:
            inputs = self._plain(x, f"the inputs of domain {name!r}")
        row_weights = as_weights(weights, len(labels), where=f"the weights of domain {name!r}")
        domain = Domain.divided(
            name, inputs, labels, validation=validation, seed=seed, weights=row_weights
        )
        return domain, known

    def inputs(self, x: Any) -> Tensor:
        """Rows to predict as inputs, in the form that the learner was trained on."""
        x, _, _ = self.read(x)
        if isinstance(self.known, TablePreprocessing):
            frame = as_table(x, self.known)
            if frame is not None:
                return self.known.transform(frame)
        return self._plain(x, "the inputs")

    def _plain(self, x: Any, where: str) -> Tensor:
        """Rows that are no table."""
        inputs = as_inputs(x, where=where)
        if self.preprocess == "columns":
            check_images(inputs, where)
        return inputs
