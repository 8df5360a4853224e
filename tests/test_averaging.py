"""Averaged weights: the averages themselves, that no step changes, and everything around them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from farshore.base.state import undo
from farshore.base.trees import copied
from farshore.data.domain import Domain
from farshore.deployment.export import export_model
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.observer import Observer
from farshore.testing import (
    Check,
    Waiting,
    differences,
    parametrize_method_checks,
    toy_images,
    toy_learned,
    toy_learner,
    toy_rows,
)
from farshore.testing.toys import toy_image_network
from farshore.training.checkpoints import Checkpoints

AVERAGES = ("ema", "swad")
STEPS = 9


class Weights(Observer):
    """Copies the raw weights after every step."""

    learner: Learner

    def __init__(self) -> None:
        self.by_domain: dict[str, list[dict[str, Tensor]]] = {}

    def step(self, domain: str, step: int, terms: Any) -> None:
        network = self.learner.system.method.network
        values = {name: value.detach().double() for name, value in network.named_parameters()}
        self.by_domain.setdefault(domain, []).append(values)


def watched(method: str, **settings: object) -> tuple[Learner, Weights]:
    seen = Weights()
    seen.learner = toy_learner(method, settings=settings, observer=seen)
    return seen.learner, seen


def slow_average(weights: list[Tensor], average: str, value: float) -> Tensor:
    """The average as a weighted sum over all steps."""
    steps = len(weights)
    if average == "swad":
        window = weights[math.floor(value * steps) :]
        return torch.stack(window).sum(dim=0) / len(window)
    factors = [value ** (steps - 1 - step) for step in range(steps)]
    return sum(f * w for f, w in zip(factors, weights, strict=True)) / sum(factors)


# ---- the averages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("average", "name", "value"),
    [
        ("ema", "average_decay", 0.0),
        ("ema", "average_decay", 0.8),
        ("ema", "average_decay", 0.9999),
        ("swad", "average_start", 0.0),
        ("swad", "average_start", 0.5),
        ("swad", "average_start", 0.95),
    ],
)
def test_the_model_has_the_average_over_the_steps_of_the_newest_domain(
    average: str, name: str, value: float
) -> None:
    made, seen = watched("er", average=average, **{name: value})
    for number in range(2):
        made.learn(*toy_rows(number), domain=f"d{number}", steps=STEPS)
        steps = seen.by_domain[f"d{number}"]
        assert len(steps) == STEPS
        for key, actual in made.system.predictor().named_parameters():
            expected = slow_average([each[key] for each in steps], average, value)
            assert torch.allclose(actual.double(), expected, rtol=1e-5, atol=1e-6), key


def test_one_step_is_its_own_average() -> None:
    for average in AVERAGES:
        made, seen = watched("er", average=average)
        made.learn(*toy_rows(0), domain="a", steps=1)
        for key, actual in made.system.predictor().named_parameters():
            assert torch.allclose(actual.double(), seen.by_domain["a"][0][key], atol=1e-6)


@pytest.mark.parametrize("average", AVERAGES)
def test_batchnorm_statistics_are_means_over_batches_under_the_averaged_weights(
    average: str,
) -> None:
    made = toy_learner("er", network=toy_image_network(), network_settings=None)
    made.run = made.run.model_copy(update={"average": average})
    domain = Domain.divided("a", *toy_images(0))
    made.learn_domain(domain, steps=STEPS, classes=[0, 1])
    system, rows = made.system, domain.split("train")
    convolution, norm = system.predictor().features[0], system.predictor().features[1]
    means, variances = [], []
    draws = system.generators.data.clone_state()
    for _ in range(math.ceil(len(rows) / 8)):
        inputs, _ = rows.take(torch.randint(len(rows), (8,), generator=draws))
        with torch.no_grad():
            values = convolution(inputs.float() / 255).transpose(0, 1).flatten(1)
        means.append(values.mean(dim=1))
        variances.append(values.var(dim=1))
    assert torch.allclose(norm.running_mean, torch.stack(means).mean(dim=0), atol=1e-5)
    assert torch.allclose(norm.running_var, torch.stack(variances).mean(dim=0), rtol=1e-4)
    assert norm.momentum == 0.1
    assert not torch.allclose(norm.running_mean, system.average.raw["features.1.running_mean"])


def test_frozen_batchnorm_keeps_its_statistics() -> None:
    settings = {"average": "ema", "freeze_batchnorm": True}
    made = toy_learner("er", network=toy_image_network(), network_settings=None, settings=settings)
    made.learn(*toy_images(0), domain="a", steps=4)
    assert torch.equal(made.system.predictor().features[1].running_mean, torch.zeros(8))


# ---- no step changes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "average"),
    [
        ("er", "ema"),
        ("er-kd", "swad"),
        ("der++", "ema"),
        ("cl-mix", "swad"),
        ("cl-andmask", "ema"),
        ("ewc", "swad"),
        ("si", "ema"),
        ("snr", "swad"),
        ("efc", "ema"),
        ("sarl", "swad"),
    ],
)
def test_the_raw_model_is_the_one_without_averaging_bit_for_bit(method: str, average: str) -> None:
    """So are the memory, what the method keeps, and all random numbers: averaging is a copy."""
    plain, averaged = (
        toy_learned(method, settings={"average": chosen}).system.state_dict()
        for chosen in ("none", average)
    )
    assert "average" not in plain
    assert differences(averaged["average"]["raw"], _trained(plain["network"], averaged)) == []
    assert differences(averaged["network"], plain["network"]) != []
    rest = [
        {key: part for key, part in state.items() if key not in ("network", "average")}
        for state in (plain, averaged)
    ]
    assert differences(*rest) == []


def test_the_raw_model_with_batchnorm_too() -> None:
    states = []
    for average in ("none", "ema"):
        made = toy_learner(
            "der++",
            network=toy_image_network(),
            network_settings=None,
            settings={"average": average},
        )
        for number in range(3):
            made.learn(*toy_images(number), domain=f"d{number}", steps=4)
        states.append(made.system.state_dict())
    plain, averaged = states
    assert differences(averaged["average"]["raw"], _trained(plain["network"], averaged)) == []
    assert set(averaged["average"]["raw"]) == set(plain["network"])
    for part in ("memory", "generators", "optimizers", "method"):
        assert differences(plain[part], averaged[part]) == []


def _trained(network: dict[str, Tensor], averaged: dict[str, Any]) -> dict[str, Tensor]:
    return {name: network[name] for name in averaged["average"]["raw"]}


@pytest.mark.parametrize("average", AVERAGES)
def test_a_step_with_averaging_does_not_wait(average: str, monkeypatch) -> None:
    made = toy_learned("er", domains=1, settings={"average": average})
    waiting = Waiting()
    update = made.system.average.update
    monkeypatch.setattr(made.system.average, "update", waiting.watched(update))
    made.learn(*toy_rows(1), domain="b", steps=3)
    assert waiting.operations == []
    assert float(made.system.average.steps) == 3


# ---- the averaged model is the model -------------------------------------------------------------


@parametrize_method_checks(["er"], settings={"average": "ema"})
def test_the_battery_with_an_exponential_average(method: str, check: Check) -> None:
    check(method)


@parametrize_method_checks(["cl-mix"], settings={"average": "swad", "average_start": 0.25})
def test_the_battery_with_a_plain_average(method: str, check: Check) -> None:
    check(method)


def test_predictions_features_exports_and_loaded_models_use_the_average(tmp_path) -> None:
    made = toy_learned("er", domains=2, settings={"average": "ema"})
    x, _ = toy_rows(1)
    before = made.predict_proba(x)
    features = made.system.features(x)
    network = made.system.predictor()
    with torch.no_grad():
        assert torch.allclose(network(x).softmax(dim=1), torch.as_tensor(before), atol=1e-6)
        assert torch.allclose(network.extract(x), features, atol=1e-6)
    export_model(made, tmp_path / "model.pt2")
    with open(tmp_path / "model.pt2", "rb") as stream:
        exported = torch.export.load(stream).module()(x).detach()
    assert torch.allclose(exported, torch.as_tensor(before), atol=1e-5)
    made.save(tmp_path / "model")
    assert (load(tmp_path / "model").predict_proba(x) == before).all()
    raw = toy_learned("er", domains=2)
    assert not torch.allclose(torch.as_tensor(raw.predict_proba(x)), exported, atol=1e-3)


@pytest.mark.parametrize("average", AVERAGES)
def test_undoing_a_domain_restores_both_models(average: str, tmp_path) -> None:
    made = toy_learned("er", domains=1, settings={"average": average})
    made.save(tmp_path)
    before = copied(made.state_dict())
    made.learn(*toy_rows(1), domain="d1", steps=4)
    made.save(tmp_path, keep_previous=True)
    undo(tmp_path, kind="learner")
    assert differences(load(tmp_path).state_dict(), before) == []


@pytest.mark.parametrize("average", AVERAGES)
def test_forgetting_leaves_both_models_and_training_goes_on_from_the_raw_one(average: str) -> None:
    made = {
        chosen: toy_learned("cl-mix", domains=2, settings={"average": chosen})
        for chosen in ("none", average)
    }
    before = made[average].logits(toy_rows(0)[0])
    for learner in made.values():
        learner.forget("d0")
    assert torch.equal(made[average].logits(toy_rows(0)[0]), before)
    for learner in made.values():
        learner.learn(*toy_rows(2), domain="d2", steps=4)
    plain, averaged = (learner.system.state_dict() for learner in made.values())
    assert differences(averaged["average"]["raw"], plain["network"]) == []


def test_a_domain_that_is_refused_leaves_both_models(tmp_path) -> None:
    made = toy_learned("er", domains=2, settings={"average": "ema"})

    class Stop(Observer):
        def step(self, domain: str, step: int, terms: Any) -> None:
            if step == 5:
                raise KeyboardInterrupt

    before = copied(made.system.state_dict())
    interrupted = toy_learned("er", domains=2, settings={"average": "ema"})
    interrupted.system.observer = Stop()
    with pytest.raises(KeyboardInterrupt):
        interrupted.learn(
            *toy_rows(2), domain="d2", steps=8, checkpoints=Checkpoints(tmp_path, base="x", every=2)
        )
    with pytest.raises(FarshoreError, match="steps is different"):
        made.learn(*toy_rows(2), domain="d2", steps=9, checkpoints=Checkpoints(tmp_path, base="x"))
    after = made.system.state_dict()
    for part in ("network", "memory", "method", "generators"):
        assert differences(before[part], after[part]) == []
    assert differences(before["average"]["raw"], after["average"]["raw"]) == []


# ---- state ---------------------------------------------------------------------------------------


def damaged(edit: str, state: dict[str, Any]) -> dict[str, Any]:
    average = dict(state["average"])
    raw = dict(average["raw"])
    name = next(iter(raw))
    state = {**state, "average": average}
    if edit == "shape":
        average["raw"] = {**raw, name: raw[name][:1]}
    elif edit == "type":
        average["raw"] = {**raw, name: raw[name].double()}
    elif edit == "infinite":
        average["raw"] = {**raw, name: raw[name] / 0}
    elif edit == "missing weight":
        average["raw"] = {key: value for key, value in raw.items() if key != name}
    elif edit == "unknown weight":
        average["raw"] = {**raw, "other": raw[name]}
    elif edit == "both":
        average["mean"] = raw
    elif edit == "steps":
        average["steps"] = torch.zeros(2, dtype=torch.float64)
    elif edit == "negative":
        average["steps"] = torch.tensor(-1.0, dtype=torch.float64)
    elif edit == "no mean":
        average["raw"], state["within"] = {}, {}
    elif edit == "missing part":
        del average["mean"]
    elif edit == "no average":
        del state["average"]
    return state


@pytest.mark.parametrize(
    "edit",
    [
        "shape",
        "type",
        "infinite",
        "missing weight",
        "unknown weight",
        "both",
        "steps",
        "negative",
        "no mean",
        "missing part",
        "no average",
    ],
)
def test_a_damaged_average_is_refused_and_changes_nothing(edit: str) -> None:
    made = toy_learned("er", domains=2, settings={"average": "ema"})
    before = made.logits(toy_rows(0)[0])
    with pytest.raises(ValueError, match="average"):
        made.system.load_state_dict(damaged(edit, made.system.state_dict()))
    assert torch.equal(made.logits(toy_rows(0)[0]), before)


def test_a_model_without_averaging_refuses_an_average() -> None:
    made = toy_learned("er", domains=2, settings={"average": "ema"})
    plain = toy_learned("er", domains=2)
    with pytest.raises(ValueError, match="unknown entry 'average'"):
        plain.system.load_state_dict(made.system.state_dict())


@pytest.mark.parametrize(
    ("name", "value"), [("average", "mean"), ("average_decay", 1), ("average_start", 1)]
)
def test_values_out_of_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(FarshoreError, match=f"{name} = .* is not allowed"):
        toy_learner("er", settings={name: value})


@pytest.mark.parametrize("method", ["ridge", "slda", "ncm", "majority", "trees"])
def test_methods_without_steps_refuse_it(method: str) -> None:
    learner = toy_learner(method, settings={"average": "ema"})
    with pytest.raises(FarshoreError, match=f"not allowed with method '{method}'"):
        learner.learn(*toy_rows(0), domain="a", steps=1)


def test_a_committee_averages_the_weights_of_its_trained_member() -> None:
    settings = {"average": "ema"}
    committee = toy_learned("best", settings=settings).system
    alone = toy_learned("cl-mix", settings={**settings, "anneal_steps": 100})
    rows = toy_rows(5)[0]
    assert torch.equal(committee.trained.predictor()(rows), alone.logits(rows))
    plain = toy_learned("cl-mix", settings={"anneal_steps": 100})
    assert not torch.equal(plain.logits(rows), alone.logits(rows))
