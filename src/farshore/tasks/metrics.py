"""Metrics, numbers and lists for readers: name, unit, direction, limits, what guessing scores.

Scores are kept as they are computed, mostly fractions; `scale` turns one into its unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BALANCED = "balanced_accuracy"
# A method whose balanced accuracy covers less than this share of the way from chance to perfect
# has learned next to nothing about the classes.
AT_CHANCE = 0.05


@dataclass(frozen=True)
class Metric:
    """A score on the target: its unit, which direction is better, and its possible values.

    A method is compared with others by the metric; the better one has the higher or the lower
    score, as `higher_is_better` says.
    """

    name: str
    label: str
    unit: str = "%"
    scale: float = 100.0
    higher_is_better: bool = True
    low: float = 0.0
    high: float = 1.0

    @property
    def decimals(self) -> int:
        """One decimal for percentages; losses need more."""
        return 1 if self.scale == 100 else 3

    @property
    def span(self) -> float:
        """The distance from the lowest to the highest possible score."""
        return self.high - self.low

    def better(self, first: float, second: float) -> bool:
        """Whether the first score is better than the second."""
        return first > second if self.higher_is_better else first < second

    def text(self, score: float | None, *, sign: bool = False) -> str:
        """A score in the metric's unit, without the unit; a dash for None."""
        if score is None or not math.isfinite(score):
            return "–"
        value = round(score * self.scale, self.decimals) + 0.0  # turns -0.0 into 0.0
        shown = f"{value:+.{self.decimals}f}" if sign else f"{value:.{self.decimals}f}"
        return shown.replace("-", "\u2212")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy"),
        Metric(BALANCED, "balanced accuracy"),
        Metric("macro_f1", "macro F1"),
        Metric("auroc", "AUROC"),
        Metric("log_loss", "log loss", "", 1.0, higher_is_better=False, high=math.inf),
        Metric("calibration_error", "calibration error", higher_is_better=False),
    )
}
# The main scores of several data sets, if they have different metrics.
MIXED = Metric("score", "main score of each data set")


def label_of(metric: str) -> str:
    """The name of a metric in a heading."""
    return METRICS[metric].label if metric in METRICS else metric


def guess_score(metric: str, rows_by_class: Sequence[int]) -> float | None:
    """The score of always predicting the most frequent class of these rows; None if undefined.

    Accuracy: its share p. Macro F1: only its own F1, 2p / (1 + p), is not zero, and the mean is
    over the classes that occur. Balanced accuracy: one over the number of classes that occur.
    """
    total, occurring = sum(rows_by_class), sum(rows > 0 for rows in rows_by_class)
    if not total:
        return None
    share = max(rows_by_class) / total
    if metric == "accuracy":
        return share
    if metric == "macro_f1":
        return 2 * share / (1 + share) / occurring
    if metric == BALANCED:
        return 1 / occurring
    return 0.5 if metric == "auroc" else None


def is_guessing(balanced_accuracy: float, classes: int) -> bool:
    """Whether this balanced accuracy is at the level of chance: no better than guessing."""
    chance = 1 / max(classes, 1)
    return balanced_accuracy <= chance + AT_CHANCE * (1 - chance)


def guess_text(metric: str, classes: int, guesses: Sequence[float]) -> str:
    """The number of classes, and what always predicting the most frequent one scores, in words."""
    if not guesses or metric not in METRICS:
        return f"{classes} classes"
    scale = METRICS[metric]
    low, high = scale.text(min(guesses)), scale.text(max(guesses))
    span = low if low == high else f"{low} to {high}"
    return f"{classes} classes, always predicting the most frequent one scores {span}{scale.unit}"


def percent(value: float | None, *, sign: bool = False) -> str:
    """A fraction in percent with one decimal, without the sign of percent; a dash for None."""
    return METRICS["accuracy"].text(value, sign=sign)


def several(number: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def listed(names: Sequence[str], most: int | None = None, last: str = "and") -> str:
    """`a, b and c`; with `most`, the first few and how many more there are."""
    shown = list(names)
    if most is not None and len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}" if len(shown) > 1 else "".join(shown)
