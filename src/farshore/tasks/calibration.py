"""Calibration of probabilities, as pure functions of arrays.

- Temperature scaling (Guo et al., "On Calibration of Modern Neural Networks", ICML 2017):
  p = softmax(z / T), with the T that has the least log loss.
- Offsets: p = softmax(z / T + b). With two classes, b moves the threshold of the decision.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

# A temperature outside this range would make all rows certain, or none.
TEMPERATURES = (0.05, 20.0)


@dataclass(frozen=True)
class Calibration:
    """logits ↦ logits / temperature + offsets."""

    temperature: float
    offsets: tuple[float, ...]

    def apply(self, logits: np.ndarray) -> np.ndarray:
        """The calibrated logits; classes that were added later have no offset."""
        scaled: np.ndarray = np.asarray(logits, dtype=float) / self.temperature
        scaled[:, : len(self.offsets)] += np.asarray(self.offsets)
        return scaled

    @property
    def threshold(self) -> float | None:
        """With two classes: the least softmax(z / T) of the second one with which it is chosen."""
        if len(self.offsets) != 2:
            return None
        return float(special.expit(self.offsets[0] - self.offsets[1]))


def unchanged(classes: int) -> Calibration:
    """The calibration that changes nothing."""
    return Calibration(1.0, (0.0,) * classes)


def probabilities(logits: np.ndarray) -> np.ndarray:
    """softmax(z) of each row."""
    return special.softmax(np.asarray(logits, dtype=float), axis=1)


def confidences(logits: np.ndarray) -> np.ndarray:
    """The largest probability of each row."""
    return probabilities(logits).max(axis=1)


def log_losses(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """-log p(label) of each row."""
    z = np.asarray(logits, dtype=float)
    return special.logsumexp(z, axis=1) - z[np.arange(len(z)), labels]


def fit_temperature(
    logits: np.ndarray, labels: np.ndarray, *, usual: float = 1.0, trust: float = 0.0
) -> float:
    """The temperature with the least Σ -log p(label) + trust · (log T - log usual)² / 2.

    Without `trust` it is the maximum of the likelihood; `trust` is the weight of a normal prior
    for log T around `usual`, for few rows.
    """
    z = np.asarray(logits, dtype=float)

    def objective(log_temperature: float) -> float:
        loss = float(log_losses(z / math.exp(log_temperature), labels).sum())
        return loss + 0.5 * trust * (log_temperature - math.log(usual)) ** 2

    low, high = map(math.log, TEMPERATURES)
    best = optimize.minimize_scalar(
        objective, bounds=(low, high), method="bounded", options={"xatol": 1e-6}
    )
    return float(math.exp(best.x))


def fit_offsets(
    logits: np.ndarray, labels: np.ndarray, *, trust: float, usual: float = 1.0, trust_t: float = 0
) -> Calibration:
    """Temperature and offsets, with priors log T ~ N(log usual, 1/trust_t), b ~ N(0, 1/trust)."""
    z = np.asarray(logits, dtype=float)
    classes = z.shape[1]
    one_hot = np.eye(classes)[labels]

    def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_t, offsets = float(parameters[0]), parameters[1:]
        scaled = z / math.exp(log_t)
        log_p = special.log_softmax(scaled + offsets, axis=1)
        away = log_t - math.log(usual)
        value = -float((one_hot * log_p).sum())
        value += 0.5 * trust * float((offsets**2).sum()) + 0.5 * trust_t * away**2
        slope = np.exp(log_p) - one_hot
        by_t = -float((slope * scaled).sum()) + trust_t * away
        return value, np.concatenate([[by_t], slope.sum(axis=0) + trust * offsets])

    start = np.concatenate([[math.log(usual)], np.zeros(classes)])
    low, high = map(math.log, TEMPERATURES)
    bounds = [(low, high), *[(-10.0, 10.0)] * classes]
    best = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    offsets = best.x[1:] - best.x[1:].mean()
    return Calibration(float(math.exp(best.x[0])), tuple(float(value) for value in offsets))
