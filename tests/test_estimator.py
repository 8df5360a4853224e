"""The scikit-learn estimator: scikit-learn's checks, pipelines and searches with routed domains."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numbered import table
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from farshore import FarshoreClassifier, FarshoreRegressor, Learner
from farshore.errors import FarshoreError
from farshore.networks.build import as_network
from farshore.testing import differences

SMALL = {"settings": {"batch_size": 32, "learning_rate": 0.01}, "network_settings": {"width": 16}}


def beyond(estimator: FarshoreClassifier | FarshoreRegressor) -> dict[str, str]:
    """Checks that training in random batches, or a closed form in float32, cannot pass."""
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    if estimator.network is None:
        return {
            **dict.fromkeys(names, "which rows are held out depends on how often one is given"),
            "check_class_weight_classifiers": "slda takes all classes as equally frequent already",
            "check_methods_subset_invariance": "sums over a batch are rounded to 1e-6",
        }
    why = "a weight of 2 is a row given twice in the loss, but not in the random batches"
    return dict.fromkeys(names, why)


@parametrize_with_checks(
    [FarshoreClassifier("mlp", steps=60, memory=50, **SMALL), FarshoreClassifier()],
    expected_failed_checks=beyond,
)
def test_scikit_learns_checks(estimator, check) -> None:
    check(estimator)


@parametrize_with_checks(
    [FarshoreRegressor("mlp", steps=60, memory=50, **SMALL), FarshoreRegressor()],
    expected_failed_checks=beyond,
)
def test_scikit_learns_checks_of_regressors(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("as_frame", [True, False], ids=["frame", "array"])
def test_a_regressor_learns_the_domains_in_turn_as_a_learner_does(as_frame) -> None:
    rows = table(40)
    x = rows[["x", "z"]] if as_frame else rows[["x", "z"]].to_numpy()
    y, names = rows["y"].to_numpy(), rows["site"].to_numpy()
    model = FarshoreRegressor("mlp", steps=20, memory=30, **SMALL).fit(x, y, domain=names)
    straight = Learner("mlp", "er", 30, task="regression", **SMALL)
    step = FarshoreRegressor("mlp", steps=20, memory=30, **SMALL)
    for name in "abcd":
        straight.learn(x[names == name], y[names == name], domain=name, steps=20)
        step.partial_fit(x[names == name], y[names == name], domain=name)
    for other in (straight, step.learner_):
        assert differences(other.state_dict(), model.learner_.state_dict()) == []
    copied = pickle.loads(pickle.dumps(model))
    assert (copied.predict(x) == model.predict(x)).all()
    assert model.domains_ == list("abcd")
    linear = FarshoreRegressor(method="ridge").fit(x, y, domain=names)
    assert linear.score(x, y) > 0.99
    with pytest.raises(ValueError, match="needs classes"):
        FarshoreRegressor(method="er-ace").fit(x, y)


@pytest.fixture
def sites(blobs):
    parts = [blobs(number, rows=40) for number in range(3)]
    x = np.concatenate([part[0].numpy() for part in parts])
    y = np.array(["no", "yes"])[np.concatenate([part[1].numpy() for part in parts])]
    return x, y, np.repeat(["a", "b", "c"], 40)


def test_fit_learns_the_domains_in_turn_as_a_learner_does(sites) -> None:
    x, y, names = sites
    classifier = FarshoreClassifier("mlp", steps=20, memory=30, **SMALL).fit(x, y, domain=names)
    assert classifier.domains_ == ["a", "b", "c"]
    straight = Learner("mlp", "er", 30, classes=[0, 1], **SMALL)
    for name in "abc":
        scores = straight.learn(
            x[names == name], (y[names == name] == "yes").astype(int), domain=name, steps=20
        )
        assert classifier.scores_[name] == scores
    assert differences(straight.state_dict(), classifier.learner_.state_dict()) == []
    step = FarshoreClassifier("mlp", steps=20, memory=30, **SMALL)
    for name in "abc":
        step.partial_fit(x[names == name], y[names == name], classes=["no", "yes"], domain=name)
    assert differences(straight.state_dict(), step.learner_.state_dict()) == []
    assert classifier.score(x, y) > 0.9
    reordered = FarshoreClassifier(
        "mlp", steps=5, memory=30, domain_order=["c", "a", "b"], **SMALL
    ).fit(x, y, domain=names)
    assert reordered.domains_ == ["c", "a", "b"]


def test_a_copy_continues_bit_for_bit(sites) -> None:
    x, y, _ = sites
    first = FarshoreClassifier("mlp", steps=5, memory=30, **SMALL).partial_fit(x[:40], y[:40])
    copy = pickle.loads(pickle.dumps(first))
    for classifier in (first, copy):
        classifier.partial_fit(x[40:80], y[40:80])
    assert differences(first.learner_.state_dict(), copy.learner_.state_dict()) == []
    assert not hasattr(clone(first), "learner_")


def test_pipeline_and_search_with_routed_domains(sites) -> None:
    x, y, names = sites
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = FarshoreClassifier("mlp", steps=10, memory=30, **SMALL).set_fit_request(
            domain=True
        )
        pipeline = make_pipeline(StandardScaler(), classifier)
        pipeline.fit(x, y, domain=names)
        assert pipeline[-1].domains_ == ["a", "b", "c"]
        search = GridSearchCV(
            pipeline, {"farshoreclassifier__method": ["er", "finetune"]}, cv=2, error_score="raise"
        )
        search.fit(x, y, domain=names, groups=names)
        assert search.best_estimator_[-1].domains_ == ["a", "b", "c"]


def test_groups_without_domains_warn(sites) -> None:
    x, y, names = sites
    classifier = FarshoreClassifier(steps=2, method="finetune", **SMALL)
    with pytest.warns(UserWarning, match="give domain=groups, too"):
        classifier.fit(x, y, groups=names)
    with sklearn.config_context(enable_metadata_routing=True), pytest.warns(match="domain=groups"):
        cross_validate(classifier, x, y, params={"groups": names}, cv=LeaveOneGroupOut())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classifier.fit(x, y, domain=names, groups=names).domains_ == ["a", "b", "c"]


def test_refusals_are_value_errors(sites) -> None:
    x, y, names = sites
    with pytest.raises(ValueError, match="did you mean 'er'"):
        FarshoreClassifier(method="err").fit(x, y)
    with pytest.raises(ValueError, match="does not name the domain 'b'"):
        FarshoreClassifier(domain_order=["a"]).fit(x, y, domain=names)
    with pytest.raises(ValueError, match="rows"):
        FarshoreClassifier().fit(x, y, domain=names[:-1])
    classifier = FarshoreClassifier("mlp", steps=2, memory=10, **SMALL).partial_fit(x[:40], y[:40])
    with pytest.raises(ValueError, match="which the first call did not name"):
        classifier.partial_fit(x[40:80], np.where(y[40:80] == "no", "no", "new"))
    with pytest.raises(ValueError, match="one domain at a time"):
        classifier.partial_fit(x, y, domain=names)


def test_images_on_a_backbone() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    x = (rng.integers(0, 90, (20, 3, 16, 16)) + 120 * y[:, None, None, None]).astype(np.uint8)
    model = FarshoreClassifier("histogram", "ncm", steps=1).fit(x, y, domain=["a", "b"] * 10)
    assert (model.predict(x) == y).all()


def test_weights_of_rows_and_classes_are_those_of_a_learner(sites) -> None:
    x, y, names = sites
    weights = np.where(np.arange(len(y)) % 3 == 0, 3.0, 1.0)
    classifier = FarshoreClassifier("mlp", steps=10, class_weight="balanced", **SMALL)
    classifier.fit(x, y, domain=names, sample_weight=weights)
    settings = {**SMALL["settings"], "class_weight": "balanced"}
    straight = Learner(
        "mlp", "er", classes=[0, 1], settings=settings, network_settings={"width": 16}
    )
    for name in "abc":
        own = names == name
        labels = (y[own] == "yes").astype(int)
        straight.learn(x[own], labels, domain=name, steps=10, weights=weights[own])
    assert differences(straight.state_dict(), classifier.learner_.state_dict()) == []
    even = FarshoreClassifier("mlp", steps=10, **SMALL).fit(
        x, y, sample_weight=np.full(len(y), 2.0)
    )
    plain = FarshoreClassifier("mlp", steps=10, **SMALL).fit(x, y)
    assert differences(even.learner_.state_dict(), plain.learner_.state_dict()) == []
    with pytest.raises(ValueError, match="sample_weight has 2 numbers"):
        plain.fit(x, y, sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="class_weight"):
        FarshoreClassifier(class_weight="heavy").fit(x, y)


def test_a_polars_frame_with_text_is_read_like_a_pandas_frame() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    draws = np.random.default_rng(0)
    columns = {"x": draws.normal(size=60), "colour": draws.choice(["red", "blue"], 60)}
    y = (columns["x"] > 0).astype(int)
    frames = pd.DataFrame(columns), polars.DataFrame(columns)
    fitted = [FarshoreClassifier("mlp", steps=5, **SMALL).fit(frame, y) for frame in frames]
    assert np.array_equal(fitted[0].predict_proba(frames[0]), fitted[1].predict_proba(frames[1]))


def test_a_sequential_network_is_split_at_its_last_linear_layer(sites) -> None:
    x, y, names = sites
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(x.shape[1], 8), nn.ReLU(), nn.Linear(8, 2))
    weights = layers[2].weight.detach().clone()
    network = as_network(layers)
    assert torch.equal(network.classifier.weight, weights)
    inputs = torch.from_numpy(x[:5]).float()
    assert torch.equal(network(inputs), layers(inputs))
    nested = as_network(nn.Sequential(nn.Flatten(), nn.Sequential(*layers)))
    assert torch.equal(nested(inputs), layers(inputs))
    fitted = FarshoreClassifier(nn.Sequential(*layers), steps=5, settings=SMALL["settings"])
    assert fitted.fit(x, y, domain=names).predict_proba(x).shape == (len(x), 2)
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copied.predict_proba(x), fitted.predict_proba(x))
    for wrong in (nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()), 3):
        with pytest.raises(FarshoreError, match="Sequential whose last layer is linear"):
            as_network(wrong)
