"""Conversion: what a user hands to a learner (tables, arrays, data sets) as inputs and domains."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..data.domain import Domain
from ..data.images.hf_columns import is_hf_dataset, read_hf_dataset
from ..data.images.image_folder import ImagePreprocessing
from ..data.preprocessing import Preprocessing
from ..data.progress import following
from ..data.splits import split_seed
from ..data.tables import convert
from ..data.tables.frames import Preprocess, as_table, check_images, learn_columns
from ..data.tables.table import TablePreprocessing
from ..networks.form import Settled
from ..observer import Observer, follow
from ..tasks.classification import Classification
from ..tasks.labels import TaskChoice, first_task
from ..tasks.task import Task


@dataclass(frozen=True)
class Converted:
    """A user's rows as a divided domain, with preprocessing, task and new classes."""

    domain: Domain
    preprocessing: Preprocessing | None
    task: Task
    new_classes: list[convert.Label]


@dataclass(frozen=True)
class Conversion:
    """How rows become inputs, from what the domains so far have determined.

    preprocess: whether the columns of a table are scaled and encoded.
    texts: the columns of the first table that are declared as text.
    known: how raw rows became inputs so far; None if they needed no preprocessing.
    task: what a label is; None until it is known.
    choice: what it is by the user's word.
    started: whether a domain was learned; if it was a table, later ones must be too.
    settled: says which images the network takes. Called only for images that must be decoded:
        it may run the code of a user's own network.
    """

    preprocess: Preprocess
    texts: Sequence[str]
    known: Preprocessing | None
    task: Task | None
    choice: TaskChoice
    started: bool
    settled: Callable[[], Settled]
    observer: Observer
    seed: int

    def domain(
        self,
        name: str,
        x: Any,
        y: Any,
        *,
        validation: float | int,
        weights: Any,
        grow_classes: bool,
    ) -> Converted:
        """The rows of the next domain, divided by the learner's seed."""
        with following(follow(self.observer)):
            x, y, known = self._read(x, y)
        where = f"the labels of domain {name!r}"
        seed = split_seed(self.seed, name)
        task = self.task
        if task is None:
            count = torch.zeros(len(y), dtype=torch.long)
            rows = torch.empty(len(y), 0)
            split = Domain.divided(name, rows, count, validation=validation, seed=seed)
            task = first_task(y, split.train.numpy(), self.choice, where)
            for note in task.announced():
                self.observer.note(note)
        labels = task.read(y, where)
        new = convert.find_classes(list(set(labels) - set(task.classes))) if grow_classes else []
        if new:
            task = Classification((*task.classes, *new))
        encoded = task.encoded(labels, domain=name)
        # If the learner has started, it must have started with a table.
        started_so = isinstance(self.known, TablePreprocessing)
        tables = started_so if self.started else self.preprocess == "columns"
        frame = as_table(x, known) if tables else None
        if frame is not None:
            empty = torch.empty(len(frame), 0)
            split = Domain.divided(name, empty, encoded, validation=validation, seed=seed)
            known = learn_columns(frame, split.train, known, self.observer.note, self.texts)
            inputs = known.transform(frame)
        else:
            inputs = self._plain(x, f"the inputs of domain {name!r}")
        where = f"the weights of domain {name!r}"
        row_weights = convert.as_weights(weights, len(encoded), where=where)
        divided = Domain.divided(
            name, inputs, encoded, validation=validation, seed=seed, weights=row_weights
        )
        return Converted(divided, known, task, new)

    def inputs(self, x: Any) -> Tensor:
        """Rows to predict, in the form that the learner was trained on."""
        x, _, _ = self._read(x, None)
        known = self.known
        if isinstance(known, TablePreprocessing) and (frame := as_table(x, known)) is not None:
            return known.transform(frame)
        return self._plain(x, "the inputs")

    def labelled(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        """Rows to score: inputs, and labels as the network sees them."""
        x, y, _ = self._read(x, y)
        assert self.task is not None
        labels = self.task.read(y, "the labels")
        return self.inputs(x), self.task.encoded(labels, domain="to score")

    def _read(self, x: Any, y: Any) -> tuple[Any, Any, Preprocessing | None]:
        """Rows and labels, read from a data set if given as one, and the preprocessing so far."""
        if not is_hf_dataset(x):
            return *convert.from_dataset(x, y), self.known
        known, form = self.known, self.settled().form
        images = known if isinstance(known, ImagePreprocessing) else None
        x, y, read = read_hf_dataset(x, y, images, form.size, form.interpolation)
        return x, y, read or known

    def _plain(self, x: Any, where: str) -> Tensor:
        """Rows that are not a table."""
        inputs = convert.as_inputs(x, where=where)
        if self.preprocess == "columns":
            check_images(inputs, where)
        return inputs
