"""How strongly invariance acted in a run, and what its representation tells about the domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from farshore.benchmarks.coloured_digits import ColouredDigits, following
from farshore.report.figures.features import Features, accuracy, read_features
from farshore.runs.result import Result

# What a result records per domain, and the column of its mean over the domains that have it.
RECORDED = {
    "penalty": "penalty_dose",
    "penalty_weight": "penalty_weight_used",
    "alignment": "alignment_dose",
    "distillation": "distillation_dose",
    "masked": "masked_share",
    "cosine": "mask_cosine",
}
# After fewer sources there is no invariance to speak of.
LEAST_SOURCES = 2
PROBED = ("domain_probe", "domain_probe_within_class")
DOSE_COLUMNS = (*RECORDED.values(), "unseen_source_score", "follows_colour", *PROBED)


def dose_columns(result: Result, features: Path) -> dict[str, float | None]:
    """The columns of a run that saved its features."""
    found: dict[str, float | None] = {
        column: mean([doses.get(name) for doses in result.doses.values()])
        for name, column in RECORDED.items()
    }
    found["unseen_source_score"] = unseen_source_score(result.matrices["validation"])
    coloured = result.run.benchmark == ColouredDigits.name and result.target is not None
    found["follows_colour"] = following(result.target.confusion) if coloured else None
    saved = read_features(features) if features.is_file() else None
    return found | dict(zip(PROBED, probes(saved) if saved else (None, None), strict=True))


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the numbers among these; None if there is none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def unseen_source_score(matrix: Sequence[Sequence[float | None]]) -> float | None:
    """The mean validation score on sources not learned yet, R[i][j] with j > i, from the second on.

    It is known before the target is opened, and weights may be chosen by it.
    """
    learned = enumerate(matrix)
    later = [row[number + 1 :] for number, row in learned if number + 1 >= LEAST_SOURCES]
    return mean([score for row in later for score in row])


def probes(saved: Features) -> tuple[float | None, float | None]:
    """How well a linear classifier tells the sources apart by their features; and within classes.

    Both are cross-validated balanced accuracies on the sources' validation rows; the target is not
    looked at. For the second, the mean of a row's class is taken off every feature (the mean of the
    sources' means), so that it is no help that sources have other shares of the classes.
    """
    sources = ~saved.target
    rows, classes = saved.features[sources].astype(np.float64), saved.classes[sources]
    names = [name for name, kept in zip(saved.domains, sources, strict=True) if kept]
    numbers = np.unique(names, return_inverse=True)[1]
    centred = rows.copy()
    for label in np.unique(classes):
        own = classes == label
        means = [rows[own & (numbers == each)].mean(axis=0) for each in np.unique(numbers[own])]
        centred[own] -= np.mean(means, axis=0)
    return accuracy(rows, numbers), accuracy(centred, numbers)
