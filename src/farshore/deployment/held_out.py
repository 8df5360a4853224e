"""Held-out rows: a few validation rows of every site, kept to judge what comes later.

They were never trained on. `learn` measures on them how much a model loses on the sites that it
knows, and `predict` compares a new site with them. Methods that keep no rows of past sites keep no
held-out rows either; they store a table of confidences instead (see `Reliability`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..base.forms import LARGEST_NUMBER, FormError, Like, MapOf, check_form
from ..base.randomness import generator
from ..data.domain import Rows
from ..learner.learner import Learner
from ..tasks.calibration import confidences, fit_temperature

# At most this many rows, and bytes of inputs, are held out per site.
MOST_ROWS = 200
MOST_BYTES = 1 << 23
# Bins of the confidence for methods that keep no rows.
BINS = 50


@dataclass(frozen=True)
class Outputs:
    """Logits and labels of held-out rows, or what a table of confidences says about them."""

    confidence: np.ndarray
    correct: np.ndarray
    logits: np.ndarray | None = None
    labels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.correct)

    def confidences(self, temperature: float) -> np.ndarray:
        """The confidence at a temperature; a table has that of its own time."""
        return self.confidence if self.logits is None else confidences(self.logits / temperature)


@dataclass(frozen=True)
class Reliability:
    """Rows per bin of the confidence, and how many of them were predicted correctly."""

    rows: Tensor
    correct: Tensor

    @classmethod
    def of(cls, logits: np.ndarray, labels: np.ndarray) -> "Reliability":
        """The table of these rows."""
        bins = np.minimum((confidences(logits) * BINS).astype(int), BINS - 1)
        correct = logits.argmax(axis=1) == labels
        counts = (np.bincount(bins, minlength=BINS), np.bincount(bins[correct], minlength=BINS))
        return cls(*(torch.from_numpy(count.astype(np.int64)) for count in counts))

    def outputs(self) -> Outputs:
        """One row per counted row, each at the middle of its bin."""
        middle = (np.arange(BINS) + 0.5) / BINS
        rows, correct = self.rows.numpy(), self.correct.numpy()
        is_correct = [np.arange(count) < hits for count, hits in zip(rows, correct, strict=True)]
        hits = np.concatenate(is_correct) if rows.sum() else np.zeros(0, dtype=bool)
        return Outputs(np.repeat(middle, rows), hits)

    def state_dict(self) -> dict[str, Tensor]:
        """Both counts by name."""
        return {"rows": self.rows, "correct": self.correct}


def choose(inputs: Tensor, labels: Tensor, candidates: Tensor, seed: int) -> dict[str, Tensor]:
    """The rows to hold out of a site, drawn from its validation rows."""
    bytes_per_row = max(1, inputs[:1].numel() * inputs.element_size())
    count = min(len(candidates), MOST_ROWS, max(1, MOST_BYTES // bytes_per_row))
    order = torch.randperm(len(candidates), generator=generator(seed, "held out"))
    chosen = candidates[order[:count]].sort().values
    return {"inputs": inputs[chosen].clone().cpu(), "labels": labels[chosen].clone().cpu()}


def as_rows(kept: Mapping[str, Tensor]) -> Rows:
    """Held-out rows as the learner takes them."""
    return Rows(kept["inputs"], kept["labels"], torch.arange(len(kept["labels"])))


def outputs_of(learner: Learner, kept: Mapping[str, Tensor]) -> Outputs:
    """What the learner says now about held-out rows."""
    logits = learner.system.logits(as_rows(kept)).double().cpu().numpy()
    labels = kept["labels"].numpy()
    stated = learner.known_task.confidences(logits)
    if stated is None:
        return Outputs(np.ones(len(labels)), np.ones(len(labels), dtype=bool), logits, labels)
    return Outputs(stated, logits.argmax(axis=1) == labels, logits, labels)


def common_temperature(outputs: Mapping[str, Outputs]) -> float:
    """The temperature that fits the held-out rows of all sites, each site counting the same."""
    fitted = [
        (each.logits, each.labels)
        for each in outputs.values()
        if each.logits is not None and each.labels is not None and len(each)
    ]
    if not fitted:
        return 1.0
    return fit_temperature(*map(np.concatenate, zip(*fitted, strict=True)), trust=1.0)


def check_held_out(stored: Any, learner: Learner) -> None:
    """Raise a FormError unless these are rows that the learner can be measured on."""
    check_form(stored, MapOf({"inputs": None, "labels": None}), "held_out")
    if stored and learner.shape is None:
        raise FormError("held_out has rows, but no site was learned")
    for name, rows in stored.items():
        shape, dtype = learner.inside_form
        Like((None, *shape), dtype, finite=dtype.is_floating_point).check(
            rows["inputs"], f"held_out.{name}.inputs"
        )
        count = len(rows["inputs"])
        learner.known_task.label_form(count).check(rows["labels"], f"held_out.{name}.labels")
        if not 1 <= count <= MOST_ROWS:
            raise FormError(f"held_out.{name} has {count} rows, not from 1 to {MOST_ROWS}")


def check_reliability(stored: Any) -> None:
    """Raise a FormError unless these are counts of rows and of correct ones."""
    counts = Like((BINS,), torch.int64, below=LARGEST_NUMBER)
    check_form(stored, MapOf({"rows": counts, "correct": counts}), "reliability")
    for name, table in stored.items():
        if int(table["rows"].max()) > MOST_ROWS or bool((table["correct"] > table["rows"]).any()):
            raise FormError(f"reliability.{name} has counts that no site has")
