"""Calibration of a model's probabilities to a new site, from a few of its rows.

With labels, three candidates are compared: the outputs as they are, a temperature, and a
temperature with an offset per class (with two classes: another threshold). The parameters are those
of the largest posterior probability. The priors are wide, and few rows move them little. Each
candidate predicts every row from the others, and the one with the least log loss is taken.

Without labels, the class priors of the site are estimated by EM, and taken if they differ from
those of the sites that were learned by more than chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..errors import FarshoreError
from ..tasks.calibration import (
    Calibration,
    em_priors,
    fit_offsets,
    fit_temperature,
    log_losses,
    probabilities,
    unchanged,
)

FEWEST_ROWS = 10
# Priors: the logarithm of the temperature has a standard deviation of 1/2, an offset of 1.
TRUST_TEMPERATURE = 4.0
TRUST_OFFSETS = 1.0
# More rows than this are predicted in groups, not one by one.
MOST_FOLDS = 60
# A richer candidate must improve the log loss by this share of its standard error.
LEAST_GAIN = 0.5
LEVEL = 0.99
RISK = 0.05


@dataclass(frozen=True)
class Calibrated:
    """A calibration, and what it changes on rows that it was not fitted to.

    before, after: the mean log loss; None without labels. change: the accuracy gained, with its
    interval at LEVEL: from the share of rows that become right and of those that become wrong,
    each with the exact interval of Clopper and Pearson.
    priors: the estimated shares of the classes, without labels.
    """

    calibration: Calibration
    kind: str
    rows: int
    before: float | None = None
    after: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    priors: tuple[float, ...] | None = None
    p_value: float | None = None

    @property
    def changes(self) -> bool:
        """Whether the outputs change at all."""
        return self.kind != "nothing"


Fit = Callable[[np.ndarray, np.ndarray], Calibration]


def fit_labelled(logits: np.ndarray, labels: np.ndarray, *, usual: float) -> Calibrated:
    """Temperature and offsets from labelled rows; `usual` is the known sites' temperature."""
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
        "nothing": lambda z, y: unchanged(classes),
        "temperature": temperature,
        "temperature and threshold" if classes == 2 else "temperature and offsets": offsets,
    }
    outside = {name: _outside(fit, logits, labels) for name, fit in ways.items()}
    losses = {name: log_losses(each, labels) for name, each in outside.items()}
    chosen = "nothing"
    for name in list(ways)[1:]:
        gain = losses[chosen] - losses[name]
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        if float(gain.mean()) > LEAST_GAIN * error:
            chosen = name
    change = low = high = 0.0  # a temperature changes no prediction
    if chosen not in ("nothing", "temperature"):
        change, low, high = _accuracy_change(outside["nothing"], outside[chosen], labels)
    return Calibrated(
        ways[chosen](logits, labels),
        chosen,
        len(labels),
        before=float(losses["nothing"].mean()),
        after=float(losses[chosen].mean()),
        change=change,
        low=low,
        high=high,
    )


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
) -> tuple[float, float, float]:
    """The gain in accuracy and its interval."""
    old, new = (each.argmax(axis=1) == labels for each in (before, after))
    gained, lost, rows = int((new & ~old).sum()), int((old & ~new).sum()), len(labels)
    (low_gain, high_gain), (low_loss, high_loss) = (
        _exact_interval(count, rows) for count in (gained, lost)
    )
    return (gained - lost) / rows, low_gain - high_loss, high_gain - low_loss


def _exact_interval(count: int, rows: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share."""
    tail = (1 - LEVEL) / 2
    low = float(stats.beta.ppf(tail, count, rows - count + 1)) if count else 0.0
    high = float(stats.beta.ppf(1 - tail, count + 1, rows - count)) if count < rows else 1.0
    return low, high


def fit_unlabelled(logits: np.ndarray, known: np.ndarray, *, temperature: float) -> Calibrated:
    """Offsets for the class priors of unlabelled rows; `known` are the learned sites' shares."""
    if len(logits) < FEWEST_ROWS:
        raise FarshoreError(
            f"{len(logits)} rows are too few to calibrate with: give at least {FEWEST_ROWS}"
        )
    priors = em_priors(probabilities(logits / temperature), known)
    shares = tuple(float(share) for share in priors.shares)
    if priors.p_value > RISK:
        nothing = unchanged(logits.shape[1])
        return Calibrated(nothing, "nothing", len(logits), priors=shares, p_value=priors.p_value)
    least = np.clip(np.asarray(known, dtype=float), 1e-6, None)
    offsets = np.log(priors.shares) - np.log(least / least.sum())
    fitted = Calibration(temperature, tuple(float(each) for each in offsets - offsets.mean()))
    return Calibrated(fitted, "class priors", len(logits), priors=shares, p_value=priors.p_value)
