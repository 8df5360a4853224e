"""Regression as a task: its formulas against worked numbers and slower implementations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import metrics as reference

from farshore.base.forms import FormError
from farshore.errors import FarshoreError
from farshore.settings import RunSettings
from farshore.tasks.classification import CLASSIFICATION
from farshore.tasks.labels import LabelOptions, decide, first_task, restored_task
from farshore.tasks.metrics import (
    CLASS_GUESS,
    MEAN_GUESS,
    METRICS,
    guess_score,
    guess_words_of,
    in_unit,
    is_guessing,
)
from farshore.tasks.regression import Regression

ROOT = Path(__file__).parents[2]


def fitted(labels: int = 1, log: bool = False) -> tuple[Regression, np.ndarray]:
    values = np.exp(np.random.default_rng(0).normal(3, 1, (200, labels)))
    return Regression.fitted(values, [f"y{n}" for n in range(labels)], log=log), values


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("labels", [1, 2])
def test_labels_are_standardised_by_the_first_site_and_come_back(labels: int, log: bool) -> None:
    task, values = fitted(labels, log)
    encoded = task.encoded(values.tolist(), domain="a")
    assert encoded.dtype == torch.float32
    assert encoded.mean(dim=0).tolist() == pytest.approx([0] * labels, abs=1e-6)
    assert encoded.std(dim=0, unbiased=False).tolist() == pytest.approx([1] * labels, abs=1e-6)
    assert task.values(encoded) == pytest.approx(values, rel=1e-5)
    assert task.predictions(encoded).shape == ((200,) if labels == 1 else (200, labels))


@pytest.mark.parametrize("log", [False, True])
def test_scores_are_those_of_scikit_learn_in_the_labels_unit(log: bool) -> None:
    task, values = fitted(log=log)
    rng = np.random.default_rng(1)
    guess = values * np.exp(0.3 * rng.normal(size=values.shape))
    found = task.scores(task.standardised(guess), task.standardised(values))
    assert found["mae"] == pytest.approx(reference.mean_absolute_error(values, guess), rel=1e-4)
    mean_square = reference.mean_squared_error(values, guess)
    assert found["rmse"] == pytest.approx(math.sqrt(mean_square), rel=1e-4)
    assert found["r2"] == pytest.approx(reference.r2_score(values, guess), abs=1e-4)
    mean = np.exp(np.log(values).mean()) if log else values.mean()
    of_mean = np.abs(values - mean).mean()
    assert found["guess_mae"] == pytest.approx(of_mean, rel=1e-4)
    assert found["skill"] == pytest.approx(1 - found["mae"] / of_mean, abs=1e-4)
    assert guess_score("mae", [], found) == found["guess_mae"]


def test_several_labels_are_scored_in_deviations_of_the_first_site() -> None:
    task, values = fitted(2)
    other = values + np.array([1.0, 10.0])
    found = task.scores(task.standardised(other), task.standardised(values))
    expected = np.mean([1.0, 10.0] / values.std(axis=0))
    assert found["mae"] == pytest.approx(expected, rel=1e-4)


def test_the_skill_has_no_value_where_guessing_is_right() -> None:
    task = Regression(("y",), (0.0,), (1.0,))
    same = torch.zeros(3, 1)
    assert (task.scores(same, same)["r2"], task.scores(same, same)["skill"]) == (None, None)


@pytest.mark.parametrize(
    ("loss", "error", "expected"),
    [
        ("squared", 0.5, 0.25),
        ("squared", -3.0, 9.0),
        ("huber", 0.5, 0.25),
        ("huber", -3.0, 5.0),
        ("quantile", -2.0, 1.8),  # too low: 0.9 · 2
        ("quantile", 2.0, 0.2),
    ],
)
def test_losses_are_the_worked_numbers(loss: str, error: float, expected: float) -> None:
    task = Regression().under(RunSettings(loss=loss, quantile=0.9))
    assert task.losses(torch.tensor([[error]]), torch.zeros(1, 1)).item() == pytest.approx(expected)
    assert task.risk(torch.tensor([[error], [0.0]]), torch.zeros(2, 1)).item() == pytest.approx(
        expected / 2
    )
    weights = torch.tensor([3.0, 1.0])
    assert task.risk(
        torch.tensor([[error], [0.0]]), torch.zeros(2, 1), weights=weights
    ).item() == pytest.approx(0.75 * expected)


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_slopes_are_the_gradients_of_the_losses(loss: str) -> None:
    task = Regression(("a", "b")).under(RunSettings(loss=loss, quantile=0.3))
    outputs = torch.randn(6, 2, generator=torch.Generator().manual_seed(0)) * 2
    outputs.requires_grad_()
    labels = torch.zeros(6, 2)
    (slopes,) = torch.autograd.grad(task.losses(outputs, labels).sum(), outputs)
    assert torch.allclose(task.slopes(outputs, labels), slopes)


def test_the_fisher_information_is_that_of_a_gaussian() -> None:
    """E over y ~ N(z, 1) of (∇ log p)², by many draws."""
    task = Regression(("a", "b"))
    weight = torch.tensor([0.5, -1.5], requires_grad=True)
    x = torch.tensor([2.0, 3.0])
    outputs = (weight * x)[None]
    exact = sum(
        w[0] * torch.autograd.grad(a.sum(), weight, retain_graph=True)[0] ** 2
        for a, w in task.fisher_parts(outputs, task.blank(1), weighted=True)
    )
    draws = outputs.detach() + torch.randn(20000, 2, generator=torch.Generator().manual_seed(0))
    scores = (draws - outputs.detach()) * x
    assert torch.allclose(exact, scores.square().mean(dim=0), rtol=0.05)


def test_a_memory_is_balanced_over_quantiles_of_the_first_label() -> None:
    task, values = fitted()
    strata = task.strata(task.standardised(values))
    assert torch.bincount(strata).tolist() == [40] * 5
    assert task.strata(task.standardised(values * 1e6)).unique().tolist() == [4]


def test_targets_add_up_to_one_so_that_their_sums_count_rows() -> None:
    task, values = fitted(2)
    labels = task.standardised(values)
    targets = task.targets(labels)
    assert torch.equal(targets[:, :2], labels)
    assert targets.sum(dim=1).tolist() == pytest.approx([1.0] * 200, abs=1e-5)
    assert task.guess(targets.mean(dim=0)).tolist() == pytest.approx([0, 0], abs=1e-6)


def test_the_mean_of_all_sources_is_what_guessing_says() -> None:
    task, values = fitted()
    more = task.standardised(values[:50] * 2)
    both = np.concatenate([values, values[:50] * 2])
    after = task.after(more)
    assert after.values(torch.tensor([after.mean]))[0, 0] == pytest.approx(both.mean(), rel=1e-6)
    assert after.rows == 250


def test_the_state_is_plain_and_comes_back() -> None:
    task = fitted(2)[0].after(torch.ones(3, 2))
    assert restored_task(task.state_dict()) == task
    assert restored_task(None) == CLASSIFICATION
    assert restored_task(CLASSIFICATION.state_dict()) == CLASSIFICATION


@pytest.mark.parametrize(
    "edit",
    [{"scale": [0.0]}, {"scale": [1.0, 2.0]}, {"labels": []}, {"centre": ["x"]}, {"log": 1}],
)
def test_a_damaged_state_is_refused(edit: dict[str, object]) -> None:
    with pytest.raises(FormError):
        restored_task({**fitted()[0].state_dict(), **edit})


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        ([n / 7 for n in range(30)], "regression"),
        ([str(n / 7) for n in range(30)], "regression"),
        ([0.5, 1.0] * 20, "classification"),
        ([1.25, 2.5, 3.75, 9.5], "regression"),
        (list(range(0, 300, 10)) * 100, "regression"),
        (list(range(100)) * 60, "classification"),  # codes
        (list(range(21)), "regression"),
        ([0, 1] * 10, "classification"),
        (["high", "low"] * 10, "classification"),
        ([*[n / 7 for n in range(30)], None], "regression"),
    ],
)
def test_the_first_labels_decide(labels: list[object], task: str) -> None:
    import pandas as pd

    from farshore.data.tables.cells import as_texts

    facts = pd.DataFrame({"label": as_texts(pd.Series(labels, dtype=object))})
    assert decide(facts, LabelOptions(["y"])) == task
    assert decide(facts, LabelOptions(["y"], "regression")) == "regression"
    assert decide(facts, LabelOptions()) == "classification"  # folders name classes


def test_labels_in_memory_decide_too() -> None:
    train = np.arange(20)
    numbers = np.linspace(0, 1, 30)
    task = first_task(numbers, train, "auto", "the labels")
    assert isinstance(task, Regression)
    assert task.centre[0] == pytest.approx(numbers[:20].mean())
    assert first_task(np.arange(30) % 2, train, "auto", "x").classes == (0, 1)
    assert first_task(np.arange(30) % 2, train, "regression", "x").outputs == 1
    assert first_task(np.random.rand(30, 2), train, "auto", "x").outputs == 2


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([1.0, "high"], "row 1: the label 'high' is not a number"),
        ([1.0, math.inf], r"row 1: the label is \[inf\], not a finite number"),
        ([[1.0, 2.0]], "has 2 labels per row, and this learner has 1"),
    ],
)
def test_labels_that_are_no_numbers_are_refused(values: list[object], match: str) -> None:
    task = fitted()[0]
    with pytest.raises(FarshoreError, match=match):
        task.encoded(task.read(values, "domain 'a'"), domain="a")


def test_constant_labels_and_logarithms_of_nothing_are_refused() -> None:
    with pytest.raises(FarshoreError, match="label 'y' is 3 in all training rows"):
        Regression.fitted(np.full((5, 1), 3.0), ["y"])
    with pytest.raises(FarshoreError, match="--log-label needs labels above 0"):
        Regression.fitted(np.array([[0.0], [1.0]]), ["y"], log=True)


def test_class_weights_and_losses_belong_to_their_task() -> None:
    with pytest.raises(FarshoreError, match="class_weight = 'balanced' is for classes"):
        Regression().under(RunSettings(class_weight="balanced"))
    with pytest.raises(FarshoreError, match="loss = 'huber' is for a number as the label"):
        CLASSIFICATION.under(RunSettings(loss="huber"))


def test_errors_are_written_in_the_labels_unit_and_lower_is_better() -> None:
    mae = in_unit(METRICS["mae"], "kWh")
    assert [mae.text(value) for value in (123456.7, 12.3456, 0.00123456, 0.0)] == [
        "123457",
        "12.35",
        "0.001235",
        "0.000",
    ]
    assert mae.unit == " kWh"
    assert mae.better(1.0, 2.0)
    assert METRICS["r2"].better(0.5, 0.4)
    assert in_unit(METRICS["r2"], "kWh").unit == ""
    for name, words in (("rmse", MEAN_GUESS), ("r2", MEAN_GUESS), ("accuracy", CLASS_GUESS)):
        assert guess_words_of(METRICS[name]) is words
    assert is_guessing(0.04, 0)
    assert not is_guessing(0.06, 0)


def test_the_page_of_methods_names_those_for_numbers() -> None:
    from farshore.methods import fit_numbers

    section = (ROOT / "docs/methods.md").read_text().split("## Labels that are numbers\n")[1]
    assert f"and name them: {fit_numbers()}. Labels" in " ".join(section.split())
