"""FDR: the distance's worked numbers and the two steps."""

from __future__ import annotations

import math

import pytest
import torch
from attached import attached, drawing, rows, small_network, trained, weights

from farshore.memory.memory import share
from farshore.methods.fdr import function_distance
from farshore.testing import differences


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_distance_by_hand():
    assert float(function_distance(numbers([2.0, 0.0]), numbers([0.0, 0.0]))) == pytest.approx(
        0.538528, abs=1e-6
    )
    assert float(function_distance(numbers([1e3, 0.0]), numbers([0.0, 1e3]))) == pytest.approx(
        math.sqrt(2)
    )
    assert float(
        function_distance(numbers([2.0, 0.0], [1.0, 1.0]), numbers([0.0, 0.0], [1.0, 1.0]))
    ) == pytest.approx(0.538528 / 2, abs=1e-6)


def test_a_constant_on_the_stored_logits_changes_nothing_and_no_gradient_reaches_them():
    logits, stored = rows(6, classes=3)[0].requires_grad_(), rows(6, seed=1)[0].requires_grad_()
    torch.testing.assert_close(
        function_distance(logits, stored + 7), function_distance(logits, stored)
    )
    function_distance(logits, stored).backward()
    assert stored.grad is None
    assert float(logits.grad.abs().sum()) > 0


def test_at_distance_zero_the_gradient_is_zero():
    logits = rows(4)[0].requires_grad_()
    function_distance(logits, logits.detach().clone()).backward()
    assert float(logits.grad.abs().sum()) == 0


def test_distance_is_zero_right_after_filling(blobs):
    learner = trained("fdr", blobs)
    kept = learner.system.memory.kept()["2"]
    with torch.no_grad():
        assert (
            float(
                function_distance(
                    learner.system.method.network.eval()(kept["inputs"]), kept["logits"]
                )
            )
            < 1e-6
        )
        older = learner.system.memory.kept()["0"]
        assert (
            float(
                function_distance(learner.system.method.network(older["inputs"]), older["logits"])
            )
            > 1e-6
        )


def draw(network, count=6):
    inputs, labels = rows(count, seed=8)
    stored = rows(count, seed=9, width=3)[0]
    return {"replay": (inputs[None], labels[None], {"logits": stored[None]})}


def test_two_steps_are_one_on_the_loss_and_then_one_on_the_distance():
    network, by_hand = small_network(), small_network()
    batch = drawing(5, **draw(network))
    terms = attached("fdr", network, rate=0.1, penalty_weight=0.5).update(batch)
    optimizer = torch.optim.SGD(by_hand.parameters(), lr=0.1)
    stored = batch.draws["replay"]
    for loss in (
        lambda: torch.nn.functional.cross_entropy(by_hand(batch.inputs), batch.labels),
        lambda: 0.5 * function_distance(by_hand(stored.inputs[0]), stored.stored["logits"][0]),
    ):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    for a, b in zip(network.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    assert 0 < float(terms["distance"]) < math.sqrt(2)


def test_one_step_is_on_the_weighed_sum():
    network, by_hand = small_network(), small_network()
    batch = drawing(5, **draw(network))
    attached("fdr", network, rate=0.1, penalty_weight=0.5, second_step=False).update(batch)
    stored = batch.draws["replay"]
    loss = torch.nn.functional.cross_entropy(by_hand(batch.inputs), batch.labels)
    (
        loss + 0.5 * function_distance(by_hand(stored.inputs[0]), stored.stored["logits"][0])
    ).backward()
    torch.optim.SGD(by_hand.parameters(), lr=0.1).step()
    for a, b in zip(network.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("second_step", [True, False])
def test_weight_zero_and_the_first_domain_are_finetuning(blobs, second_step):
    reference = weights(trained("finetune", blobs))
    assert (
        differences(
            weights(trained("fdr", blobs, penalty_weight=0, second_step=second_step)), reference
        )
        == []
    )
    first = trained("fdr", blobs, domains=1, second_step=second_step)
    assert differences(weights(first), weights(trained("finetune", blobs, domains=1))) == []
    assert differences(weights(trained("fdr", blobs, second_step=second_step)), reference)


def test_domains_share_the_memory_evenly(blobs):
    assert [[share(1000, count, place) for place in range(count)] for count in (1, 2, 3, 4)] == [
        [1000],
        [500, 500],
        [334, 333, 333],
        [250] * 4,
    ]
    partitions = trained("fdr", blobs).system.memory.kept()
    assert [len(part["labels"]) for part in partitions.values()] == [8, 8, 8]
