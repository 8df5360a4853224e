"""Scores of predictions against labels, as pure functions of tensors.

All take logits [n, C] and labels [n]. A score that is not defined for the given labels is None.
"""

import math

import torch
from torch import Tensor

CALIBRATION_BINS = 15
# Wider ones for a curve: a point needs rows.
RELIABILITY_BINS = 10
# The names of all scores, in the order of `all_scores`.
SCORES = ("accuracy", "macro_f1", "balanced_accuracy", "auroc", "log_loss", "calibration_error")


def confusion_matrix(logits: Tensor, labels: Tensor) -> Tensor:
    """Counts [C, C]: rows are true classes, columns are predicted classes."""
    classes = logits.shape[1]
    cell = labels * classes + logits.argmax(dim=1)
    return torch.bincount(cell, minlength=classes * classes).reshape(classes, classes)


def accuracy(confusion: Tensor) -> float:
    """Share of rows with a correct prediction."""
    return float(confusion.diagonal().sum().double() / confusion.sum())


def macro_f1(confusion: Tensor) -> float:
    """Mean of 2 TP / (2 TP + FP + FN) over the classes that occur as label or prediction."""
    hits = confusion.diagonal().double()
    total = confusion.sum(dim=0) + confusion.sum(dim=1)
    occurs = total > 0
    return float((2 * hits[occurs] / total[occurs]).mean())


def balanced_accuracy(confusion: Tensor) -> float:
    """Mean recall over the classes that occur among the labels."""
    support = confusion.sum(dim=1)
    occurs = support > 0
    return float((confusion.diagonal().double()[occurs] / support[occurs]).mean())


def log_loss(logits: Tensor, labels: Tensor) -> float:
    """Mean of -log p(label)."""
    return float(torch.nn.functional.cross_entropy(logits.double(), labels))


def auroc(logits: Tensor, labels: Tensor) -> float | None:
    """Area under the ROC curve: of p(class 1) for two classes, else the mean of one-vs-rest areas.

    Only classes with both positive and negative rows count; None if there are none.
    """
    probability = logits.double().softmax(dim=1)
    columns = [1] if logits.shape[1] == 2 else range(logits.shape[1])
    areas = [_area(probability[:, c], labels == c) for c in columns]
    defined = [area for area in areas if area is not None]
    return sum(defined) / len(defined) if defined else None


def _area(score: Tensor, positive: Tensor) -> float | None:
    """Mann-Whitney: share of (positive, negative) pairs in the right order; ties count half."""
    count = int(positive.sum())
    if count == 0 or count == len(positive):
        return None
    _, distinct_index, size = score.unique(return_inverse=True, return_counts=True)
    upper = size.cumsum(0).double()
    rank = (upper - (size.double() - 1) / 2)[distinct_index]
    return float(
        (rank[positive].sum() - count * (count + 1) / 2) / (count * (len(positive) - count))
    )


def calibration_error(logits: Tensor, labels: Tensor, bins: int = CALIBRATION_BINS) -> float:
    """Mean over rows of |accuracy - confidence| of the row's bin; bins have equal width."""
    confidence, predicted = logits.double().softmax(dim=1).max(dim=1)
    correct = (predicted == labels).double()
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(
        0, bin_of.cpu(), (correct - confidence).cpu()
    )
    return float(gap.abs().sum() / len(labels))


def reliability(
    logits: Tensor, labels: Tensor, bins: int = RELIABILITY_BINS
) -> list[tuple[int, float, float]]:
    """Rows, mean confidence and share of right predictions of each bin that has rows."""
    confidence, predicted = logits.double().softmax(dim=1).max(dim=1)
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    right = (predicted == labels).double()
    return [
        (int(of.sum()), float(confidence[of].mean()), float(right[of].mean()))
        for of in (bin_of == each for each in range(bins))
        if bool(of.any())
    ]


def with_unknown(logits: Tensor, labels: Tensor) -> Tensor:
    """The logits; if the labels have a class without an output, with one that is never chosen."""
    if int(labels.max()) < logits.shape[1]:
        return logits
    return torch.cat([logits, torch.full_like(logits[:, :1], -math.inf)], dim=1)


def all_scores(logits: Tensor, labels: Tensor) -> dict[str, float | None]:
    """All scores by name."""
    confusion, loss = confusion_matrix(logits, labels), log_loss(logits, labels)
    return {
        "accuracy": accuracy(confusion),
        "macro_f1": macro_f1(confusion),
        "balanced_accuracy": balanced_accuracy(confusion),
        "auroc": auroc(logits, labels),
        "log_loss": loss if math.isfinite(loss) else None,
        "calibration_error": calibration_error(logits, labels),
    }


def score(metric: str, logits: Tensor, labels: Tensor) -> float:
    """The scenario's headline score: `accuracy` or `macro_f1`."""
    confusion = confusion_matrix(logits, labels)
    return accuracy(confusion) if metric == "accuracy" else macro_f1(confusion)
