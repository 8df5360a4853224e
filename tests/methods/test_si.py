"""SI: the path integral's worked numbers."""

from __future__ import annotations

import pytest
import torch
from attached import attached, drawing, gradients, small_network, trained, weights
from torch import Tensor, nn

from farshore.data.batch import Batch
from farshore.methods.gradient import flat
from farshore.methods.si import SI
from farshore.networks.network import Network
from farshore.testing import differences


class Quadratic(SI):
    """L = 1/2 · 2 · (θ - 1)² in place of the cross-entropy."""

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        return {"erm": (self.network.classifier.weight - 1).square().sum()}


@pytest.mark.parametrize(("damping", "importance"), [(0.1, 2.424529), (1.0, 0.662152)])
def test_three_steps_on_a_parabola(damping, importance):
    classifier = nn.Linear(1, 1, bias=False).double()
    nn.init.zeros_(classifier.weight)
    network = Network(nn.Identity(), classifier)
    method = Quadratic(SI.Settings.build({"damping": damping}))
    method.attach(
        network, None, torch.Generator(), lambda parameters: torch.optim.SGD(parameters, lr=0.1)
    )
    batch = drawing(2)
    method.before_domain("a")
    for _ in range(3):
        method.update(batch)
        method.after_step(batch)
    assert float(classifier.weight.detach()) == pytest.approx(0.488)
    assert float(method.path) == pytest.approx(0.81984)
    method.after_domain("a", None)
    assert float(method.importance) == pytest.approx(importance, abs=1e-6)


def test_under_plain_descent_the_path_is_the_rate_times_the_squared_gradients():
    network = small_network()
    method = attached("si", network, rate=0.05)
    method.before_domain("a")
    batch, squares = drawing(6), 0.0
    for _ in range(4):
        method.update(batch)
        squares += float(flat(gradients(network)).square().sum())
        method.after_step(batch)
    assert float(method.path.min()) >= 0
    assert float(method.path.sum()) == pytest.approx(0.05 * squares)


def test_penalty_is_closed_form_and_the_path_sees_the_loss_alone():
    network = small_network()
    method = attached("si", network, penalty_weight=0.5)
    method.before_domain("a")
    method.importance = torch.linspace(0, 1, len(method.anchor), dtype=torch.float64)
    batch = drawing(6)
    first = method.update(batch)
    assert float(first["penalty"]) == 0.0  # at the start of a domain nothing pulls
    moved = flat(parameter.detach() for parameter in network.parameters()) - method.anchor
    plain = torch.autograd.grad(SI.terms(method, batch)["erm"], list(network.parameters()))
    terms = method.update(batch)
    torch.testing.assert_close(terms["penalty"], (method.importance * moved.square()).sum())
    torch.testing.assert_close(
        flat(gradients(network)), flat(plain) + 2 * 0.5 * method.importance * moved
    )
    assert torch.equal(method.gradient, flat(plain))
    position = flat(parameter.detach() for parameter in network.parameters())
    before = method.path.clone()
    method.after_step(batch)
    torch.testing.assert_close(
        method.path - before, flat(plain) * (moved + method.anchor - position)
    )


def test_importance_adds_up_and_is_never_negative():
    network = small_network()
    method = attached("si", network, damping=0.1)
    method.before_domain("a")
    method.path = torch.linspace(-1, 1, len(method.anchor), dtype=torch.float64)
    method.after_domain("a", None)
    assert torch.equal(
        method.importance,
        (torch.linspace(-1, 1, len(method.anchor), dtype=torch.float64) / 0.1).clamp_min(0),
    )
    method.before_domain("b")
    assert float(method.path.abs().sum()) == 0
    method.path += 1
    once = method.importance.clone()
    method.after_domain("b", None)
    torch.testing.assert_close(method.importance, once + 10)


def test_weight_zero_and_the_first_domain_are_finetuning(blobs):
    assert (
        differences(
            weights(trained("si", blobs, penalty_weight=0)), weights(trained("finetune", blobs))
        )
        == []
    )
    assert (
        differences(
            weights(trained("si", blobs, domains=1)), weights(trained("finetune", blobs, domains=1))
        )
        == []
    )
    assert differences(weights(trained("si", blobs)), weights(trained("finetune", blobs)))


def test_clipping_bounds_every_entry():
    network = small_network()
    method = attached("si", network, clip=0.01)
    method.before_domain("a")
    method.update(drawing(6))
    assert float(flat(gradients(network)).abs().max()) == pytest.approx(0.01)
    assert float(method.gradient.abs().max()) > 0.01  # the path keeps the unclipped one
