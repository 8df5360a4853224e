"""Metrics, numbers and lists for readers: name, unit, direction, limits, what guessing scores.

Scores are kept as they are computed, mostly fractions; `scale` turns one into its unit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    # In the label's unit, which may be anything: so many digits count, wherever the point is.
    digits: int | None = None

    def decimals(self, value: float) -> int:
        """One decimal for percentages; losses need more."""
        if self.digits is None:
            return 1 if self.scale == 100 else 3
        magnitude = math.floor(math.log10(abs(value))) if value else 0
        return max(0, self.digits - 1 - magnitude)

    @property
    def span(self) -> float:
        """The distance from the lowest to the highest possible score."""
        return self.high - self.low

    @property
    def of_numbers(self) -> bool:
        """Whether it measures predictions of numbers."""
        return self.digits is not None or self.name in ("r2", "skill")

    def better(self, first: float, second: float) -> bool:
        """Whether the first score is better than the second."""
        return first > second if self.higher_is_better else first < second

    def text(self, score: float | None, *, sign: bool = False) -> str:
        """A score in the metric's unit, without the unit; a dash for None."""
        if score is None or not math.isfinite(score):
            return "–"
        decimals = self.decimals(score * self.scale)
        value = round(score * self.scale, decimals) + 0.0  # turns -0.0 into 0.0
        shown = f"{value:+.{decimals}f}" if sign else f"{value:.{decimals}f}"
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
        Metric("mae", "MAE", "", 1.0, higher_is_better=False, high=math.inf, digits=4),
        Metric("rmse", "RMSE", "", 1.0, higher_is_better=False, high=math.inf, digits=4),
        Metric("r2", "R²", "", 1.0, low=-math.inf),
        Metric("skill", "skill", low=-math.inf),
    )
}
# The main scores of several data sets, if they have different metrics.
MIXED = Metric("score", "main score of each data set")


def in_unit(metric: Metric, unit: str) -> Metric:
    """The metric in the unit of a label; one that has a unit of its own stays as it is."""
    return replace(metric, unit=f" {unit}") if metric.digits is not None and unit else metric


def guess_score(
    metric: str, rows_by_class: Sequence[int], scores: Mapping[str, float | None] | None = None
) -> float | None:
    """The score of always predicting the most frequent class of these rows; None if undefined.

    Of numbers, that of the sources' mean, which is measured among the `scores`.
    Accuracy: its share p. Macro F1: only its own F1, 2p / (1 + p), is not zero, and the mean is
    over the classes that occur. Balanced accuracy: one over the number of classes that occur.
    """
    if scores is not None and f"guess_{metric}" in scores:
        return scores[f"guess_{metric}"]
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


@dataclass(frozen=True)
class GuessWords:
    """What guessing is, in words: what it always predicts, and what one who beats it does.

    quick, measured_by: a model that is fitted in no time, and its score.
    level, learned_nothing: that a method is at the level of guessing, without and with its names.
    """

    always: str
    beats: str
    seen: str
    quick: str
    measured_by: str
    level: str
    learned_nothing: str


CLASS_GUESS = GuessWords(
    "the most frequent class",
    "tells the classes apart better than guessing",
    "the most frequent class that it has seen",
    "a linear classifier",
    "accuracy",
    "Balanced accuracy at the level of chance, no better than guessing",
    "the balanced accuracy of {names} is at the level of chance",
)
MEAN_GUESS = GuessWords(
    "the sources' mean",
    "is better than the sources' mean",
    "the mean label of the sources",
    "ridge regression",
    "mae",
    "No better than the sources' mean",
    "{names} did no better than the sources' mean",
)


def guess_words(classes: int) -> GuessWords:
    """What guessing is with so many classes; 0 for numbers."""
    return CLASS_GUESS if classes else MEAN_GUESS


def guess_words_of(metric: Metric) -> GuessWords:
    """What guessing is where scores are in this metric."""
    return MEAN_GUESS if metric.of_numbers else CLASS_GUESS


def is_guessing(found: float, classes: int) -> bool:
    """Whether this balanced accuracy, or the skill if there are no classes, is that of guessing."""
    if not classes:
        return found <= AT_CHANCE
    chance = 1 / classes
    return found <= chance + AT_CHANCE * (1 - chance)


def level_text(found: float, classes: int) -> str:
    """The same of a single run, in one line."""
    if not classes:
        return at_chance_text(found, 0)
    return "balanced accuracy at the level of chance: no better than guessing"


def at_chance_text(found: float, classes: int) -> str:
    """That this balanced accuracy, or skill, is that of guessing, in words."""
    if not classes:
        return f"is no better than the sources' mean (skill {percent(found)}%)"
    return (
        "tells the classes apart no better than guessing (balanced accuracy "
        f"{100 * found:.1f}%, chance {100 / classes:.1f}%)"
    )


def guess_text(metric: str, classes: int, guesses: Sequence[float]) -> str:
    """The number of classes, and what always predicting the most frequent one scores, in words.

    Of numbers, what always predicting the sources' mean scores.
    """
    if not guesses or metric not in METRICS:
        return f"{classes} classes" if classes else "numbers"
    scale = METRICS[metric]
    low, high = scale.text(min(guesses)), scale.text(max(guesses))
    span = low if low == high else f"{low} to {high}"
    if not classes:
        return f"always predicting the sources' mean scores {span}{scale.unit}"
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
