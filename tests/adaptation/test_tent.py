"""TENT: worked numbers, what may change, and what is predicted."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest
import torch
from adapted import adapt, changed, source_model, target_inputs
from torch import nn
from torch.optim import Adam

from farshore.adaptation.adaptation import entropy
from farshore.networks.build import build_network


def test_entropy_and_its_gradient() -> None:
    logits = torch.tensor([[2.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    value = entropy(logits)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert logits.softmax(dim=1)[0].tolist() == pytest.approx([0.78699, 0.10651, 0.10651], abs=1e-5)
    assert float(value.detach()) == pytest.approx(0.66557, abs=1e-5)
    assert gradient[0].tolist() == pytest.approx([-0.33528, 0.16764, 0.16764], abs=1e-5)
    assert float(gradient.sum()) == pytest.approx(0, abs=1e-12)


def test_entropy_of_sure_and_unsure_rows_is_finite() -> None:
    logits = torch.tensor([[0.0] * 10, [1e4] + [0.0] * 9], dtype=torch.float64, requires_grad=True)
    values = entropy(logits)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert values.tolist() == pytest.approx([math.log(10), 0.0])
    assert float(gradient.abs().max()) < 1e-12


@pytest.mark.parametrize("kind", ["group", "batch", "layer"])
def test_only_scale_and_shift_of_normalisation_layers_change(kind: str) -> None:
    network = source_model(kind)
    _, adapted, adaptation = adapt("tent", network, target_inputs(kind), adaptation_batch=10)
    layers = [
        name
        for name, module in network.named_modules()
        if isinstance(module, nn.GroupNorm | nn.BatchNorm2d | nn.LayerNorm)
    ]
    assert changed(network, adapted) == {
        f"{name}.{part}" for name in layers for part in ("weight", "bias")
    }
    assert not any("not adapted" in note for note in adaptation.notes)


def test_the_papers_cnn_has_eight_such_tensors_of_896_scalars() -> None:
    _, _, adaptation = adapt("tent", source_model("group"), target_inputs("group"))
    found = adaptation.parameters(build_network("cnn", (1, 28, 28), 10, {}))
    assert len(found) == 8
    assert sum(parameter.numel() for parameter in found) == 896


@pytest.mark.parametrize("kind", ["group", "layer"])
def test_without_learning_rate_it_is_the_source_model(kind: str) -> None:
    network, inputs = source_model(kind), target_inputs(kind)
    logits, adapted, _ = adapt("tent", network, inputs, adaptation_rate=0)
    assert torch.equal(logits, network(inputs))
    assert changed(network, adapted) == set()


def test_with_batchnorm_and_without_learning_rate_it_is_the_source_model_on_batch_statistics() -> (
    None
):
    network, inputs = source_model("batch"), target_inputs("batch")
    logits, adapted, _ = adapt("tent", network, inputs, adaptation_rate=0, adaptation_batch=15)
    with network.batchnorm("no_update"):
        expected = torch.cat([network(inputs[:15]), network(inputs[15:])])
    assert torch.equal(logits, expected)
    assert not torch.allclose(logits, network(inputs), atol=1e-3)
    assert changed(network, adapted) == set()  # the stored statistics too


def test_a_second_implementation() -> None:
    """Each batch is predicted before the step that it causes, by a model that learned from all
    batches before.
    """
    network, inputs = source_model("group"), target_inputs("group")
    logits, adapted, _ = adapt("tent", network, inputs, adaptation_batch=10, adaptation_rate=0.05)
    model = deepcopy(network).requires_grad_(True)
    norms = [
        p
        for module in model.modules()
        if isinstance(module, nn.GroupNorm)
        for p in module.parameters()
    ]
    optimizer, parts = Adam(norms, lr=0.05), []
    for batch in inputs.split(10):
        z = model(batch)
        parts.append(z.detach())
        p = z.softmax(dim=1)
        optimizer.zero_grad()
        (-(p * p.log()).sum(dim=1).mean()).backward()
        optimizer.step()
    torch.testing.assert_close(logits, torch.cat(parts), rtol=1e-4, atol=1e-5)
    assert torch.equal(logits[:10], network(inputs[:10]))
    assert not torch.allclose(logits[10:], network(inputs[10:]), atol=1e-3)
    torch.testing.assert_close(
        dict(adapted.state_dict()), dict(model.state_dict()), rtol=1e-4, atol=1e-5
    )


def test_steps_lower_the_entropy() -> None:
    network, inputs = source_model("group"), target_inputs("group")
    again = torch.cat([inputs] * 20)
    options = {"adaptation_batch": len(inputs), "adaptation_rate": 0.01}
    _, adapted, _ = adapt("tent", network, again, **options)
    assert float(entropy(adapted(inputs)).mean().detach()) < float(entropy(network(inputs)).mean())


def test_a_network_without_normalisation_predicts_unadapted_and_says_so() -> None:
    network, inputs = source_model("none"), target_inputs("none")
    logits, adapted, adaptation = adapt("tent", network, inputs)
    assert torch.equal(logits, network(inputs))
    assert changed(network, adapted) == set()
    assert [note for note in adaptation.notes if "no normalisation layer" in note]
    for part, expected in (("features", {"features"}), ("all", {"features", "classifier"})):
        _, adapted, adaptation = adapt("tent", network, inputs, adapted=part)
        assert {name.split(".")[0] for name in changed(network, adapted)} == expected
        assert not any("not adapted" in note for note in adaptation.notes)


@pytest.mark.parametrize(("rows", "size"), [(21, 10), (1, 10), (3, 1), (11, 10)])
def test_a_batch_of_one_row_is_no_trap(rows: int, size: int) -> None:
    """BatchNorm1d refuses to normalise one row by itself."""
    torch.manual_seed(0)
    from farshore.networks.network import Network

    network = Network(
        nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU()), nn.Linear(6, 3)
    ).eval()
    inputs = target_inputs("none", rows)
    logits, _, _ = adapt("tent", network, inputs, adaptation_batch=size)
    assert logits.shape == (rows, 3)
    assert bool(torch.isfinite(logits).all())
    if rows == 1:
        assert torch.equal(logits, network(inputs).detach())


def test_dropout_stays_off() -> None:
    runs = [
        adapt("tent", source_model("batch"), target_inputs("batch"), adaptation_batch=10)[0]
        for _ in range(2)
    ]
    assert torch.equal(*runs)


def test_a_collapse_is_noted() -> None:
    network = source_model("group")
    network.classifier.bias += torch.tensor([1e3, 0, 0])
    _, _, adaptation = adapt("tent", network, target_inputs("group"))
    assert "collapsed: every target row was predicted as class number 0" in adaptation.notes
