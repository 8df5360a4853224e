"""DER++: the terms' worked numbers and what the reservoir keeps."""

from __future__ import annotations

import pytest
import torch
from attached import attached, drawing, rows, small_network, trained, weights
from torch import nn

from farshore.data.batch import Batch, Draw
from farshore.memory import ReservoirMemory
from farshore.networks.network import Network
from farshore.tasks.classification import empirical_risk
from farshore.testing import differences


def test_distance_is_a_mean_over_rows_and_classes():
    network = Network(nn.Identity(), nn.Linear(3, 3, bias=False)).double()
    nn.init.eye_(network.classifier.weight)
    inputs = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    stored = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1])
    batch = Batch(
        inputs, labels, rows=2, draws={"distillation": Draw(inputs, labels, {"logits": stored})}
    )
    terms = attached("der++", network).terms(batch)
    assert float(terms["distillation"].detach()) == pytest.approx(0.833333, abs=1e-6)


def two_draws(count=6):
    inputs, labels = rows(count, seed=8)
    others, their_labels = rows(count, seed=9)
    return {
        "distillation": (inputs, labels, {"logits": rows(count, seed=10, width=3)[0]}),
        "replay": (others, their_labels, {}),
    }


def test_one_step_is_on_the_weighed_sum_of_three_passes():
    network, by_hand = small_network(), small_network()
    batch = drawing(5, **two_draws())
    attached("der++", network, rate=0.1, distillation_weight=0.3, replay_weight=0.7).update(batch)
    first, second = batch.draws["distillation"], batch.draws["replay"]
    loss = empirical_risk(by_hand(batch.inputs), batch.labels)
    loss = loss + 0.3 * (by_hand(first.inputs) - first.stored["logits"]).square().mean()
    (loss + 0.7 * empirical_risk(by_hand(second.inputs), second.labels)).backward()
    torch.optim.SGD(by_hand.parameters(), lr=0.1).step()
    for a, b in zip(network.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_stored_logits_are_those_of_the_offering_step_before_its_update():
    network = small_network()
    batch = drawing(5)
    before = network(batch.inputs).detach()
    attached("der++", network).update(batch)
    assert torch.equal(batch.outputs["logits"], before)
    assert not torch.equal(network(batch.inputs), before)


def test_the_two_draws_are_independent(blobs):
    seen = []

    def record(batch):
        seen.append([batch.draws[name].inputs for name in ("distillation", "replay")])

    learner = trained("der++", blobs, domains=1)
    learner.system.method.after_step = record
    learner.learn(*blobs(1), domain="1", steps=3)
    assert all(a.shape == b.shape == (8, 4) for a, b in seen)
    assert not any(torch.equal(a, b) for a, b in seen)


def test_weights_zero_and_the_first_domain_are_finetuning(blobs):
    off = {"distillation_weight": 0, "replay_weight": 0}
    assert (
        differences(weights(trained("der++", blobs, **off)), weights(trained("finetune", blobs)))
        == []
    )
    assert (
        differences(
            weights(trained("der++", blobs, domains=1)),
            weights(trained("finetune", blobs, domains=1)),
        )
        == []
    )
    assert differences(weights(trained("der++", blobs)), weights(trained("finetune", blobs)))


def test_reservoir_keeps_logits_and_stays_bounded(blobs):
    memory = trained("der++", blobs).system.memory
    assert isinstance(memory, ReservoirMemory)
    assert (memory.seen, memory.items) == (3 * 12 * 8, 24)
    assert memory.contents()["logits"].shape == (24, 2)
