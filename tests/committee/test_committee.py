"""A committee is the average of its members, each of which learns as it would alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from farshore import FarshoreError, Learner, load
from farshore.data.domain import Domain
from farshore.deployment.export import export_model
from farshore.observer import Observer
from farshore.systems.committee.system import (
    TEMPERATURES,
    CommitteeSystem,
    average,
    entropy,
    losses,
    possible_weights,
)
from farshore.testing.toys import toy_learned, toy_learner, toy_rows
from farshore.training.checkpoints import Checkpoints

# The members with the settings that they have in a committee of toys: their defaults.
MEMBERS: dict[str, dict[str, Any]] = {"cl-mix": {"anneal_steps": 100}, "ridge": {}, "slda": {}}
EVEN = torch.tensor([0.5, 0.5])


def test_the_average_of_worked_numbers() -> None:
    """(0.8, 0.2) and (0.5, 0.5) give (0.65, 0.35), whatever constant is added to the logits."""
    first = torch.tensor([[math.log(0.8), math.log(0.2)]]) + 3
    second = torch.tensor([[7.0, 7.0]])
    expected = torch.tensor([[0.65, 0.35]])
    torch.testing.assert_close(average([first, second], 1.0, EVEN).exp(), expected)
    weighted = average([first, second], 1.0, torch.tensor([2 / 3, 1 / 3])).exp()
    torch.testing.assert_close(weighted, torch.tensor([[0.7, 0.3]]))
    alone = average([first, second], 1.0, torch.tensor([1.0, 0.0])).exp()
    torch.testing.assert_close(alone, torch.tensor([[0.8, 0.2]]))


def test_the_temperature_applies_to_the_first_member() -> None:
    """Odds of 16 at temperature 2 are odds of 4: (0.8, 0.2)."""
    first = torch.tensor([[math.log(16.0), 0.0]])
    expected = torch.tensor([[0.65, 0.35]])
    torch.testing.assert_close(average([first, torch.zeros(1, 2)], 2.0, EVEN).exp(), expected)


def test_the_weights_are_all_twelfths() -> None:
    weights = possible_weights(3)
    assert len(weights) == 91
    assert torch.allclose(weights.sum(dim=1), torch.ones(91, dtype=torch.float64))
    assert len({tuple(row) for row in weights.tolist()}) == 91
    assert [4 / 12] * 3 in weights.tolist()
    assert float(entropy(weights).max()) == pytest.approx(math.log(3))
    assert float(entropy(torch.tensor([[1.0, 0.0, 0.0]]))) == 0.0


def by_hand(
    committee: Learner, unlearned: list[list[tuple[Any, Any]]]
) -> tuple[float, list[float]]:
    """The slow way: every mixture of the members' outputs on domains that they had not learned."""
    best = (math.inf, 0.0, [0.0])
    for temperature in TEMPERATURES:
        for weights in possible_weights(len(MEMBERS)).tolist():
            means = []
            for outputs in unlearned:
                labels = outputs[0][1]
                mixed = 0.0
                for number, (logits, _) in enumerate(outputs):
                    scaled = logits.double() / (temperature if number == 0 else 1.0)
                    mixed = mixed + weights[number] * torch.softmax(scaled, dim=1)
                rows = torch.arange(len(labels))
                means.append(-float(mixed[rows, labels].clamp_min(1e-30).log().mean()))
            spread = -sum(share * math.log(share) for share in weights if share)
            # The second domain counts once, the third twice.
            value = float(np.average(means, weights=[1, 2])) - 0.1 * spread
            best = min(best, (value, temperature, weights))
    return best[1], best[2]


def test_the_mixture_is_that_of_domains_before_learning_them() -> None:
    """A second computation: each member alone, scored on every domain before it learns it."""
    alone = [toy_learner(name, settings=own) for name, own in MEMBERS.items()]
    committee = toy_learner("best")
    unlearned = []
    for number in range(3):
        domain = Domain.divided(f"d{number}", *toy_rows(number), seed=number)
        if number:
            unlearned.append([member.outputs(domain.split("train")) for member in alone])
        for learner in (*alone, committee):
            learner.learn_domain(domain, steps=20, classes=[0, 1])
        if not number:
            assert committee.system.mixture()[0] == 1.0
            assert committee.system.mixture()[1].tolist() == pytest.approx([1 / 3] * 3)
    temperature, weights = committee.system.mixture()
    assert (temperature, weights.tolist()) == by_hand(committee, unlearned)
    committee.forget("d0")
    committee.forget("d2")
    assert float(committee.system.mixture()[1].sum()) == pytest.approx(1)  # from d1 alone
    committee.forget("d1")
    assert committee.system.mixture()[1].tolist() == pytest.approx([1 / 3] * 3)


def test_a_useless_member_gets_less_weight_and_evenness_gives_it_back() -> None:
    labels = torch.arange(60) % 2
    good = torch.nn.functional.one_hot(labels, 2) * 3.0
    useless = torch.nn.functional.one_hot(1 - labels, 2) * 3.0
    measured = {"d": losses([good, useless, useless], labels)}
    chosen = {}
    for evenness in (0.0, 0.1, 100.0):
        learner = toy_learner("best", settings={"evenness": evenness})
        for number, name in enumerate("ad"):
            learner.learn(*toy_rows(number), domain=name, steps=1)
        learner.system.unseen = measured
        chosen[evenness] = learner.system.mixture()[1].tolist()
    assert chosen[0.0] == [1.0, 0.0, 0.0]
    assert 0.8 < chosen[0.1][0] <= chosen[0.0][0]
    assert chosen[100.0] == pytest.approx([1 / 3] * 3)


def test_small_probabilities_are_kept() -> None:
    logits = torch.tensor([[0.0, -200.0]])
    assert float(average([logits, logits], 1.0, EVEN)[0, 1]) == pytest.approx(-200.0)


def mixed(committee: Learner, alone: list[torch.Tensor]) -> torch.Tensor:
    """The members' probabilities, weighted as the committee weighs them."""
    temperature, weights = committee.system.mixture()
    first, *others = alone
    chances = [logits.softmax(dim=1) for logits in (first / temperature, *others)]
    return sum(float(weight) * chance for weight, chance in zip(weights, chances, strict=True))


def test_members_learn_as_they_would_alone() -> None:
    rows = toy_rows(5)[0]
    committee = toy_learned("best")
    assert isinstance(committee.system, CommitteeSystem)
    alone = [toy_learned(name, settings=own).logits(rows) for name, own in MEMBERS.items()]
    torch.testing.assert_close(
        committee.logits(rows).exp(), mixed(committee, alone), rtol=0, atol=1e-6
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
    torch.testing.assert_close(
        committee.logits(rows).exp(), mixed(committee, alone), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    "members", ["ridge", "er", "er+er-kd", "er+ridge+ridge", "trees+ridge", "joint+ridge", ""]
)
def test_other_members_are_refused(members: str) -> None:
    with pytest.raises(FarshoreError, match="such as cl-mix\\+ridge"):
        Learner(method="best", settings={"members": members})


def test_forgetting_is_exact_for_the_closed_forms() -> None:
    def learned(*numbers: int) -> Learner:
        learner = Learner("mlp", "best", memory=12, classes=[0, 1], network_settings={"width": 8})
        for number in numbers:
            learner.learn_domain(Domain.divided(f"d{number}", *toy_rows(number)), steps=3)
        return learner

    learner, never = learned(0, 1, 2), learned(0, 2)
    learner.forget("d1")
    for name in ("ridge", "slda"):
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
