"""A committee is the average of its members, each of which learns as it would alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from farshore import FarshoreError, Learner, load
from farshore.checkpoints import Checkpoints
from farshore.committee.system import TEMPERATURES, CommitteeSystem, average
from farshore.data.domain import Domain
from farshore.export import export_model
from farshore.observer import Observer
from farshore.testing.toys import toy_learned, toy_learner, toy_rows

MEMBERS = ("er-kd", "ridge", "slda")


def test_the_average_of_worked_numbers() -> None:
    """(0.8, 0.2) and (0.5, 0.5) give (0.65, 0.35), whatever constant is added to the logits."""
    first = torch.tensor([[math.log(0.8), math.log(0.2)]]) + 3
    second = torch.tensor([[7.0, 7.0]])
    expected = torch.tensor([[0.65, 0.35]])
    torch.testing.assert_close(average([first, second], 1.0).exp(), expected)


def test_the_temperature_applies_to_the_first_member() -> None:
    """Odds of 16 at temperature 2 are odds of 4: (0.8, 0.2)."""
    first = torch.tensor([[math.log(16.0), 0.0]])
    expected = torch.tensor([[0.65, 0.35]])
    torch.testing.assert_close(average([first, torch.zeros(1, 2)], 2.0).exp(), expected)


def test_the_temperature_is_that_of_domains_ahead_of_learning_them() -> None:
    """A second computation: er-kd alone, scored on each domain before it learns it."""
    alone = toy_learner("er-kd")
    losses = []
    for number in range(3):
        domain = Domain.divided(f"d{number}", *toy_rows(number), seed=number)
        if number:
            logits, labels = alone.outputs(domain.split("train"))
            chances = [torch.softmax(logits.double() / each, dim=1) for each in TEMPERATURES]
            rows = torch.arange(len(labels))
            losses.append([-float(chance[rows, labels].log().mean()) for chance in chances])
        alone.learn_domain(domain, steps=20, classes=[0, 1])
    expected = TEMPERATURES[int(np.mean(losses, axis=0).argmin())]
    committee = toy_learner("best")
    assert isinstance(committee, Learner)
    for number in range(3):
        domain = Domain.divided(f"d{number}", *toy_rows(number), seed=number)
        committee.learn_domain(domain, steps=20, classes=[0, 1])
        assert number or committee.system.temperature == 1.0
    assert committee.system.temperature == expected
    committee.forget("d1")
    committee.forget("d2")
    assert committee.system.temperature == 1.0


def test_small_probabilities_are_kept() -> None:
    logits = torch.tensor([[0.0, -200.0]])
    assert float(average([logits, logits], 1.0)[0, 1]) == pytest.approx(-200.0)


def test_members_learn_as_they_would_alone() -> None:
    rows = toy_rows(5)[0]
    committee = toy_learned("best")
    assert isinstance(committee.system, CommitteeSystem)
    alone = [toy_learned(name).logits(rows) for name in MEMBERS]
    alone[0] = alone[0] / committee.system.temperature
    alone = [logits.softmax(dim=1) for logits in alone]
    torch.testing.assert_close(
        committee.logits(rows).exp(), torch.stack(alone).mean(dim=0), rtol=0, atol=1e-6
    )
    assert isinstance(committee.system, CommitteeSystem)
    predictor = committee.system.predictor()
    torch.testing.assert_close(predictor(rows), committee.logits(rows))


def test_settings_reach_the_trained_member() -> None:
    rows = toy_rows(5)[0]
    settings = {"learning_rate": 0.05, "batch_size": 4}
    committee = toy_learned("best", settings={**settings, "members": "er+ncm"})
    alone = [
        toy_learned(name, settings=settings if name == "er" else None).logits(rows)
        for name in ("er", "ncm")
    ]
    alone[0] = alone[0] / committee.system.temperature
    alone = [logits.softmax(dim=1) for logits in alone]
    torch.testing.assert_close(
        committee.logits(rows).exp(), torch.stack(alone).mean(dim=0), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    "members", ["ridge", "er", "er+er-kd", "er+ridge+ridge", "trees+ridge", "joint+ridge", ""]
)
def test_other_members_are_refused(members: str) -> None:
    with pytest.raises(FarshoreError, match="such as er-kd\\+ridge"):
        Learner(method="best", settings={"members": members})


def test_forgetting_is_exact_for_the_closed_forms() -> None:
    def learned(*numbers: int) -> Learner:
        learner = Learner("mlp", "best", memory=12, classes=[0, 1], network_settings={"width": 8})
        for number in numbers:
            learner.learn_domain(Domain.divided(f"d{number}", *toy_rows(number)), steps=3)
        return learner

    learner, never = learned(0, 1, 2), learned(0, 2)
    learner.forget("d1")
    for name in MEMBERS[1:]:
        with_domain, without = (
            each.state_dict()["system"]["members"][name]["head"] for each in (learner, never)
        )
        for part in with_domain:
            assert torch.equal(with_domain[part], without[part]), (name, part)
    assert "d1" not in learner.system.kept_rows()


class _Stop(Observer):
    def step(self, domain: str, step: int, terms: object) -> None:
        if domain == "d1" and step == 6:
            raise KeyboardInterrupt


def test_interrupted_training_resumes_bit_for_bit(tmp_path: Path) -> None:
    def learner(observer: Observer | None = None) -> Learner:
        return Learner("mlp", "best", 12, network_settings={"width": 8}, observer=observer)

    def checkpoints() -> Checkpoints:
        return Checkpoints(tmp_path / "checkpoint", base="here", every=2)

    straight = learner()
    stopped = learner(_Stop())
    for each in (straight, stopped):
        each.learn(*toy_rows(0), domain="d0", steps=8)
    straight.learn(*toy_rows(1), domain="d1", steps=8)
    stopped.save(tmp_path / "model")
    with pytest.raises(KeyboardInterrupt):
        stopped.learn(*toy_rows(1), domain="d1", steps=8, checkpoints=checkpoints())
    again = load(tmp_path / "model")
    again.learn(*toy_rows(1), domain="d1", steps=8, checkpoints=checkpoints())
    rows = toy_rows(5)[0]
    np.testing.assert_array_equal(again.predict_proba(rows), straight.predict_proba(rows))


@pytest.mark.soak
def test_a_committee_is_exported(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    session = pytest.importorskip("onnxruntime").InferenceSession
    learner = toy_learned("best")
    export_model(learner, tmp_path / "model.onnx")
    rows = toy_rows(5)[0]
    (probabilities,) = session(str(tmp_path / "model.onnx")).run(None, {"inputs": rows.numpy()})
    np.testing.assert_allclose(probabilities, learner.logits(rows).exp(), atol=1e-5)


def test_further_classes_and_weights_reach_every_member() -> None:
    rows, labels = toy_rows(0)
    learner = Learner("mlp", "best", 12, network_settings={"width": 8})
    learner.learn(rows, labels, domain="d0", steps=3, weights=torch.arange(len(rows)) + 1.0)
    more = torch.where(labels == 0, 2, labels)
    learner.learn(rows + 1, more, domain="d1", steps=3, grow_classes=True)
    assert learner.classes == [0, 1, 2]
    assert learner.predict_proba(rows).shape == (len(rows), 3)


def test_members_that_cannot_weigh_rows_are_named() -> None:
    rows, labels = toy_rows(0)
    learner = Learner("mlp", "best", 12, settings={"members": "ewc+ridge"})
    with pytest.raises(FarshoreError, match="member 'ewc' does not support weights of rows"):
        learner.learn(rows, labels, domain="d0", steps=3, weights=torch.arange(len(rows)) + 1.0)
