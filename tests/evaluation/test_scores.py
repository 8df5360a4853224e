"""Scores compared with scikit-learn, and transfer measures with worked examples."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from farshore.runs.result import Result, average, backward_transfer, forgetting
from farshore.tasks import scores


def test_a_reliability_curve_counts_every_row_once_and_explains_the_calibration_error() -> None:
    # Confidence 0.6 twice, one of them right, and 0.9 three times, all right.
    sure = torch.tensor([0.6, 0.6, 0.9, 0.9, 0.9], dtype=torch.float64)
    logits = torch.stack([sure, 1 - sure], dim=1).log()
    labels = torch.tensor([0, 1, 0, 0, 0])
    found = scores.reliability(logits, labels)
    assert [rows for rows, _, _ in found] == [2, 3]
    assert [pair for _, *pair in found] == [
        pytest.approx([0.6, 0.5]),
        pytest.approx([0.9, 1.0]),
    ]
    error = sum(rows * abs(right - confidence) for rows, confidence, right in found) / 5
    assert error == pytest.approx(scores.calibration_error(logits, labels))


@given(st.integers(2, 5), st.integers(2, 60), st.integers(0, 10_000))
def test_scores_equal_scikit_learn(classes: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(rows, classes)).round(1))  # rounded: ties occur
    labels = torch.from_numpy(rng.integers(classes, size=rows))
    values = scores.all_scores(logits, labels)
    assert tuple(values) == scores.SCORES
    predicted, true = logits.argmax(dim=1).numpy(), labels.numpy()
    probability = logits.softmax(dim=1).numpy()
    assert values["accuracy"] == pytest.approx(metrics.accuracy_score(true, predicted))
    assert values["macro_f1"] == pytest.approx(metrics.f1_score(true, predicted, average="macro"))
    recalls = metrics.recall_score(true, predicted, labels=np.unique(true), average="macro")
    assert values["balanced_accuracy"] == pytest.approx(recalls)
    assert values["log_loss"] == pytest.approx(
        metrics.log_loss(true, probability, labels=range(classes))
    )
    confusion = metrics.confusion_matrix(true, predicted, labels=range(classes))
    assert np.array_equal(scores.confusion_matrix(logits, labels).numpy(), confusion)
    present = np.unique(true)
    if len(present) == 1:
        assert values["auroc"] is None
    elif classes == 2:
        assert values["auroc"] == pytest.approx(metrics.roc_auc_score(true, probability[:, 1]))
    else:
        areas = [metrics.roc_auc_score(true == c, probability[:, c]) for c in present]
        assert values["auroc"] == pytest.approx(np.mean(areas))


def test_calibration_error_of_a_worked_example() -> None:
    """Two rows with confidence 0.8 (one correct) and two with 0.6 (both correct).

    |0.5 - 0.8| * 2/4 + |1 - 0.6| * 2/4 = 0.35.
    """
    logits = torch.log(
        torch.tensor([[0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6]], dtype=torch.float64)
    )
    assert scores.calibration_error(logits, torch.tensor([0, 1, 0, 1])) == pytest.approx(0.35)


@given(st.integers(1, 80), st.integers(0, 1000))
def test_calibration_error_equals_a_loop_over_bins(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, labels = (
        torch.from_numpy(rng.normal(size=(rows, 3)) * 3),
        torch.from_numpy(rng.integers(3, size=rows)),
    )
    confidence, predicted = logits.softmax(dim=1).max(dim=1)
    total = 0.0
    for number in range(15):
        inside = (confidence > number / 15) & (confidence <= (number + 1) / 15)
        if inside.any():
            gap = (predicted == labels)[inside].double().mean() - confidence[inside].mean()
            total += float(inside.double().mean() * gap.abs())
    assert scores.calibration_error(logits, labels) == pytest.approx(total, abs=1e-9)


def test_transfer_of_a_worked_matrix() -> None:
    matrix = [[0.9, 0.2, 0.1], [0.7, 0.8, 0.3], [0.6, 0.9, 0.7]]
    assert backward_transfer(matrix) == pytest.approx(((0.6 - 0.9) + (0.9 - 0.8)) / 2)
    assert forgetting(matrix) == pytest.approx(((0.9 - 0.6) + (0.8 - 0.9)) / 2)
    assert average(matrix) == pytest.approx(2.2 / 3)


def test_transfer_is_not_defined_for_one_domain() -> None:
    assert backward_transfer([[0.9]]) is None
    assert forgetting([[0.9]]) is None


def test_the_three_options_of_source_performance() -> None:
    matrices = {"train": [[1.0, 0.0], [0.8, 0.6]], "validation": [[0.9, 0.1], [0.5, 0.3]]}
    old = SimpleNamespace(status="done", source_scores={}, matrices=matrices)
    scores = [Result.source_score(old, option) for option in (1, 2, 3)]  # type: ignore[arg-type]
    assert scores == pytest.approx([0.4, 0.7, 0.4])
