"""Classification: a label is one of some classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..base.forms import Like
from ..data.tables.convert import as_labels, encode_labels
from ..errors import FarshoreError
from ..settings import RunSettings
from .calibration import confidences
from .metrics import percent
from .scores import all_scores, confusion_matrix, reliability, score, with_unknown
from .task import Label, MetricName, Scores, T, Task, TaskName

TINY = 1e-12
# Scores that are no shares.
LOSSES = ("log_loss", "calibration_error")


@dataclass(frozen=True)
class Classification(Task):
    """A label is the number of a class; an output is the logit of a class."""

    names: tuple[Label, ...] = ()

    name: ClassVar[TaskName] = "classification"
    metrics: ClassVar[tuple[MetricName, ...]] = ("accuracy", "macro_f1")
    fewest_outputs: ClassVar[int] = 2

    @property
    def outputs(self) -> int:
        """One per class."""
        return len(self.names)

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes in the order of their outputs."""
        return self.names

    def either(self, classes: T, numbers: T) -> T:
        """The first."""
        return classes

    @property
    def fact(self) -> tuple[str, str]:
        """The classes."""
        return "classes", ", ".join(map(str, self.names)) or "not known yet"

    @property
    def title(self) -> str:
        """A classifier."""
        return f"classifier (classes: {', '.join(map(str, self.names)) or 'none yet'})"

    @property
    def output(self) -> str:
        """Probabilities."""
        return f"the probabilities of {', '.join(map(str, self.names))}"

    def under(self, run: RunSettings) -> Self:
        """The same: the loss is the cross-entropy."""
        if run.loss != "auto":
            raise FarshoreError(
                f"loss = {run.loss!r} is for a number as the label, and here labels are classes: "
                "leave it out, or say --task regression"
            )
        if run.mixing != "none":
            raise FarshoreError(
                f"mixing = {run.mixing!r} is for a number as the label, and here labels are "
                "classes, none of which is near another: leave it out"
            )
        return self

    def blank(self, *rows: int, device: torch.device | str = "cpu") -> Tensor:
        """The first class for all rows."""
        return torch.zeros(rows, dtype=torch.long, device=device)

    def label_form(self, rows: int | None) -> Like:
        """Class numbers."""
        return Like((rows,), torch.long, below=self.outputs)

    def balanced(self, labels: Tensor) -> Tensor:
        """n / (k · count) for each of the k classes among these labels; 1 for absent classes.

        With these weights every class has the same total weight.
        """
        counts = torch.bincount(labels, minlength=self.outputs)
        present = counts > 0
        return torch.where(present, len(labels) / (present.sum() * counts.clamp(min=1)), 1.0)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The cross-entropy of each row."""
        return nn.functional.cross_entropy(outputs, labels, reduction="none")

    def risk(
        self,
        outputs: Tensor,
        labels: Tensor,
        class_weight: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The mean cross-entropy."""
        return empirical_risk(outputs, labels, class_weight, weights)

    def slopes(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """softmax(z) - onehot(y)."""
        return outputs.softmax(dim=-1) - self._one_hot(labels, outputs.shape[-1]).to(outputs.dtype)

    def nearness(self, labels: Tensor) -> Tensor:
        """1 for the row's own class, 0 for the others."""
        return self._one_hot(labels, self.outputs).float()

    @staticmethod
    def _one_hot(labels: Tensor, classes: int) -> Tensor:
        """By a comparison: `one_hot` of PyTorch reads the labels on the host."""
        return labels[..., None] == torch.arange(classes, device=labels.device)

    def fisher_parts(
        self, outputs: Tensor, labels: Tensor, *, weighted: bool
    ) -> list[tuple[Tensor, Tensor]]:
        """log p(y|x) with the weight p(y|x), or 1."""
        logs = -self.losses(outputs, labels)
        own = logs.detach()
        return [(logs, own.exp() if weighted else torch.ones_like(own))]

    def shown(self, outputs: Tensor) -> Tensor:
        """The probabilities."""
        return outputs.softmax(dim=1)

    def probabilities(self, outputs: Tensor) -> Tensor:
        """softmax(z)."""
        return self.shown(outputs)

    def targets(self, labels: Tensor) -> Tensor:
        """One-hot."""
        return nn.functional.one_hot(labels, self.outputs)

    def guess(self, shares: Tensor) -> Tensor:
        """The logarithm of each class's share."""
        return shares.clamp(min=TINY).log()

    def seen(self, sums: Tensor) -> Tensor:
        """The classes with rows."""
        return sums > 0

    def tally(self, labels: Tensor) -> Tensor:
        """Rows per class."""
        return torch.bincount(labels.cpu(), minlength=self.outputs)

    def scores(self, outputs: Tensor, labels: Tensor) -> Scores:
        """Accuracy, macro F1, balanced accuracy, AUROC, log loss and calibration error."""
        return all_scores(with_unknown(outputs, labels), labels)

    def score(self, metric: str, outputs: Tensor, labels: Tensor) -> float:
        """Accuracy or macro F1."""
        return score(metric, outputs, labels)

    def score_rows(self, scores: Scores) -> list[list[str]]:
        """Shares in percent; losses as they are."""
        shown = {
            name: f"{value:.3f}" if name in LOSSES else f"{percent(value)} %"
            for name, value in scores.items()
            if value is not None
        }
        return [[name.replace("_", " "), shown.get(name, "-")] for name in scores]

    def reliability(self, outputs: Tensor, labels: Tensor) -> list[tuple[int, float, float]]:
        """Of the largest probability."""
        return reliability(outputs, labels)

    def confidences(self, outputs: np.ndarray) -> np.ndarray:
        """The largest probability."""
        return confidences(outputs)

    def confusion(self, outputs: Tensor, labels: Tensor) -> list[list[int]]:
        """Rows are true classes, columns are predicted ones."""
        return confusion_matrix(with_unknown(outputs, labels), labels).tolist()

    def delivered(self, outputs: Tensor) -> Tensor:
        """The probabilities."""
        return outputs.softmax(dim=1)

    def row_scores(self, outputs: Tensor, labels: Tensor) -> np.ndarray:
        """1 - p(label)."""
        shares = outputs.double().softmax(dim=1).cpu()
        return 1 - shares[torch.arange(len(shares)), labels.cpu()].numpy()

    def predictions(self, outputs: Tensor) -> np.ndarray:
        """The class with the largest logit."""
        return np.asarray(self.names).take(outputs.argmax(dim=1).cpu().numpy())

    def check_outputs(self, where: str) -> None:
        """Refuse fewer than two classes."""
        if self.outputs < self.fewest_outputs:
            raise FarshoreError(
                f"{where} has one class only ({list(self.names)}): give classes=[...] (--classes) "
                "with all labels that may occur"
            )

    def read(self, labels: Any, where: str) -> Sequence[Label]:
        """Plain labels."""
        return as_labels(labels, where=where)

    def encoded(self, labels: Sequence[Label], *, domain: str, first: int = 0) -> Tensor:
        """Class numbers; another class is refused."""
        return encode_labels(labels, self.names, domain=domain, first=first)

    def state_dict(self) -> dict[str, Any]:
        """The kind alone: results and saved models have the classes beside it."""
        return {"name": self.name}


# A task whose classes nobody asks for: its losses are those of any classification.
CLASSIFICATION = Classification()


def empirical_risk(
    logits: Tensor,
    labels: Tensor,
    class_weight: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy over all rows, current and replayed: the paper's ERM term.

    With `class_weight` [C] it is the weighted mean, each row with the weight of its class; with
    `weights` [n], each row has its own weight, times that of its class.
    """
    if weights is None:
        return nn.functional.cross_entropy(logits, labels, weight=class_weight)
    if class_weight is not None:
        weights = weights * class_weight[labels]
    losses = nn.functional.cross_entropy(logits, labels, reduction="none")
    # A batch may by chance have no row that counts.
    return (losses * weights).sum() / weights.sum().clamp(min=TINY)
