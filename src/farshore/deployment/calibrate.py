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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy import stats

from ..errors import FarshoreError
from ..tasks.calibration import Calibration, fit_offsets, fit_temperature, log_losses, unchanged
from ..tasks.classification import CLASSIFICATION
from ..tasks.metrics import METRICS
from ..tasks.scores import all_scores, confusion_matrix
from ..tasks.task import Task

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
    spread: ClassVar[float] = 1.0

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
    task: Task = CLASSIFICATION,
    current: Calibration | None = None,
) -> Calibrated:
    """Temperature and offsets from labelled rows.

    metric: the score that must not fall.
    usual: the known sites' temperature.
    current: what is applied to these logits so far; None if nothing is.
    """
    _check_enough(labels)
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
    losses = {name: log_losses(each, labels) for name, each in outside.items()}
    scores = {name: each.score(metric) for name, each in measured.items()}
    better = METRICS[metric].better
    chosen, refused = _choose(losses, lambda name: better(scores["nothing"], scores[name]))
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


def _check_enough(labels: np.ndarray) -> None:
    if len(labels) < FEWEST_ROWS:
        raise FarshoreError(
            f"{len(labels)} labelled rows are too few to calibrate with: give at least "
            f"{FEWEST_ROWS}"
        )


def _choose(
    losses: Mapping[str, np.ndarray], harms: Callable[[str], bool]
) -> tuple[str, str | None]:
    """The candidate with the least loss over rows that does no harm, and one that does."""
    chosen, refused = "nothing", None
    for name in list(losses)[1:]:
        gain = losses[chosen] - losses[name]
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        if float(gain.mean()) <= LEAST_GAIN * error:
            continue
        if harms(name):
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
    gain, loss = (stats.binomtest(count, rows).proportion_ci(LEVEL) for count in (gained, lost))
    return float(gain.low - loss.high), float(gain.high - loss.low)


@dataclass(frozen=True)
class CalibratedNumbers:
    """value ↦ slope · value + intercept, on the outputs' scale, and the spread of the errors.

    spread: the factor of the rows' intervals. before, after: the mean absolute errors of rows to
    which nothing was fitted, in the label's unit.
    """

    calibration: Calibration
    kind: str
    spread: float
    before: float
    after: float
    rows: int

    @property
    def changes(self) -> bool:
        """Whether predictions or intervals change at all."""
        return self.kind != "nothing"


def fit_numbers(
    outputs: np.ndarray,
    labels: np.ndarray,
    *,
    task: Task,
    usual: float | None,
    metric: str = "",
    current: Calibration | None = None,
) -> CalibratedNumbers:
    """Intercept, slope and residual scale from labelled rows.

    Least squares with the priors of a straight line: slope ~ N(1, 1/4), intercept ~ N(0, 1) in
    errors' deviations; each candidate predicts every row from the others, and a richer one must
    lower the absolute error by half of the standard error of the difference.

    usual: the median |error| at sites before they were learned; the spread is the median here over
    it, as if FEWEST_ROWS further rows had the usual one.
    """
    _check_enough(labels)
    width = outputs.shape[1]
    start = current or unchanged(width)

    def line(slopes: bool) -> Fit:
        def fit(z: np.ndarray, y: np.ndarray) -> Calibration:
            noise = max(float(np.var(y - z)), 1e-6)
            x, e = (z, y - z) if slopes else (np.zeros_like(z), y - z)
            # One slope for all labels: e = (slope - 1) x + intercept of each label.
            design = np.zeros((z.size, 1 + width))
            design[:, 0] = x.reshape(-1)
            design[np.arange(z.size), 1 + np.arange(z.size) % width] = 1
            prior = np.diag([TRUST_TEMPERATURE * noise] + [noise] * width)
            found = np.linalg.solve(design.T @ design + prior, design.T @ e.reshape(-1))
            slope = float(np.clip(1 + found[0], 0.1, 10))
            return Calibration(1 / slope, tuple(float(each) for each in found[1:]))

        return fit

    ways: dict[str, Fit] = {
        "nothing": lambda z, y: start,
        "intercept": line(False),
        "slope and intercept": line(True),
    }
    outside = {name: _outside(fit, outputs, labels) for name, fit in ways.items()}
    errors = {name: np.abs(each - labels).max(axis=1) for name, each in outside.items()}
    chosen, _ = _choose(errors, lambda name: False)
    spread, kind = 1.0, chosen
    if usual:
        here = len(labels) * float(np.median(errors[chosen])) + FEWEST_ROWS * usual
        spread = here / (len(labels) + FEWEST_ROWS) / usual
        kind = "residual scale" if chosen == "nothing" else f"{chosen}, residual scale"
    true = torch.from_numpy(labels)
    before, after = (
        task.score("mae", torch.from_numpy(outside[name]), true) for name in ("nothing", chosen)
    )
    return CalibratedNumbers(
        ways[chosen](outputs, labels), kind, spread, before, after, len(labels)
    )
