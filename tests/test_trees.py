"""Boosted trees: equal to scikit-learn's, saved as arrays, learned domain by domain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import sklearn
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

import farshore
from farshore import Run, execute
from farshore.data.domain import Domain
from farshore.deployment.export import export_model
from farshore.errors import FarshoreError, StateError
from farshore.systems.fitted import ABSENT, Examples
from farshore.systems.trees.boosted import fit_lightgbm, fit_sklearn
from farshore.systems.trees.ensemble import constant, from_parts, from_sklearn
from farshore.systems.trees.entry import TreesSettings
from farshore.tasks.classification import Classification
from farshore.testing import check_method, differences, toy_images, toy_rows

SETTINGS = {"iterations": 12, "rows_per_leaf": 2}


def learned(domains: int = 3, **options: Any) -> farshore.Learner:
    learner = farshore.Learner(
        method="trees", memory=12, settings=SETTINGS, **options, preprocess="none"
    )
    for number in range(domains):
        learner.learn(*toy_rows(number), domain=f"d{number}")
    return learner


@pytest.mark.parametrize("classes", [2, 4])
def test_the_module_gives_the_scores_of_scikit_learn(classes: int) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(400, 5)).astype(np.float32)
    labels = (np.abs(inputs[:, 0] + inputs[:, 1] ** 2) * 2).astype(int) % classes
    model = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=7).fit(inputs, labels)
    ensemble = from_sklearn([model], classes)
    others = rng.normal(size=(200, 5)).astype(np.float32) * 2
    logits = ensemble(torch.from_numpy(others)).double()
    expected = model.predict_proba(others.astype(np.float64))
    assert torch.allclose(logits.softmax(dim=1), torch.from_numpy(expected), atol=1e-6)
    # A value that equals a threshold goes left, as in scikit-learn.
    at_threshold = others.copy()
    node = int(ensemble.root[0])
    at_threshold[:, int(ensemble.feature[node])] = np.float32(ensemble.threshold[node])
    expected = model.predict_proba(at_threshold.astype(np.float64))
    probabilities = ensemble(torch.from_numpy(at_threshold)).double().softmax(dim=1)
    assert torch.allclose(probabilities, torch.from_numpy(expected), atol=1e-6)
    # The fast way gives the same bits as scikit-learn, however many rows come at once.
    rows = torch.from_numpy(at_threshold)
    sums = torch.from_numpy(model.decision_function(at_threshold.astype(np.float64)))
    assert torch.equal(ensemble.scores(rows), sums.reshape(len(rows), -1))
    assert torch.equal(
        torch.cat([ensemble.scores(row[None]) for row in rows]), ensemble.scores(rows)
    )
    assert ensemble.scores(rows[:0]).shape == (0, ensemble.baseline.shape[0])
    # It takes the paths of the module, with missing values to the right.
    rows[::3, 1] = torch.nan
    assert torch.allclose(ensemble.logits(ensemble.scores(rows)), ensemble(rows), atol=1e-6)
    single = constant(1, 3)
    assert torch.equal(single.scores(rows), single.baseline.expand(len(rows), 2))


@pytest.mark.parametrize("classes", [2, 4])
def test_lightgbm_gives_its_own_scores(classes: int) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(400, 5))
    labels = (np.abs(inputs[:, 0] + inputs[:, 1] ** 2) * 2).astype(int) % classes
    settings = TreesSettings(iterations=12, leaves=7, library="lightgbm")
    # Class 1 of all has no rows: its column stays empty.
    named = np.where(labels >= 1, labels + 1, labels)
    task = Classification((*range(classes + 1),))
    ensemble = fit_lightgbm(settings, Examples(inputs, named, None, task, 3))
    own = lightgbm.LGBMClassifier(
        n_estimators=12, num_leaves=7, min_child_samples=20, random_state=3, verbosity=-1,
        deterministic=True, force_row_wise=True, n_jobs=1,
    ).fit(inputs, labels)  # fmt: skip
    others = torch.from_numpy(rng.normal(size=(200, 5)) * 2)
    chances = ensemble(others).double().softmax(dim=1)
    expected = torch.from_numpy(own.predict_proba(others.numpy()))
    columns = [column for column in range(classes + 1) if column != 1]
    assert torch.allclose(chances[:, columns], expected, atol=1e-5)
    assert torch.allclose(ensemble.logits(ensemble.scores(others)), ensemble(others), atol=1e-6)
    restored = from_parts(ensemble.parts(), 5, classes + 1)
    assert torch.equal(restored(others), ensemble(others))


def test_lightgbm_learns_and_is_named_where_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    settings = {**SETTINGS, "library": "lightgbm"}
    rows = toy_rows(0)
    learner = farshore.Learner(method="trees", memory=12, settings=settings, preprocess="none")
    learner.learn(*rows, domain="a")
    assert float((torch.as_tensor(learner.predict(rows[0])) == rows[1]).float().mean()) > 0.8
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    other = farshore.Learner(method="trees", memory=12, settings=settings, preprocess="none")
    with pytest.raises(FarshoreError, match=r"pip install '\.\[trees\]'"):
        other.learn(*rows, domain="a")


def test_classes_without_rows_get_no_probability() -> None:
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(100, 3)).astype(np.float32), rng.integers(0, 2, 100) * 2 + 1
    model = HistGradientBoostingClassifier(max_iter=3).fit(inputs, labels)
    logits = from_sklearn([model], 5)(torch.from_numpy(inputs))
    assert (logits[:, [0, 2, 4]] == ABSENT).all()
    assert logits.softmax(dim=1)[:, [0, 2, 4]].max() < 1e-10


def test_domain_by_domain_with_a_memory(tmp_path: Path) -> None:
    learner = learned()
    assert [len(rows["labels"]) for rows in learner.system.kept_rows().values()] == [4, 4, 4]
    learner.save(tmp_path)
    loaded = farshore.load(tmp_path)
    assert differences(learner.state_dict(), loaded.state_dict()) == []
    inputs = toy_rows(1)[0]
    assert np.array_equal(learner.predict_proba(inputs), loaded.predict_proba(inputs))
    for each in (learner, loaded):
        each.learn(*toy_rows(4), domain="d4")
    assert differences(learner.state_dict(), loaded.state_dict()) == []
    loaded.forget("d1")
    assert list(loaded.system.kept_rows()) == ["d0", "d2", "d4"]
    assert not list(tmp_path.glob("*.pkl"))


def test_past_domains_count_as_much_as_the_new_one() -> None:
    """A rule that changes: with equal weights the few kept rows still decide half of the votes."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(400, 1)).astype(np.float32))
    first = torch.cat([x, torch.zeros(400, 1)], dim=1)
    second = torch.cat([x, torch.ones(400, 1)], dim=1)
    label = (x[:, 0] > 0).long()
    scores = {}
    for domains in ("equal", "rows"):
        learner = farshore.Learner(
            method="trees",
            memory=10,
            settings={"iterations": 5, "leaves": 2, "domains": domains},
            preprocess="none",
        )
        learner.learn(first, label, domain="a")
        learner.learn(second, 1 - label, domain="b")
        scores[domains] = float((learner.predict(first) == label.numpy()).mean())
    assert scores["equal"] > scores["rows"]


def test_a_run_and_its_seal() -> None:
    result = execute(Run.build(benchmark="heart-hospitals", method="trees", settings=SETTINGS))
    assert result.target is not None
    assert result.target_score is not None
    assert result.target_score > 0.6
    assert result.memory_items > 0


def test_it_passes_the_battery() -> None:
    check_method("trees")


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_it_is_exported_and_gives_the_same_probabilities(tmp_path: Path, suffix: str) -> None:
    learner = learned()
    file = tmp_path / f"trees{suffix}"
    export_model(learner, file)
    inputs = torch.as_tensor(toy_rows(2)[0]).float()
    if suffix == ".onnx":
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        (exported,) = session.run(["probabilities"], {name: inputs.numpy()})
    else:
        exported = torch.export.load(str(file)).module()(inputs).numpy()
    assert np.abs(exported - learner.predict_proba(inputs)).max() < 1e-6


def test_images_are_refused() -> None:
    learner = farshore.Learner(method="trees", network="cnn", preprocess="none")
    inputs, labels = toy_images(0)
    with pytest.raises(FarshoreError, match="trees learn from tables"):
        learner.learn(inputs, labels)


def test_one_class_in_the_rows_is_learned() -> None:
    learner = farshore.Learner(
        method="trees", classes=["a", "b", "c"], settings=SETTINGS, preprocess="none"
    )
    domain = Domain.divided("one", torch.randn(20, 3), torch.full((20,), 2), seed=0)
    learner.learn_domain(domain, steps=1)
    assert set(learner.predict(torch.randn(5, 3))) == {"c"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda part: part + 10_000),
        ("left", torch.zeros_like),  # back to the root: the path would never end
        ("right", lambda part: part.flip(0)),
        ("feature", lambda part: part + 100),
        ("root", lambda part: part - 1),
        ("root", lambda part: part + (part > 0)),  # the last node of one tree in the next
        ("value", lambda part: part.float()),
        ("threshold", lambda part: part[:-1]),
        ("columns", lambda part: torch.zeros_like(part)),
        ("depth", lambda part: 10**9),
        ("baseline", lambda part: "x"),
    ],
)
def test_damaged_trees_are_refused(name: str, change: Any) -> None:
    state = learned(1).state_dict()
    parts = state["system"]["trees"]
    parts[name] = change(parts[name])
    fresh = farshore.Learner(**state["config"])
    with pytest.raises(StateError, match="saved trees"):
        fresh.load_state_dict(state)
    with pytest.raises(ValueError, match="trees"):
        from_parts(parts, 2, 2)


@pytest.mark.parametrize("kind", ["distinct", "ties", "no weight", "one value"])
def test_columns_in_bins_give_the_trees_of_scikit_learn(kind: str) -> None:
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("before 1.8 scikit-learn did not weigh the rows of a percentile")
    rng = np.random.default_rng(0)
    inputs, weights = rng.normal(size=(900, 4)), np.repeat([0.2, 1.0, 2.5], 300)
    if kind == "ties":
        inputs = np.round(np.exp(2 * inputs), 1)
    if kind == "no weight":
        weights[::7] = 0
    if kind == "one value":
        inputs[:, 1] = 3.0
    score = inputs[:, 0] - inputs[:, 2] + rng.normal(size=900)
    labels = np.digitize(score, [-0.5, 0.5])
    settings = TreesSettings(iterations=15, rows_per_leaf=5)
    examples = Examples(inputs, labels, weights, Classification((0, 1, 2)), 1)
    own = fit_sklearn(settings, examples)
    plain = HistGradientBoostingClassifier(
        max_iter=15, min_samples_leaf=5, early_stopping=False, random_state=1
    ).fit(inputs, labels, sample_weight=weights)
    for name, part in from_sklearn([plain], 3).parts().items():
        assert torch.equal(torch.as_tensor(part), torch.as_tensor(own.parts()[name])), name
