"""Calibration against worked numbers and against slower second implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from farshore.tasks.calibration import (
    Calibration,
    confidences,
    fit_offsets,
    fit_temperature,
    log_losses,
    probabilities,
    unchanged,
)


def made(rows: int, classes: int, seed: int, scale: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Logits that are `scale` times too large for their labels."""
    draws = np.random.default_rng(seed)
    logits = draws.normal(size=(rows, classes))
    labels = np.array([draws.choice(classes, p=row) for row in probabilities(logits)])
    return scale * logits, labels


def test_a_temperature_in_closed_form() -> None:
    """Two classes, logits ±1 with 3 of 4 rows right: p = 3/4, so 2 / T = log 3."""
    logits = np.array([[1.0, -1.0]] * 4)
    labels = np.array([0, 0, 0, 1])
    assert fit_temperature(logits, labels) == pytest.approx(2 / math.log(3), rel=1e-4)
    strong = fit_temperature(logits, labels, usual=5.0, trust=1e9)
    assert strong == pytest.approx(5.0, rel=1e-4)


@pytest.mark.parametrize(("classes", "seed"), [(2, 0), (3, 1), (4, 2)])
def test_the_temperature_has_the_least_log_loss_of_a_fine_grid(classes: int, seed: int) -> None:
    logits, labels = made(200, classes, seed)
    fitted = log_losses(logits / fit_temperature(logits, labels), labels).sum()
    grid = [log_losses(logits / t, labels).sum() for t in np.geomspace(0.06, 19, 200)]
    assert fitted <= min(grid) + 1e-6


@pytest.mark.parametrize(("classes", "seed"), [(2, 0), (3, 1)])
def test_offsets_are_those_of_a_search_without_gradients(classes: int, seed: int) -> None:
    logits, labels = made(60, classes, seed)
    fitted = fit_offsets(logits, labels, trust=1.0, usual=2.0, trust_t=4.0)

    def objective(parameters: np.ndarray) -> float:
        log_t, offsets = parameters[0], parameters[1:]
        loss = log_losses(logits / math.exp(log_t) + offsets, labels).sum()
        return loss + 0.5 * (offsets**2).sum() + 2.0 * (log_t - math.log(2)) ** 2

    slow = optimize.minimize(
        objective,
        np.array([math.log(2), *[0.0] * classes]),
        method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-9, "maxiter": 20000, "maxfev": 20000},
    )
    assert objective(np.array([math.log(fitted.temperature), *fitted.offsets])) == pytest.approx(
        slow.fun, abs=1e-4
    )
    assert sum(fitted.offsets) == pytest.approx(0, abs=1e-9)


def test_a_threshold_decides_as_the_offsets_do() -> None:
    logits, _ = made(300, 2, 0)
    calibration = Calibration(1.7, (0.4, -0.3))
    threshold = calibration.threshold
    assert threshold == pytest.approx(1 / (1 + math.exp(-0.7)))
    by_threshold = probabilities(logits / 1.7)[:, 1] >= threshold
    assert np.array_equal(by_threshold, calibration.apply(logits).argmax(axis=1) == 1)
    assert Calibration(1.0, (0.0,) * 3).threshold is None
    assert np.array_equal(unchanged(2).apply(logits), logits)
    # A class that was added after the calibration has no offset.
    assert Calibration(2.0, (1.0, 0.0)).apply(np.ones((1, 3))).tolist() == [[1.5, 0.5, 0.5]]


def test_confidences_are_the_largest_probabilities() -> None:
    logits = np.random.default_rng(0).normal(size=(30, 3))
    assert confidences(logits) == pytest.approx(probabilities(logits).max(axis=1))
