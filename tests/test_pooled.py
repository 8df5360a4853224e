"""Ordinary models fitted to all sources at once: equal to scikit-learn's, and never ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from made_sites import Made, make_sites
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import farshore
from farshore.base.randomness import derive
from farshore.benchmarks import make_benchmark
from farshore.data.domain import Domain
from farshore.errors import FarshoreError, StateError
from farshore.methods import METHODS
from farshore.results.summary import paired, rank
from farshore.results.verdict import recommend
from farshore.runs.plan.comparison import make_comparison, plan_comparison
from farshore.runs.plan.select import POOLED, references
from farshore.runs.store.store import Store
from farshore.system import SYSTEMS
from farshore.tasks.classification import Classification
from farshore.testing import differences, toy_images

everyone = pytest.mark.parametrize("method", POOLED)


def domains(*, classes: int = 3, weighted: bool = False, rows: int = 150) -> list[Domain]:
    """Three domains of unequal size; class 1 of `classes` + 1 has no rows."""
    made = []
    for number, name in enumerate(("b", "c", "a")):
        draws = torch.Generator().manual_seed(number)
        inputs = torch.randn(rows + 40 * number, 4, generator=draws) * torch.tensor([1, 5, 0.1, 1])
        inputs[:, 3] = 2.0  # a constant column
        noise = torch.randn(len(inputs), generator=draws)
        labels = ((inputs[:, 0] + 0.5 * noise).abs() * 2).long() % classes
        weights = torch.rand(len(inputs), generator=draws) + 0.1 if weighted else None
        labels = torch.where(labels >= 1, labels + 1, labels)
        made.append(Domain.divided(name, inputs, labels, weights=weights))
    return made


def learned(method: str, given: list[Domain], classes: int = 4) -> farshore.Learner:
    learner = farshore.Learner(
        "mlp", method, classes=list(range(classes)), preprocess="none", seed=3
    )
    learner.learn_jointly(given, steps=1)
    return learner


def fitted(method: str, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> Any:
    """The same model as a user of scikit-learn would write it."""
    seed = derive(3, method) % 2**32
    if method == "joint-linear":
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return model.fit(rows, labels, logisticregression__sample_weight=weights)
    if method == "joint-forest":
        return RandomForestClassifier(random_state=seed).fit(rows, labels, sample_weight=weights)
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
    return model.fit(rows, labels, sample_weight=weights)


@everyone
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_probabilities_are_those_of_scikit_learn(
    method: str, classes: int, weighted: bool
) -> None:
    given = domains(classes=classes, weighted=weighted)
    parts = [each.split("train") for each in sorted(given, key=lambda each: each.name)]
    inputs, labels = (
        torch.cat([part.take(torch.arange(len(part)))[number] for part in parts]).numpy()
        for number in (0, 1)
    )
    own = [part.weights_at(torch.arange(len(part))) for part in parts]
    weights = torch.cat(own).double().numpy() if weighted else None  # type: ignore[arg-type]
    assert inputs.shape == (8 * (150 + 190 + 230) // 10, 4)
    # Without weights, scikit-learn scales by the same means; with them, by weighted ones.
    if method == "joint-linear" and weighted:
        model = LogisticRegression(max_iter=1000)
        mean, deviation = inputs.astype(float).mean(0), inputs.astype(float).std(0)
        deviation[3] = 1.0
        model.fit((inputs - mean) / deviation, labels, sample_weight=weights)
        expected = model.predict_proba((inputs - mean) / deviation)
    else:
        model = fitted(method, inputs.astype(float), labels, weights)
        expected = model.predict_proba(inputs.astype(float))
    if method == "joint-forest":  # a class in no leaf has half a vote of one tree
        expected = np.clip(expected, 1 / 200, None)
        expected /= expected.sum(axis=1, keepdims=True)
    learner = learned(method, given)
    chances = learner.logits(torch.from_numpy(inputs)).softmax(dim=1).numpy()
    present = [0, 2, 3][:classes]
    tolerance = 1e-4 if method == "joint-linear" else 1e-5
    np.testing.assert_allclose(chances[:, present], expected, atol=tolerance)
    assert chances[:, 1].max() < 1e-9  # no row has this class
    # The module that is frozen and exported gives the same.
    exported = learner.predictor()(torch.from_numpy(inputs)).softmax(dim=1).numpy()
    np.testing.assert_allclose(exported, chances, atol=1e-6)


@everyone
def test_the_order_of_the_domains_has_no_influence_and_the_seed_decides(method: str) -> None:
    given = domains()
    first, second = learned(method, given), learned(method, given[::-1])
    assert (
        differences(first.system.state_dict()["model"], second.system.state_dict()["model"]) == []
    )
    rows = given[0].inputs
    assert isinstance(rows, torch.Tensor)
    whole = first.logits(rows)
    assert torch.equal(torch.cat([first.logits(row[None]) for row in rows]), whole)


def test_a_forest_draws_a_bounded_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    free = learned("joint-forest", domains()).system.usage().method_bytes
    monkeypatch.setattr("farshore.systems.joint.entry.ROWS_PER_TREE", 40)
    assert learned("joint-forest", domains()).system.usage().method_bytes < free / 2


@everyone
def test_one_class_alone_is_always_predicted(method: str) -> None:
    given = [Domain.divided("a", torch.randn(10, 2), torch.ones(10, dtype=torch.long))]
    chances = learned(method, given, classes=3).logits(torch.randn(5, 2)).softmax(dim=1)
    assert chances[:, 1].min() > 0.999


@everyone
def test_it_is_saved_as_arrays_and_a_damaged_one_is_refused(method: str, tmp_path: Path) -> None:
    learner = learned(method, domains())
    learner.save(tmp_path)
    loaded = farshore.load(tmp_path)
    assert differences(learner.state_dict(), loaded.state_dict()) == []
    rows = torch.randn(20, 4)
    assert torch.equal(learner.logits(rows), loaded.logits(rows))
    state = learner.system.state_dict()
    setup = learner._setup(((4,), torch.float32), Classification((0, 1, 2, 3)))
    system = SYSTEMS.get(METHODS.get(method).system)
    system.check_state(setup, state)
    for name, value in state["model"].items():
        wrong = torch.full_like(value, 99) if isinstance(value, torch.Tensor) else -1
        if name in ("threshold", "value", "weight", "bias", "baseline"):
            wrong = wrong.float()  # another type
        with pytest.raises(StateError, match="cannot be used"):
            system.check_state(setup, {**state, "model": {**state["model"], name: wrong}})


@everyone
def test_images_and_single_domains_are_refused(method: str) -> None:
    learner = farshore.Learner("cnn", method, classes=[0, 1])
    with pytest.raises(FarshoreError, match="learns from tables"):
        learner.learn_jointly([Domain.divided("a", *toy_images(0))], steps=1)
    with pytest.raises(FarshoreError, match="learns all its domains at once"):
        farshore.Learner("mlp", method).learn(np.zeros((4, 2)), [0, 1, 0, 1])


def test_every_comparison_of_tables_has_them_once_and_images_do_not(tmp_path: Path) -> None:
    frame = make_sites(Made(sites=4, rows=24), seed=1)
    done = farshore.compare(
        frame, domain="site", label="ill", seeds=1, steps=1, orders=["listed", "reversed"],
        runs=tmp_path,
    )  # fmt: skip
    runs = done.frame
    for method in POOLED:
        of_method = runs[runs["method"] == method]
        assert of_method["target"].is_unique  # one run for both orders
        assert of_method["score"].notna().all()
    table = done.table.set_index("method")
    assert set(POOLED) | {"majority"} <= set(table.index)
    assert table.loc[list(POOLED), "rank"].isna().all()
    found = paired(runs, "joint-forest", "er")
    assert found is not None
    assert found.runs == 2 * len(set(runs["target"]))  # paired with both orders
    # Never recommended, however far ahead.
    ahead = runs.assign(score=runs["score"].where(runs["method"] != "joint-forest", 1.0))
    chosen = recommend(ahead)
    assert chosen is None or chosen.method not in POOLED
    assert rank(ahead).find("joint-forest").rank is None  # type: ignore[union-attr]
    assert references(make_benchmark("rotated-digits", {})) == ["majority"]


@everyone
def test_a_target_of_noise_changes_nothing_in_a_table(method: str, tmp_path: Path) -> None:
    """Columns, some with gaps and texts, are encoded without the target, and models fitted."""
    frame = make_sites(Made(sites=4, rows=30), seed=2)
    draws = np.random.default_rng(0)
    frame["colour"] = draws.choice(["red", "green", None], len(frame))
    frame["gaps"] = np.where(draws.random(len(frame)) < 0.3, np.nan, draws.normal(size=len(frame)))
    target = sorted(set(frame["site"]))[-1]
    noise, own = frame.copy(), frame["site"] == target
    for column in frame.columns.drop(["site", "ill", "colour"]):
        noise.loc[own, column] = 100 * draws.normal(size=int(own.sum()))
    noise.loc[own, "colour"] = "violet"
    weights = []
    for number, each in enumerate((frame, noise)):
        each.to_csv(tmp_path / f"{number}.csv", index=False)
        options = {"path": str(tmp_path / f"{number}.csv"), "domain": "site", "label": "ill"}
        run = farshore.Run.build(benchmark="table", options=options, method=method, target=target)
        result = farshore.execute(run)
        assert result.target is not None
        weights.append((result.target.weights, result.matrices))
    assert weights[0] == weights[1]


def test_a_plan_has_one_run_for_all_orders(tmp_path: Path) -> None:
    asked = make_comparison(
        {"benchmark": "heart-hospitals"}, ["er", *POOLED], seeds=[0, 1], orders=["all"]
    )
    plan = plan_comparison(asked, Store(tmp_path), record=False)
    counts = pd.Series([planned.run.method for planned in plan.runs]).value_counts()
    assert counts.to_dict() == {"er": 12, **dict.fromkeys(POOLED, 2)}
