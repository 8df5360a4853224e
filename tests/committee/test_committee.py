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
from farshore.systems.committee import system
from farshore.systems.committee.members import read_members
from farshore.systems.committee.mixing import (
    TEMPERATURES,
    average,
    choose,
    entropy,
    log_likelihood,
    losses,
    possible_weights,
    row_weights,
)
from farshore.systems.committee.system import CommitteeSystem
from farshore.testing.toys import toy_learned, toy_learner, toy_rows
from farshore.training.checkpoints import Checkpoints

# The members with the settings that they have in a committee of toys: their defaults.
MEMBERS: dict[str, dict[str, dict[str, Any]]] = {
    "best": {"cl-mix": {"anneal_steps": 100}, "ridge": {}, "slda": {}},
    "auto": {"er": {}, "er-kd(teacher=ema)": {"teacher": "ema"}, "ridge": {}, "slda": {}},
}
EVEN = torch.tensor([0.5, 0.5])


def alone_of(committee: str) -> list[Learner]:
    """The members of a committee of toys, each by itself."""
    return [
        toy_learner(name.partition("(")[0], settings=own)
        for name, own in MEMBERS[committee].items()
    ]


def toys(committee: str, **settings: Any) -> Learner:
    """A committee of toys without trees, which share rows, and so are not what they were alone."""
    if committee == "auto":
        settings.setdefault("members", "+".join(MEMBERS["auto"]))
    return toy_learner(committee, settings=settings or None)


def test_the_average_of_worked_numbers() -> None:
    """(0.8, 0.2) and (0.5, 0.5) give (0.65, 0.35), whatever constant is added to the logits."""
    first = torch.tensor([[math.log(0.8), math.log(0.2)]]) + 3
    second = torch.tensor([[7.0, 7.0]])
    expected = torch.tensor([[0.65, 0.35]])
    torch.testing.assert_close(average([first, second], [1.0, 1.0], EVEN).exp(), expected)
    weighted = average([first, second], [1.0, 1.0], torch.tensor([2 / 3, 1 / 3])).exp()
    torch.testing.assert_close(weighted, torch.tensor([[0.7, 0.3]]))
    alone = average([first, second], [1.0, 1.0], torch.tensor([1.0, 0.0])).exp()
    torch.testing.assert_close(alone, torch.tensor([[0.8, 0.2]]))


def test_a_temperature_softens_its_member() -> None:
    """Odds of 16 at temperature 2 are odds of 4: (0.8, 0.2)."""
    first = torch.tensor([[math.log(16.0), 0.0]])
    expected = torch.tensor([[0.65, 0.35]])
    torch.testing.assert_close(
        average([first, torch.zeros(1, 2)], [2.0, 1.0], EVEN).exp(), expected
    )


def test_the_weights_are_all_twelfths() -> None:
    weights = possible_weights(3)
    assert len(weights) == 91
    assert torch.allclose(weights.sum(dim=1), torch.ones(91, dtype=torch.float64))
    assert len({tuple(row) for row in weights.tolist()}) == 91
    assert [4 / 12] * 3 in weights.tolist()
    assert float(entropy(weights).max()) == pytest.approx(math.log(3))
    assert float(entropy(torch.tensor([[1.0, 0.0, 0.0]]))) == 0.0


def by_hand(
    committee: str, unlearned: list[list[tuple[Any, Any]]], counts: list[float]
) -> tuple[float, list[float]]:
    """The slow way: every mixture of the members' outputs on domains that they had not learned."""
    heated, evenness = {"best": (1, 0.1), "auto": (2, 0.3)}[committee]
    best = (math.inf, 0.0, [0.0])
    for temperature in TEMPERATURES:
        for weights in possible_weights(len(MEMBERS[committee])).tolist():
            means = []
            for outputs in unlearned:
                labels = outputs[0][1]
                mixed = 0.0
                for number, (logits, _) in enumerate(outputs):
                    scaled = logits.double() / (temperature if number < heated else 1.0)
                    mixed = mixed + weights[number] * torch.softmax(scaled, dim=1)
                rows = torch.arange(len(labels))
                means.append(-float(mixed[rows, labels].clamp_min(1e-30).log().mean()))
            spread = -sum(share * math.log(share) for share in weights if share)
            value = float(np.average(means, weights=counts)) - evenness * spread
            best = min(best, (value, temperature, weights))
    return best[1], best[2]


@pytest.mark.parametrize("name", ["best", "auto"])
def test_the_mixture_is_that_of_domains_before_learning_them(name: str) -> None:
    """A second computation: each member alone, scored on every domain before it learns it."""
    alone, committee = alone_of(name), toys(name)
    even = pytest.approx([1 / len(alone)] * len(alone))
    unlearned = []
    for number in range(3):
        domain = Domain.divided(f"d{number}", *toy_rows(number), seed=number)
        if number:
            unlearned.append([member.outputs(domain.split("train")) for member in alone])
        for learner in (*alone, committee):
            learner.learn_domain(domain, steps=20, classes=[0, 1])
        if not number:
            assert committee.system.mixture()[0] == [1.0] * len(alone)
            assert committee.system.mixture()[1].tolist() == even
    # The second domain counts once, the third twice, each times its distance.
    distances = [committee.system.distances.get(each, 1.0) for each in ("d1", "d2")]
    assert (name == "best") == (distances == [1.0, 1.0])
    temperatures, weights = committee.system.mixture()
    counts = [distances[0], 2 * distances[1]]
    assert (temperatures[0], weights.tolist()) == by_hand(name, unlearned, counts)
    committee.forget("d0")
    committee.forget("d2")
    assert float(committee.system.mixture()[1].sum()) == pytest.approx(1)  # from d1 alone
    committee.forget("d1")
    assert committee.system.mixture()[1].tolist() == even


def test_the_losses_of_the_newest_domains_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "MOST_MEASURED", 2)
    committee = toys("auto", members="er+ncm")
    for number in range(5):
        committee.learn(*toy_rows(number), domain=f"d{number}", steps=2)
    assert set(committee.system.unseen) == set(committee.system.distances) == {"d3", "d4"}
    assert float(committee.system.mixture()[1].sum()) == pytest.approx(1)


def test_a_useless_member_gets_less_weight_and_evenness_gives_it_back() -> None:
    labels = torch.arange(60) % 2
    good = torch.nn.functional.one_hot(labels, 2) * 3.0
    useless = torch.nn.functional.one_hot(1 - labels, 2) * 3.0
    likelihoods = [
        [log_likelihood(each, labels, heat) for each in (good, useless, useless)]
        for heat in TEMPERATURES
    ]
    measured = losses(likelihoods, row_weights(labels, "accuracy"))
    chosen = {each: choose([measured], [1.0], each)[1].tolist() for each in (0.0, 0.1, 100.0)}
    assert chosen[0.0] == [1.0, 0.0, 0.0]
    assert 0.8 < chosen[0.1][0] <= chosen[0.0][0]
    assert chosen[100.0] == pytest.approx([1 / 3] * 3)
    assert choose([measured], [1.0], 100.0, absent=[0])[1].tolist() == [0.0, 0.5, 0.5]


def test_far_domains_decide() -> None:
    """One member is right on the near domain, the other one on the far domain."""
    labels = torch.arange(40) % 2
    right = torch.nn.functional.one_hot(labels, 2) * 2.0
    measured = [
        losses([[log_likelihood(each, labels, 1.0) for each in pair]] * len(TEMPERATURES), share)
        for share in [row_weights(labels, "accuracy")]
        for pair in ((right, -right), (-right, right))
    ]
    for counts, first in (((3.0, 1.0), True), ((1.0, 3.0), False)):
        weights = choose(measured, counts, 0.0)[1].tolist()
        assert (weights[0] > weights[1]) == first


def test_every_class_counts_the_same_where_the_metric_says_so() -> None:
    labels = torch.tensor([0, 0, 0, 1])
    assert row_weights(labels, "accuracy").tolist() == [0.25] * 4
    assert row_weights(labels, "macro_f1").tolist() == pytest.approx([1 / 6] * 3 + [0.5])
    given = row_weights(labels, "balanced_accuracy", torch.tensor([1.0, 1.0, 2.0, 5.0]))
    assert given.tolist() == pytest.approx([1 / 8, 1 / 8, 1 / 4, 1 / 2])
    assert row_weights(labels, "accuracy", torch.tensor([1.0, 0.0, 0.0, 1.0])).tolist() == (
        pytest.approx([0.5, 0.0, 0.0, 0.5])
    )


def test_a_member_without_weight_learns_no_further_domains(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it had to say is left out of the mixture for good, also after loading."""
    monkeypatch.setattr(system, "DROP_AFTER", 1)
    committee = toys("auto", members="er+ncm+slda", evenness=0.0)
    for number in range(2):
        committee.learn(*toy_rows(number), domain=f"d{number}", steps=10)
    labels = torch.arange(40) % 2
    right = torch.nn.functional.one_hot(labels, 2) * 3.0
    pretended = [[log_likelihood(h, labels, 1.0) for h in (right / 9, -right, right)]]
    shares = row_weights(labels, "accuracy")
    committee.system.unseen["d1"] = losses(pretended * len(TEMPERATURES), shares)
    committee.learn(*toy_rows(2), domain="d2", steps=10)
    assert list(committee.system.members) == ["er", "slda"]  # er keeps the rows
    assert len(committee.system.mixture()[1]) == 2
    committee.save(tmp_path)
    again = load(tmp_path)
    for each in (committee, again):
        each.learn(*toy_rows(3), domain="d3", steps=10)
    rows = toy_rows(5)[0]
    assert torch.equal(committee.logits(rows), again.logits(rows))
    again.forget("d0")
    assert list(again.system.members) == ["er", "slda"]


def test_all_members_keep_the_same_rows() -> None:
    committee = toy_learned("auto")
    first, *others = committee.system.members.values()
    kept = [each.kept_rows() for each in others if each.kept_rows()]
    assert len(kept) == 2  # er-kd and trees
    for rows in kept:
        assert rows.keys() == first.kept_rows().keys()
        for name, fields in first.kept_rows().items():
            assert torch.equal(rows[name]["inputs"], fields["inputs"])
            assert torch.equal(rows[name]["labels"], fields["labels"])


def test_members_by_name_with_settings() -> None:
    members = read_members(" er + er-kd( teacher = ema , distillation_weight=1)+ridge")
    assert [each.text for each in members] == [
        "er",
        "er-kd(teacher=ema,distillation_weight=1)",
        "ridge",
    ]
    assert members[1].settings == {"teacher": "ema", "distillation_weight": 1.0}
    with pytest.raises(ValueError, match="settings that er-kd has"):
        read_members("er+er-kd(teacher=fast)")
    with pytest.raises(ValueError, match="names one twice"):
        read_members("er+ridge+ridge")


def test_small_probabilities_are_kept() -> None:
    logits = torch.tensor([[0.0, -200.0]])
    assert float(average([logits, logits], [1.0, 1.0], EVEN)[0, 1]) == pytest.approx(-200.0)


def mixed(committee: Learner, alone: list[torch.Tensor]) -> torch.Tensor:
    """The members' probabilities, weighted as the committee weighs them."""
    temperatures, weights = committee.system.mixture()
    chances = [
        (logits / heat).softmax(dim=1) for logits, heat in zip(alone, temperatures, strict=True)
    ]
    return sum(float(weight) * chance for weight, chance in zip(weights, chances, strict=True))


@pytest.mark.parametrize("name", ["best", "auto"])
def test_members_learn_as_they_would_alone(name: str) -> None:
    rows = toy_rows(5)[0]
    settings = {"members": "+".join(MEMBERS[name])} if name == "auto" else None
    committee = toy_learned(name, settings=settings)
    assert isinstance(committee.system, CommitteeSystem)
    alone = [
        toy_learned(each.partition("(")[0], settings=own).logits(rows)
        for each, own in MEMBERS[name].items()
    ]
    torch.testing.assert_close(
        committee.logits(rows).exp(), mixed(committee, alone), rtol=0, atol=1e-6
    )
    predictor = committee.system.predictor()
    torch.testing.assert_close(predictor(rows), committee.logits(rows))


@pytest.mark.parametrize("name", ["best", "auto"])
def test_settings_reach_the_trained_member(name: str) -> None:
    rows = toy_rows(5)[0]
    settings = {"learning_rate": 0.05, "batch_size": 4}
    committee = toy_learned(name, settings={**settings, "members": "er+ncm"})
    alone = [
        toy_learned(each, settings=settings if each == "er" else None).logits(rows)
        for each in ("er", "ncm")
    ]
    torch.testing.assert_close(
        committee.logits(rows).exp(), mixed(committee, alone), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    "members",
    [
        "ridge",
        "er",
        "er+nothing",
        "er+ridge+ridge",
        "trees+ridge",
        "joint+ridge",
        "er+majority",
        "",
    ],
)
def test_other_members_are_refused(members: str) -> None:
    with pytest.raises(FarshoreError, match=r"members = .* is not allowed: it should be"):
        Learner(method="auto", settings={"members": members})


@pytest.mark.parametrize("method", ["best", "auto"])
def test_forgetting_is_exact_for_the_closed_forms(method: str) -> None:
    def learned(*numbers: int) -> Learner:
        learner = Learner("mlp", method, memory=12, classes=[0, 1], network_settings={"width": 8})
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


@pytest.mark.parametrize("method", ["best", "auto"])
def test_interrupted_training_resumes_bit_for_bit(tmp_path: Path, method: str) -> None:
    def learner(observer: Observer | None = None) -> Learner:
        return Learner("mlp", method, 12, network_settings={"width": 8}, observer=observer)

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
@pytest.mark.parametrize("method", ["best", "auto"])
def test_a_committee_is_exported(tmp_path: Path, method: str) -> None:
    pytest.importorskip("onnx")
    session = pytest.importorskip("onnxruntime").InferenceSession
    learner = toy_learned(method)
    export_model(learner, tmp_path / "model.onnx")
    rows = toy_rows(5)[0]
    (probabilities,) = session(str(tmp_path / "model.onnx")).run(None, {"inputs": rows.numpy()})
    np.testing.assert_allclose(probabilities, learner.logits(rows).exp(), atol=1e-5)


@pytest.mark.parametrize("method", ["best", "auto"])
def test_further_classes_and_weights_reach_every_member(method: str) -> None:
    rows, labels = toy_rows(0)
    learner = Learner("mlp", method, 12, network_settings={"width": 8})
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
