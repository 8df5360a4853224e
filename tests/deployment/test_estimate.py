"""The accuracy to expect at a site without labels: its formula, its interval, its refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from clinics import clinic, contents, written

from farshore.deployment.estimate import (
    WAYS,
    AccuracyEstimate,
    Arrival,
    NoEstimate,
    Signals,
    estimate,
)
from farshore.deployment.model import Model
from farshore.deployment.words import warning


def arrivals(confidences: list[float], accuracies: list[float]) -> list[Arrival]:
    return [
        Arrival(Signals(200, confidence, confidence - 0.1, 1 - accuracy), accuracy, known)
        for known, (confidence, accuracy) in enumerate(
            zip(confidences, accuracies, strict=True), start=2
        )
    ]


def test_an_estimate_by_hand() -> None:
    """The confidence is always 0.1 too high, and ATC is right: both predict without error.

    Their error is then the least possible one, 1.2 times the variance of an accuracy by chance.
    """
    accuracies = np.array([0.8, 0.7, 0.85, 0.6])
    sites = [
        Arrival(Signals(200, each + 0.1, each, 0.5), each, known)
        for known, each in enumerate(accuracies, start=2)
    ]
    least = 1.2 * float(np.mean(accuracies * (1 - accuracies) / 200))
    of_mean = float(np.mean((4 / 3 * (accuracies - accuracies.mean())) ** 2))
    done = estimate(Signals(200, 0.85, 0.75, 0.5), sites)
    assert isinstance(done, AccuracyEstimate)
    assert done.values["mean of left-out sites"] == pytest.approx(0.7375)
    assert done.values["average confidence"] == done.values["ATC"] == pytest.approx(0.75)
    inverse = np.array([of_mean**-2, least**-2, least**-2, of_mean**-2])
    weights = inverse / inverse.sum()
    assert list(done.weights.values()) == pytest.approx(weights)
    value = float(weights @ [0.7375, 0.75, 0.75, 0.7375])
    assert done.accuracy == pytest.approx(value)
    error = float(weights @ [of_mean, least, least, of_mean])
    assert done.high - value == pytest.approx(2.3534 * np.sqrt(error), rel=1e-4)  # t(3) at 95%
    assert set(done.values) == set(WAYS)
    # Far beyond all sites that it could be fitted to, the distance says nothing.
    assert "distance" not in estimate(Signals(200, 0.85, 0.75, 5.0), sites).values
    fewer = estimate(Signals(50, 0.85, 0.75, 0.5), sites)
    assert fewer.width > done.width


def test_a_regression_on_the_distance_never_rises() -> None:
    falling = [Arrival(Signals(200, 0.9, 0.9, d), 0.9 - 0.1 * d, 3) for d in (0.0, 1.0, 2.0, 3.0)]
    rising = [Arrival(Signals(200, 0.9, 0.9, d), 0.5 + 0.1 * d, 3) for d in (0.0, 1.0, 2.0, 3.0)]
    assert WAYS["distance"](falling, Signals(200, 0.9, 0.9, 4.0)) == pytest.approx(0.5)
    assert WAYS["distance"](rising, Signals(200, 0.9, 0.9, 4.0)) == pytest.approx(0.65)


def test_no_estimate_where_left_out_sites_say_that_it_cannot_be_known() -> None:
    here = Signals(100, 0.85, 0.8, 0.2)
    few = estimate(here, arrivals([0.9] * 3, [0.8] * 3))
    assert isinstance(few, NoEstimate)
    assert "at least 4 sites" in few.reason
    wild = estimate(
        here,
        [Arrival(Signals(200, 0.9, 0.8, 0.2), each, 3) for each in (0.2, 0.9, 0.1, 0.95)],
    )
    assert isinstance(wild, NoEstimate)
    assert "cannot be predicted" in wild.reason
    outside = estimate(here, arrivals([0.9] * 4, [0.8, 0.82, 0.78, 0.8]), ["it is strange"])
    assert isinstance(outside, NoEstimate)
    assert "out of range: it is strange" in outside.reason


def test_a_warning_needs_the_whole_interval_below_the_promise() -> None:
    here = Signals(100, 0.85, 0.8, 0.2)
    done = estimate(here, arrivals([0.9] * 4, [0.7, 0.72, 0.68, 0.7]))
    assert isinstance(done, AccuracyEstimate)
    assert warning(done, done.high - 0.01) is None
    assert "below the 95.0% at which the model was accepted" in warning(done, 0.95)
    assert warning(done, None) is None
    assert warning(NoEstimate("nobody knows", here), 0.95) is None


def test_the_first_estimate_of_a_site_is_recorded_before_it_is_learned(four: Path) -> None:
    model = Model.open(four / "model")
    assert [facts["arrival"].get("known") for facts in model.sites.values()] == [None, 1, 2, 3]
    for arrival in model.knowledge.arrivals:
        assert arrival.signals.rows == 150
        assert arrival.accuracy > 0.7
        assert 0.5 <= arrival.signals.confidence <= 1


def test_estimating_is_a_refusal_with_too_few_sites_and_writes_nothing(
    four: Path, tmp_path: Path, typed
) -> None:
    before = contents(four / "model")
    data = written(tmp_path, clinic(20))
    code, out = typed("estimate", four / "model", data)
    assert code == 2
    assert "at least 4 sites that were measured before they were learned, and this model" in out
    assert contents(four / "model") == before
