"""The scikit-learn estimator: scikit-learn's checks, pipelines and searches with routed domains."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from farshore import FarshoreClassifier, Learner
from farshore.testing import differences

SMALL = {"settings": {"batch_size": 32, "learning_rate": 0.01}, "network_settings": {"width": 16}}


@parametrize_with_checks([FarshoreClassifier(steps=60, memory=50, **SMALL)])
def test_scikit_learns_checks(estimator, check) -> None:
    check(estimator)


@pytest.fixture
def sites(blobs):
    parts = [blobs(number, rows=40) for number in range(3)]
    x = np.concatenate([part[0].numpy() for part in parts])
    y = np.array(["no", "yes"])[np.concatenate([part[1].numpy() for part in parts])]
    return x, y, np.repeat(["a", "b", "c"], 40)


def test_fit_learns_the_domains_in_turn_as_a_learner_does(sites) -> None:
    x, y, names = sites
    classifier = FarshoreClassifier(steps=20, memory=30, **SMALL).fit(x, y, domain=names)
    assert classifier.domains_ == ["a", "b", "c"]
    straight = Learner("mlp", "er", 30, classes=[0, 1], **SMALL)
    for name in "abc":
        scores = straight.learn(
            x[names == name], (y[names == name] == "yes").astype(int), domain=name, steps=20
        )
        assert classifier.scores_[name] == scores
    assert differences(straight.state_dict(), classifier.learner_.state_dict()) == []
    step = FarshoreClassifier(steps=20, memory=30, **SMALL)
    for name in "abc":
        step.partial_fit(x[names == name], y[names == name], classes=["no", "yes"], domain=name)
    assert differences(straight.state_dict(), step.learner_.state_dict()) == []
    assert classifier.score(x, y) > 0.9
    reordered = FarshoreClassifier(steps=5, memory=30, domain_order=["c", "a", "b"], **SMALL).fit(
        x, y, domain=names
    )
    assert reordered.domains_ == ["c", "a", "b"]


def test_a_copy_continues_bit_for_bit(sites) -> None:
    x, y, _ = sites
    first = FarshoreClassifier(steps=5, memory=30, **SMALL).partial_fit(x[:40], y[:40])
    copy = pickle.loads(pickle.dumps(first))
    for classifier in (first, copy):
        classifier.partial_fit(x[40:80], y[40:80])
    assert differences(first.learner_.state_dict(), copy.learner_.state_dict()) == []
    assert not hasattr(clone(first), "learner_")


def test_pipeline_and_search_with_routed_domains(sites) -> None:
    x, y, names = sites
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = FarshoreClassifier(steps=10, memory=30, **SMALL).set_fit_request(domain=True)
        pipeline = make_pipeline(StandardScaler(), classifier)
        pipeline.fit(x, y, domain=names)
        assert pipeline[-1].domains_ == ["a", "b", "c"]
        search = GridSearchCV(
            pipeline, {"farshoreclassifier__method": ["er", "finetune"]}, cv=2, error_score="raise"
        )
        search.fit(x, y, domain=names)
        assert search.best_estimator_[-1].domains_ == ["a", "b", "c"]


def test_refusals_are_value_errors(sites) -> None:
    x, y, names = sites
    with pytest.raises(ValueError, match="did you mean 'er'"):
        FarshoreClassifier(method="err").fit(x, y)
    with pytest.raises(ValueError, match="does not name the domain 'b'"):
        FarshoreClassifier(domain_order=["a"]).fit(x, y, domain=names)
    with pytest.raises(ValueError, match="rows"):
        FarshoreClassifier().fit(x, y, domain=names[:-1])
    classifier = FarshoreClassifier(steps=2, memory=10, **SMALL).partial_fit(x[:40], y[:40])
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
