"""A learner's network in parts, the form of its saved state, and rows that become inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from farshore.base.forms import FormError
from farshore.data.domain import Domain, RowForm
from farshore.errors import FarshoreError
from farshore.learner.backbone import Backbone
from farshore.learner.conversion import Conversion
from farshore.learner.learner import Learner
from farshore.learner.learner_state import CONFIG, FROZEN, STATE, TASK
from farshore.learner.loading import from_state_dict
from farshore.networks.build import build_network
from farshore.networks.form import Settled
from farshore.networks.freezing import Train
from farshore.networks.network import Network
from farshore.observer import Observer
from farshore.settings import RunSettings

FORM: RowForm = (6,), torch.float32
PARTS: tuple[Train, ...] = ("head", "last-block", "all")


class Staged(Network):
    """A network that can be divided ahead of its last layer."""

    def stages(self) -> tuple[nn.Module, nn.Module]:
        layers = self.features
        assert isinstance(layers, nn.Sequential)
        return layers[:2], layers[2:]


def network(kind: type[Network] = Staged) -> Network:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3), nn.Tanh())
    return kind(layers, nn.Linear(3, 2))


def backbone(train: Train, kind: type[Network] = Staged, **run: Any) -> Backbone:
    return Backbone(
        network(kind),
        {},
        train,
        run=RunSettings(train=train, **run),
        seed=0,
        device=torch.device("cpu"),
        observer=Observer(),
    )


def rows(count: int = 10) -> Tensor:
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(1))


def domain(inputs: Tensor | None = None) -> Domain:
    inputs = rows() if inputs is None else inputs
    return Domain.divided("a", inputs, torch.arange(len(inputs)) % 2)


@pytest.mark.parametrize("train", PARTS)
def test_the_frozen_and_the_trained_part_are_the_network(train: Train) -> None:
    divided = backbone(train)
    features = divided.prepared(domain()).inputs
    assert isinstance(features, Tensor)
    assert torch.equal(features, divided.inside(rows()))
    assert (tuple(features.shape[1:]), features.dtype) == divided.inside_form(FORM)
    trained = divided.trained(FORM, 2)
    assert trained.shape == tuple(features.shape[1:])
    made = build_network(trained.network, trained.shape, 2, trained.settings).eval()
    if train == "head":  # the classifier is a new one, on the features of the given network
        assert trained.network == "head"
        assert torch.allclose(features, network().eval().features(rows()))
    else:
        assert torch.allclose(made(features), network().eval()(rows()))
    assert (divided.frozen is None) == (train == "all")


def test_a_part_that_cannot_run_alone_is_frozen_inside_the_network() -> None:
    divided = backbone("last-block", Network)
    assert divided.prepared(domain()).inputs.shape[1:] == (6,)
    assert (divided.frozen, divided.form) == (None, FORM)
    rest = divided.trained(FORM, 2).network
    assert isinstance(rest, Network)
    trained = sum(value.numel() for value in rest.parameters())
    assert 0 < trained < sum(value.numel() for value in network().parameters())


@pytest.mark.parametrize("train", PARTS)
def test_the_given_network_is_never_changed(train: Train) -> None:
    divided = backbone(train)
    divided.prepared(domain())
    divided.trained(FORM, 2)
    given = divided.network
    assert isinstance(given, Network)
    assert all(value.requires_grad for value in given.parameters())
    for name, value in network().state_dict().items():
        assert torch.equal(given.state_dict()[name], value)


def test_the_first_domain_determines_the_form() -> None:
    divided = backbone("head")
    divided.prepared(domain())
    for other, started in (
        (torch.zeros(4, 5), r"rows of shape \[5\], but .* \[6\]"),
        (torch.zeros(4, 6, dtype=torch.uint8), r"torch.uint8 values, but .* torch.float32"),
    ):
        with pytest.raises(FarshoreError, match=started):
            divided.prepared(domain(other))


def frozen_state() -> dict[str, Tensor]:
    saved = backbone("head")
    saved.prepared(domain())
    assert saved.frozen is not None
    return dict(saved.frozen.state_dict())


def test_a_restored_part_gives_the_same_features() -> None:
    stored = {name: value.clone() for name, value in frozen_state().items()}
    stored["features.0.bias"] += 1
    restored = backbone("head")
    restored.restore(stored, FORM)
    assert restored.form == FORM
    with torch.no_grad():
        expected = network().eval()
        expected.features[0].bias += 1
        assert torch.allclose(restored.inside(rows()), expected.features(rows()))


@pytest.mark.parametrize(
    ("train", "kind", "edit", "message"),
    [
        ("all", Staged, dict, "all of the network is trained"),
        ("last-block", Network, dict, "this network has none"),
        ("head", Staged, lambda state: None, "frozen"),
        ("last-block", Staged, dict, "frozen"),
        ("head", Staged, lambda state: {**state, "features.0.bias": torch.ones(9)}, "bias"),
        ("head", Staged, lambda state: {**state, "features.0.bias": torch.ones(4) / 0}, "bias"),
        ("head", Staged, lambda state: {**state, "more": torch.ones(1)}, "more"),
    ],
)
def test_a_stored_part_that_does_not_fit_is_refused(
    train: Train, kind: type[Network], edit: Callable[[dict[str, Tensor]], Any], message: str
) -> None:
    restored = backbone(train, kind)
    with pytest.raises(FormError, match=message):
        restored.restore(edit(frozen_state()), FORM)
    assert restored.frozen is None


def test_the_declared_form_is_what_a_learner_saves() -> None:
    learner = Learner(network(), "ncm", settings={"train": "head"})
    assert set(learner.config) == set(CONFIG)
    assert set(CONFIG) <= set(inspect.signature(Learner).parameters)
    assert set(learner.state_dict()) == set(STATE)
    learner.learn(rows().numpy(), np.arange(10) % 2, steps=1)
    state = learner.state_dict()
    assert set(state) == {*STATE, FROZEN, TASK}
    again = from_state_dict(state, "model", network=network())
    assert again.backbone.form == FORM
    assert np.array_equal(again.predict_proba(rows()), learner.predict_proba(rows()))


def test_rows_become_inputs_without_asking_the_network() -> None:
    def ask() -> Settled:
        raise AssertionError("this may run a user's code")

    conversion = Conversion("columns", (), None, None, "auto", False, ask, Observer(), seed=0)
    table = conversion.domain(
        "a",
        rows().numpy(),
        ["x", "y"] * 5,
        validation=0.2,
        weights=None,
        grow_classes=False,
    )
    assert (list(table.task.classes), table.new_classes) == (["x", "y"], [])
    assert table.preprocessing is not None
    later = replace(conversion, known=table.preprocessing, task=table.task, started=True)
    assert torch.equal(later.inputs(rows()), torch.as_tensor(table.domain.inputs))
    grown = later.domain(
        "b", rows(), ["z", "y"] * 5, validation=0, weights=[1] * 10, grow_classes=True
    )
    assert (list(grown.task.classes), grown.new_classes) == (["x", "y", "z"], ["z"])
    assert conversion.known is None  # a failed domain leaves nothing behind
    images = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
    taken = conversion.domain(
        "c", images, [0, 1] * 2, validation=1, weights=None, grow_classes=False
    )
    assert taken.preprocessing is None
    assert torch.equal(torch.as_tensor(taken.domain.inputs), images)


@pytest.mark.parametrize("name", ["histogram", "cnn"])
def test_a_first_domain_that_fails_determines_nothing(name: str) -> None:
    class Interrupted(Observer):
        def step(self, domain: str, step: int, terms: Any) -> None:
            raise KeyboardInterrupt

    def images(size: int) -> np.ndarray:
        return np.random.default_rng(0).integers(0, 255, (12, 3, size, size), dtype=np.uint8)

    learner = Learner(name, "er", 8, observer=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        learner.learn(images(16), ["a", "b"] * 6, steps=2, weights=[1, 2] * 6)
    fresh = Learner(name, "er", 8)
    assert learner.config == fresh.config
    for each in (learner, fresh):
        each.observer = each.backbone._observer = Observer()
        each.learn(images(8), ["c", "d"] * 6, steps=2)
    assert learner.config == fresh.config
    assert learner.shape == (3, 8, 8)
    assert (learner.predict_proba(images(8)) == fresh.predict_proba(images(8))).all()
