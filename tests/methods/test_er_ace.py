"""ER-ACE: the mask's worked numbers, and what remains when no class is absent."""

from __future__ import annotations

import math

import pytest
import torch
from attached import attached, drawing, gradients, rows, small_network, trained, weights

from farshore.learner.loading import load
from farshore.methods.er_ace import CosineHead, mask_absent
from farshore.tasks.classification import empirical_risk
from farshore.testing import differences

LOGITS = torch.tensor([[1.0, 2.0, 0.5, -1.0]], dtype=torch.float64)


def test_masked_losses_by_hand():
    label = torch.tensor([0])
    assert float(empirical_risk(LOGITS, label)) == pytest.approx(1.495182, abs=1e-6)
    assert float(empirical_risk(mask_absent(LOGITS, label), label)) == 0.0
    official = mask_absent(LOGITS, label, torch.tensor(3))
    assert float(empirical_risk(official, label)) == pytest.approx(0.126928, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_masked_classes_have_no_probability_and_no_gradient(dtype):
    logits = LOGITS.to(dtype).repeat(2, 1).requires_grad_()
    labels = torch.tensor([0, 2])
    masked = mask_absent(logits, labels)
    assert bool(masked.isfinite().all())
    assert masked.float().softmax(dim=1)[:, [1, 3]].abs().sum() == 0
    empirical_risk(masked.float(), labels).backward()
    assert float(logits.grad[:, [1, 3]].abs().sum()) == 0
    assert float(logits.grad[:, [0, 2]].abs().min()) > 0


def all_classes(method="er-ace", **settings):
    """A step on a batch and a draw of six rows each, all classes present."""
    network = small_network()
    inputs, _ = rows(6, seed=8)
    labels = torch.arange(6) % 3
    batch = drawing(6, replay=(inputs, labels, {}))
    batch.labels = labels.flip(0)
    terms = attached(method, network, **settings).update(batch)
    return network, batch, terms


def test_with_all_classes_present_it_is_the_sum_of_two_plain_losses():
    network, batch, terms = all_classes()
    plain = small_network()
    draw = batch.draws["replay"]
    assert torch.equal(terms["erm"], empirical_risk(plain(batch.inputs), batch.labels))
    assert torch.equal(terms["replay"], empirical_risk(plain(draw.inputs), draw.labels))
    pooled = empirical_risk(
        plain(torch.cat([batch.inputs, draw.inputs])), torch.cat([batch.labels, draw.labels])
    )
    pooled.backward()
    for ace, er in zip(gradients(network), gradients(plain), strict=True):
        torch.testing.assert_close(ace, 2 * er)  # twice the gradient of replay in one joint batch


def test_an_absent_class_is_masked_for_the_incoming_rows_alone():
    network = small_network()
    inputs, labels = rows(6, seed=8)
    batch = drawing(4, replay=(inputs, labels % 3, {}))
    batch.labels = torch.tensor([0, 1, 0, 1])
    terms = attached("er-ace", network).update(batch)
    plain = small_network()
    expected = empirical_risk(plain(batch.inputs)[:, :2], batch.labels)
    torch.testing.assert_close(terms["erm"], expected)
    torch.testing.assert_close(terms["replay"], empirical_risk(plain(inputs), labels % 3))


def test_the_official_mask_spares_the_highest_class_seen():
    network = small_network()
    method = attached("er-ace", network, mask="official")
    method.terms(_labelled(torch.tensor([2, 0, 0])))
    assert int(method.highest) == 2
    batch = _labelled(torch.tensor([0, 0, 0]), replay=True)
    erm = method.terms(batch)["erm"]
    torch.testing.assert_close(
        erm, empirical_risk(network(batch.inputs)[:, [0, 2]], torch.zeros(3, dtype=torch.long))
    )


def _labelled(labels, replay=False):
    inputs, others = rows(3, seed=8)
    batch = drawing(len(labels), **({"replay": (inputs, others, {})} if replay else {}))
    batch.labels = labels
    return batch


def test_with_a_linear_head_the_first_domain_is_finetuning_and_the_second_is_not(blobs):
    linear, plain = (
        weights(trained(name, blobs, domains=1, **settings))
        for name, settings in (("er-ace", {"head": "linear"}), ("finetune", {}))
    )
    assert differences(linear, plain) == []
    assert differences(
        weights(trained("er-ace", blobs, head="linear")), weights(trained("finetune", blobs))
    )


def test_the_cosine_head_by_hand():
    head = CosineHead(2, 3, scale=10).double()
    head.weight.data.copy_(torch.tensor([[3.0, 4.0], [0.0, -2.0], [5.0, 0.0]]))
    features = torch.tensor([[0.6, 0.8], [7.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    expected = [[10.0, -8.0, 6.0], [6.0, 0.0, 10.0], [0.0, 0.0, 0.0]]
    torch.testing.assert_close(head(features), torch.tensor(expected, dtype=torch.float64))
    for row, logits in zip(features.tolist(), head(features).tolist(), strict=True):
        for weight, logit in zip(head.weight.tolist(), logits, strict=True):
            lengths = math.hypot(*row) * math.hypot(*weight)
            product = sum(one * other for one, other in zip(row, weight, strict=True))
            assert logit == pytest.approx(10 * product / (lengths or 1))


def test_the_head_is_saved_with_the_network(blobs, tmp_path):
    learner = trained("er-ace", blobs, domains=2)
    head = learner.system.method.network.classifier
    assert isinstance(head, CosineHead)
    assert [name for name, _ in head.named_parameters()] == ["weight"]
    learner.save(tmp_path)
    inputs, _ = blobs(1)
    again = load(tmp_path)
    assert differences(weights(again), weights(learner)) == []
    assert (again.predict_proba(inputs) == learner.predict_proba(inputs)).all()


def test_the_reservoir_counts_every_row_once_and_stays_bounded(blobs):
    memory = trained("er-ace", blobs).system.memory
    assert (memory.seen, memory.items) == (3 * 12 * 8, 24)
