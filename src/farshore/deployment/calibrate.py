"""Calibration of a model's probabilities to a new site, from a few of its rows.

Three candidates are compared: the outputs as they are, a temperature, and a temperature with an
offset per class (with two classes: another threshold). The parameters are those of the largest
posterior probability. The priors are wide, and few rows move them little. Each candidate predicts
every row from the others (cross-fitting), and the one with the least log loss is taken, unless it
lowers the model's own metric on these predictions: such a one is refused.

There is no way without labels. Shares of the classes that are estimated from the outputs alone (EM)
are right only if nothing but the shares changed, which the outputs do not tell: elsewhere they make
a working model useless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from ..errors import FarshoreError
from ..tasks.calibration import Calibration, fit_offsets, fit_temperature, log_losses, unchanged
from ..tasks.metrics import METRICS
from ..tasks.scores import all_scores, confusion_matrix

FEWEST_ROWS = 10
# Priors: the logarithm of the temperature has a standard deviation of 1/2, an offset of 1.
TRUST_TEMPERATURE = 4.0
TRUST_OFFSETS = 1.0
# More rows than this are predicted in groups, not one by one.
MOST_FOLDS = 60
# A richer candidate must improve the log loss by this share of its standard error.
LEAST_GAIN = 0.5
LEVEL = 0.99


@dataclass(frozen=True)
class Measured:
    """Scores of labelled rows by name, and the recall of each class that occurs, by its number."""

    scores: dict[str, float | None]
    recalls: dict[int, float]

    def score(self, name: str) -> float:
        """A score that is defined for all rows."""
        value = self.scores[name]
        assert value is not None
        return value


@dataclass(frozen=True)
class Calibrated:
    """A calibration, and what it changes on rows that it was not fitted to.

    low, high: the interval at LEVEL of the accuracy gained, from the share of rows that become
    right and of those that become wrong, each with the exact interval of Clopper and Pearson.
    refused: what would have had a lower log loss but lowers the model's metric, and its scores.
    """

    calibration: Calibration
    kind: str
    before: Measured
    after: Measured
    counts: dict[int, int]
    low: float
    high: float
    refused: tuple[str, Measured] | None = None

    @property
    def rows(self) -> int:
        """How many rows it was fitted to."""
        return sum(self.counts.values())

    @property
    def changes(self) -> bool:
        """Whether the outputs change at all."""
        return self.kind != "nothing"


Fit = Callable[[np.ndarray, np.ndarray], Calibration]


def fit_labelled(
    logits: np.ndarray,
    labels: np.ndarray,
    *,
    metric: str,
    usual: float,
    current: Calibration | None = None,
) -> Calibrated:
    """Temperature and offsets from labelled rows.

    metric: the score that must not fall.
    usual: the known sites' temperature.
    current: what is applied to these logits so far; None if nothing is.
    """
    if len(labels) < FEWEST_ROWS:
        raise FarshoreError(
            f"{len(labels)} labelled rows are too few to calibrate with: give at least "
            f"{FEWEST_ROWS}"
        )
    classes = logits.shape[1]
    zeros = (0.0,) * classes

    def temperature(z: np.ndarray, y: np.ndarray) -> Calibration:
        return Calibration(fit_temperature(z, y, usual=usual, trust=TRUST_TEMPERATURE), zeros)

    def offsets(z: np.ndarray, y: np.ndarray) -> Calibration:
        return fit_offsets(z, y, trust=TRUST_OFFSETS, usual=usual, trust_t=TRUST_TEMPERATURE)

    ways: dict[str, Fit] = {
        "nothing": lambda z, y: current or unchanged(classes),
        "temperature": temperature,
        "temperature and threshold" if classes == 2 else "temperature and offsets": offsets,
    }
    outside = {name: _outside(fit, logits, labels) for name, fit in ways.items()}
    measured = {name: _measured(each, labels) for name, each in outside.items()}
    chosen, refused = _choose(metric, outside, measured, labels)
    counts = np.bincount(labels, minlength=classes)
    # A temperature alone changes no prediction, unless there were offsets before.
    shifted = current is not None and any(current.offsets)
    same = chosen == "nothing" or (chosen == "temperature" and not shifted)
    change = (0.0, 0.0) if same else _accuracy_change(outside["nothing"], outside[chosen], labels)
    return Calibrated(
        ways[chosen](logits, labels),
        chosen,
        measured["nothing"],
        measured[chosen],
        {number: int(rows) for number, rows in enumerate(counts) if rows},
        *change,
        refused=(refused, measured[refused]) if refused else None,
    )


def _choose(
    metric: str,
    outside: Mapping[str, np.ndarray],
    measured: Mapping[str, Measured],
    labels: np.ndarray,
) -> tuple[str, str | None]:
    """The candidate with the least log loss whose metric has not fallen, and one that has."""
    losses = {name: log_losses(each, labels) for name, each in outside.items()}
    scores = {name: each.score(metric) for name, each in measured.items()}
    chosen, refused = "nothing", None
    for name in list(outside)[1:]:
        gain = losses[chosen] - losses[name]
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        if float(gain.mean()) <= LEAST_GAIN * error:
            continue
        if METRICS[metric].better(scores["nothing"], scores[name]):
            refused = name
        else:
            chosen, refused = name, None
    return chosen, refused


def _measured(logits: np.ndarray, labels: np.ndarray) -> Measured:
    outputs, true = torch.from_numpy(logits), torch.from_numpy(np.asarray(labels))
    confusion = confusion_matrix(outputs, true).double()
    recalls = (confusion.diagonal() / confusion.sum(dim=1)).tolist()
    occurring = sorted(set(true.tolist()))
    return Measured(all_scores(outputs, true), {number: recalls[number] for number in occurring})


def _outside(fit: Fit, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The calibrated logits of every row, by a calibration that was fitted without it."""
    outside = np.empty_like(logits)
    fold = np.arange(len(labels)) % min(MOST_FOLDS, len(labels))
    for number in range(int(fold.max()) + 1):
        own = fold == number
        outside[own] = fit(logits[~own], labels[~own]).apply(logits[own])
    return outside


def _accuracy_change(
    before: np.ndarray, after: np.ndarray, labels: np.ndarray
) -> tuple[float, float]:
    """The interval of the gain in accuracy."""
    old, new = (each.argmax(axis=1) == labels for each in (before, after))
    gained, lost, rows = int((new & ~old).sum()), int((old & ~new).sum()), len(labels)
    (low_gain, high_gain), (low_loss, high_loss) = (
        _exact_interval(count, rows) for count in (gained, lost)
    )
    return low_gain - high_loss, high_gain - low_loss


def _exact_interval(count: int, rows: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share."""
    tail = (1 - LEVEL) / 2
    low = float(stats.beta.ppf(tail, count, rows - count + 1)) if count else 0.0
    high = float(stats.beta.ppf(1 - tail, count + 1, rows - count)) if count < rows else 1.0
    return low, high
