"""The formulas of methods on labels that are numbers, against slower implementations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from torch import nn

from farshore.errors import FarshoreError
from farshore.invariance.gradient_variance import GradientVariance
from farshore.invariance.risk import Risk
from farshore.settings import RunSettings
from farshore.systems.closed_form.ridge import Solver
from farshore.systems.closed_form.sums import Adder, DomainSums
from farshore.systems.committee.mixing import (
    RESIDUAL,
    TEMPERATURES,
    mean_number,
    number_losses,
    possible_weights,
)
from farshore.systems.fitted import Examples
from farshore.systems.joint.entry import OF_NUMBERS, JointForest, JointLinear
from farshore.systems.trees.boosted import fit_sklearn
from farshore.systems.trees.entry import TreesSettings
from farshore.tasks.regression import Regression

TWO = Regression(("a", "b"), (0.0, 0.0), (1.0, 1.0), mean=(0.0, 0.0))


def rows(count: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4)) + 0.5
    y = np.stack([x[:, 0] - x[:, 1] ** 2, 3 * x[:, 2]], axis=1) + 0.1 * rng.normal(size=(count, 2))
    return x, y


def summed(*seeds: int) -> DomainSums:
    sums = DomainSums()
    for seed in seeds:
        x, y = (torch.from_numpy(each) for each in rows(seed=seed))
        adder = Adder(4, 3, "products", torch.float64, torch.device("cpu"))
        for inputs, labels in zip(x.split(50), y.split(50), strict=True):
            adder.add(inputs, TWO.targets(labels), None)
        sums[str(seed)] = adder.packed()
    return sums


def test_ridge_from_sums_is_that_of_scikit_learn() -> None:
    total = summed(0, 1).total()
    assert float(total.rows) == pytest.approx(240)
    found = Solver(total)
    head = found.head(0.1)
    x, y = (np.concatenate(each) for each in zip(rows(seed=0), rows(seed=1), strict=True))
    expected = Ridge(alpha=0.1 * float(found.unit)).fit(x, y)
    assert head.weight.T.numpy() == pytest.approx(expected.coef_)
    assert head.bias.numpy() == pytest.approx(expected.intercept_)


def test_the_error_of_generalised_cross_validation_is_the_formula() -> None:
    total = summed(0).total()
    found = Solver(total)
    x, y = rows()
    centred = x - x.mean(axis=0)
    shrink = 0.1 * float(found.unit) * np.eye(4)
    hat = centred @ np.linalg.solve(centred.T @ centred + shrink, centred.T) + 1 / len(x)
    residual = y - hat @ y
    expected = np.square(residual).sum() / len(x) / (1 - np.trace(hat) / len(x)) ** 2
    assert found.validated_error(0.1) == pytest.approx(expected)


def test_the_variance_of_head_gradients_is_that_of_each_row_by_autograd() -> None:
    notion = GradientVariance()
    notion.task = TWO
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(2, 6, 3, generator=generator)
    labels = torch.randn(2, 6, 2, generator=generator)
    classifier = nn.Linear(3, 2)
    found = notion.statistic(features, classifier(features), labels)["variance"]
    for domain in range(2):
        gradients = []
        for f, y in zip(features[domain], labels[domain], strict=True):
            loss = TWO.losses(classifier(f[None]), y[None]).sum()
            parts = torch.autograd.grad(loss, list(classifier.parameters()))
            gradients.append(torch.cat([part.flatten() for part in parts]))
        expected = torch.stack(gradients).var(dim=0, unbiased=False)
        assert torch.allclose(found[domain], expected, atol=1e-5)


def test_the_risks_of_vrex_are_the_mean_squares_of_each_domain() -> None:
    notion = Risk()
    notion.task = TWO
    outputs, labels = torch.randn(3, 5, 2), torch.randn(3, 5, 2)
    found = notion.statistic(outputs, outputs, labels)["risk"]
    assert torch.allclose(found, (outputs - labels).square().mean(dim=(1, 2)))


def test_the_loss_of_a_committee_is_the_gaussian_one_of_its_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randn(40, 2, generator=generator)
    outputs = [labels + s * torch.randn(40, 2, generator=generator) for s in (0.1, 0.5, 1.0)]
    shares = torch.full((40,), 1 / 40, dtype=torch.float64)
    found = number_losses(outputs, labels, [True] * 3, shares)
    weights = possible_weights(3)
    assert found.shape == (len(TEMPERATURES), len(weights))
    for t, w in ((0, 0), (3, 17), (10, 50)):
        mean = mean_number(outputs, [1.0] * 3, weights[w].float())
        normal = torch.distributions.Normal(mean, RESIDUAL * TEMPERATURES[t])
        constant = 0.5 * np.log(2 * np.pi)
        expected = float(-normal.log_prob(labels).mean()) - constant
        assert float(found[t, w]) == pytest.approx(expected, rel=1e-4)
    best = weights[int(found.min(dim=0).values.argmin())]
    assert best[0] > 0.8


def test_a_committee_without_a_member_measures_the_others() -> None:
    labels = torch.randn(10, 1)
    shares = torch.full((10,), 0.1, dtype=torch.float64)
    with_none = number_losses([labels, None], labels, [True, True], shares)
    weights = possible_weights(2)
    alone = int((weights[:, 0] == 1).nonzero()[0])
    assert torch.isfinite(with_none).all()
    sigma = RESIDUAL * torch.tensor(TEMPERATURES, dtype=torch.float64)
    assert torch.allclose(with_none[:, alone], sigma.log())


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_trees_of_numbers_give_the_numbers_of_scikit_learn(loss: str) -> None:
    x, y = rows()
    task = TWO.under(RunSettings(loss=loss, quantile=0.8))
    settings = TreesSettings(iterations=12, rows_per_leaf=5)
    found = fit_sklearn(settings, Examples(x, y, None, task, 3))
    for column in range(2):
        model = HistGradientBoostingRegressor(
            max_iter=12, min_samples_leaf=5, early_stopping=False, random_state=3,
            **task.boosting("sklearn"),
        ).fit(x, y[:, column])  # fmt: skip
        inputs = torch.from_numpy(x)
        assert found(inputs)[:, column].numpy() == pytest.approx(model.predict(x), abs=1e-5)
        own = found.logits(found.scores(inputs))
        assert torch.allclose(own, found(inputs), atol=1e-6)


def test_references_of_numbers_are_those_of_scikit_learn() -> None:
    x, y = rows()
    inputs = torch.from_numpy(x)
    linear = JointLinear.fit(Examples(x, y, None, TWO, 0))
    expected = LinearRegression().fit(x, y).predict(x)
    assert linear.logits(linear.scores(inputs)).numpy() == pytest.approx(expected, abs=1e-5)
    forest = JointForest.fit(Examples(x, y, None, TWO, 0))
    made = RandomForestRegressor(**OF_NUMBERS, max_samples=len(x), random_state=0)
    found = forest.logits(forest.scores(inputs))[:, 0].numpy()
    assert found == pytest.approx(made.fit(x, y[:, 0]).predict(x), abs=1e-5)


def test_a_committee_names_no_member_that_needs_classes() -> None:
    import farshore

    learner = farshore.Learner(method="auto", settings={"members": "er+slda"}, task="regression")
    with pytest.raises(FarshoreError, match="'slda' needs classes"):
        learner.learn(*rows(), domain="a", steps=1)
