"""Task: what a label is, and everything that follows from it.

Training, memories, protocol and learner ask a task; none of them knows which one it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..base.forms import Like
from ..errors import FarshoreError
from ..settings import RunSettings

TaskName = Literal["classification", "regression"]
MetricName = Literal["accuracy", "macro_f1", "mae", "rmse", "r2", "skill"]
Label = int | float | str | bool
Scores = dict[str, float | None]
T = TypeVar("T")


@dataclass(frozen=True)
class Task(ABC):
    """What a label is. Outputs are those of the network, [..., C]; labels are [..., *label_shape].

    A method's per-row outputs are called logits whatever the task is.
    """

    name: ClassVar[TaskName]
    # Scores that can be the main one; the first is usual.
    metrics: ClassVar[tuple[MetricName, ...]]
    # Fewer outputs than this can learn nothing.
    fewest_outputs: ClassVar[int] = 1

    # ---- shape -----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def outputs(self) -> int:
        """C, the width of the output layer."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, if labels are classes."""
        return ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each label, if labels are numbers."""
        return ()

    @abstractmethod
    def blank(self, *rows: int, device: torch.device | str = "cpu") -> Tensor:
        """Labels that mean nothing, for so many rows."""

    @abstractmethod
    def label_form(self, rows: int | None) -> Like:
        """The form of saved labels of so many rows."""

    @abstractmethod
    def either(self, classes: T, numbers: T) -> T:
        """The first if labels are classes, the second if they are numbers: two models of a library.

        Nothing else outside of this folder asks what kind of task it is.
        """

    def main_metric(self, given: str) -> str:
        """The metric that was asked for; the usual one for `accuracy`, if the task has none."""
        if given in self.metrics:
            return given
        if given != "accuracy":
            raise FarshoreError(
                f"metric = {given!r} is not allowed for {self.name}: it should be one of "
                f"{', '.join(self.metrics)}"
            )
        return self.metrics[0]

    @property
    def score_unit(self) -> str:
        """The unit of scores that are in the label's."""
        return ""

    @property
    @abstractmethod
    def fact(self) -> tuple[str, str]:
        """What the labels are, for a list of facts: a heading and a text."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What a model of these labels is called, and what it puts out."""

    @property
    @abstractmethod
    def output(self) -> str:
        """What an exported model puts out."""

    @property
    def stored(self) -> list[str]:
        """What a saved model tells of the labels of its sites, beside what they are."""
        return []

    def announced(self) -> list[str]:
        """What to say when the labels have decided that it is this task."""
        return []

    def fits(self, needs_classes: bool) -> bool:
        """Whether a method that needs classes, or none, can learn these labels."""
        return True

    def check_method(self, method: str, needs_classes: bool, fitting: Callable[[], str]) -> None:
        """Refuse a method that does not fit; `fitting` names those that do."""

    def check_asked(self, of_classes: Mapping[str, Any], of_numbers: Mapping[str, Any]) -> None:
        """Refuse options of `farshore arrive` that are for the other kind of label."""
        wrong, why = self.either(
            (of_numbers, "is for labels that are numbers: use --at-least"),
            (
                of_classes,
                "is for labels that are classes: of a number, use --at-most; about ten rows with "
                "labels, drawn at random, are enough for `farshore calibrate` and `evaluate`",
            ),
        )
        for option, value in wrong.items():
            if value is not None:
                raise FarshoreError(f"{option} {why}")

    # ---- training --------------------------------------------------------------------------------

    @abstractmethod
    def under(self, run: RunSettings) -> Self:
        """The task with the loss that the settings of a run choose; refuse what it has not."""

    @abstractmethod
    def balanced(self, labels: Tensor) -> Tensor:
        """Weights of the classes under which each has the same total weight."""

    @abstractmethod
    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of each row, [n], for outputs [n, C]."""

    @abstractmethod
    def risk(
        self,
        outputs: Tensor,
        labels: Tensor,
        class_weight: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The mean loss of rows [n, C], each with its weight and, if given, that of its class."""

    @abstractmethod
    def slopes(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The derivative of each row's loss in its outputs, [..., C]."""

    @abstractmethod
    def fisher_parts(
        self, outputs: Tensor, labels: Tensor, *, weighted: bool
    ) -> list[tuple[Tensor, Tensor]]:
        """Pairs (a, w) of [n]: a row's Fisher information is Σ w (∂a/∂θ)² over the pairs.

        `weighted` and its opposite are two readings where the labels are part of it.
        """

    @abstractmethod
    def nearness(self, labels: Tensor) -> Tensor:
        """How near each row's label is to each of A labels, [..., A], from 0 to 1."""

    def shown(self, outputs: Tensor) -> Tensor:
        """What outputs [n, C] say: probabilities, or the values themselves."""
        return outputs

    def probabilities(self, outputs: Tensor) -> Tensor:
        """The probability of each class, [n, C]."""
        raise FarshoreError("labels are numbers, which have no probabilities: use predict")

    # ---- sums, for heads in closed form ----------------------------------------------------------

    @abstractmethod
    def targets(self, labels: Tensor) -> Tensor:
        """What a regression fits, [n, columns], the outputs first; each row adds up to 1.

        The sum over the columns therefore counts rows, and features summed by column add up.
        """

    @abstractmethod
    def guess(self, shares: Tensor) -> Tensor:
        """Outputs [C] that do not look at the input, from the mean of the `targets`."""

    @abstractmethod
    def seen(self, sums: Tensor) -> Tensor:
        """Which outputs [C] have been learned, from the summed `targets`."""

    def tempered(self, fit: Callable[[], float]) -> float:
        """The factor of outputs in closed form: as fitted, if they are logits, otherwise 1."""
        return fit()

    @abstractmethod
    def tally(self, labels: Tensor) -> Tensor:
        """The number of rows per class, or of all rows, [groups]."""

    def boosting(self, library: Literal["sklearn", "lightgbm"]) -> dict[str, Any]:
        """The loss as a library of boosted trees names it; empty if the library knows it."""
        return {}

    # ---- memory ----------------------------------------------------------------------------------

    def strata(self, labels: Tensor) -> Tensor:
        """The group of each row [n], for a memory that keeps equally many rows of each."""
        return labels

    # ---- scores and predictions ------------------------------------------------------------------

    @abstractmethod
    def scores(self, outputs: Tensor, labels: Tensor) -> Scores:
        """All scores by name; None where one is not defined."""

    @abstractmethod
    def score(self, metric: str, outputs: Tensor, labels: Tensor) -> float:
        """One of the `metrics`, without computing the others."""

    @abstractmethod
    def score_rows(self, scores: Scores) -> list[list[str]]:
        """The name and the value of each score, for a table."""

    def reliability(self, outputs: Tensor, labels: Tensor) -> list[tuple[int, float, float]]:
        """Rows, mean confidence and share of right answers by bin; none without confidences."""
        return []

    def confidences(self, outputs: np.ndarray) -> np.ndarray | None:
        """How certain each row's prediction says it is; None if it does not say."""
        return None

    def confusion(self, outputs: Tensor, labels: Tensor) -> list[list[int]]:
        """Counts of rows by true and predicted class; empty if labels are no classes."""
        return []

    @property
    def usual_drop(self) -> float:
        """How much of the first metric a known site may lose, unless the user says otherwise."""
        return 0.1

    @abstractmethod
    def delivered(self, outputs: Tensor) -> Tensor:
        """What an exported model puts out for outputs [n, C]."""

    @abstractmethod
    def row_scores(self, outputs: Tensor, labels: Tensor) -> np.ndarray:
        """How far each label is from what was said: 1 - p(label), or a distance of outputs."""

    def between(self, outputs: Tensor, most: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The ends [n, K] of the labels whose row score is at most this; None for classes."""
        return None

    def examples(self, outputs: Tensor, labels: Tensor) -> list[tuple[float, float]]:
        """Label and prediction of some rows, for a figure; none if labels are no numbers."""
        return []

    @abstractmethod
    def predictions(self, outputs: Tensor) -> np.ndarray:
        """The prediction for each row, as a user reads it."""

    # ---- what a user gave, and what is saved -----------------------------------------------------

    def check_outputs(self, where: str) -> None:
        """Refuse a task from which nothing can be learned."""

    @abstractmethod
    def read(self, labels: Any, where: str) -> Sequence[Any]:
        """Labels in memory, one per row, as `encoded` takes them; missing ones are refused."""

    @abstractmethod
    def encoded(self, labels: Sequence[Label], *, domain: str, first: int = 0) -> Tensor:
        """A user's labels as the network sees them; `first` is the number of the first row."""

    def after(self, labels: Tensor) -> Self:
        """The task once further training rows with these labels were learned."""
        return self

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """The task as plain values, for results and saved models."""
