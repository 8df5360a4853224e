"""EWC: the Fisher information's and the penalty's worked numbers."""

from __future__ import annotations

import pytest
import torch
from attached import attached, drawing, gradients, rows, small_network, trained, weights
from torch import nn

from farshore.data.domain import Rows
from farshore.methods.ewc import fisher_information, spring
from farshore.methods.gradient import flat
from farshore.networks.network import Network
from farshore.testing import differences


def as_rows(inputs, labels):
    return Rows(inputs, labels, torch.arange(len(labels)))


def test_penalty_and_its_gradient():
    fisher = 0.9 * torch.tensor([0.4, 0.1], dtype=torch.float64) + torch.tensor(
        [0.2, 0.3], dtype=torch.float64
    )
    theta = torch.tensor([1.5, -1.0], dtype=torch.float64, requires_grad=True)
    penalty = 10 * spring(fisher, theta, torch.tensor([1.0, -0.8], dtype=torch.float64))
    penalty.backward()
    assert float(penalty.detach()) == pytest.approx(1.556)
    torch.testing.assert_close(theta.grad, torch.tensor([5.6, -1.56], dtype=torch.float64))


@pytest.mark.parametrize(("kind", "expected"), [("weighted", 0.3125), ("empirical", 0.625)])
def test_fisher_of_two_rows_by_hand(kind, expected):
    classifier = nn.Linear(1, 2, bias=False).double()
    nn.init.zeros_(classifier.weight)
    two = as_rows(torch.tensor([[2.0], [1.0]], dtype=torch.float64), torch.tensor([0, 1]))
    found = fisher_information(Network(nn.Identity(), classifier), two, torch.arange(2), kind)
    torch.testing.assert_close(found, torch.tensor([expected, expected], dtype=torch.float64))


def test_fisher_squares_row_by_row_in_evaluation_mode_and_moves_nothing(monkeypatch):
    torch.manual_seed(0)
    features = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.5))
    network = Network(features, nn.Linear(5, 3)).double()
    network(rows(20)[0])
    before = {name: value.clone() for name, value in network.state_dict().items()}
    inputs, labels = rows(7)
    network.eval()
    expected = 0
    for x, y in zip(inputs, labels, strict=True):
        log = network(x[None]).log_softmax(dim=1)[0, y]
        gradient = flat(torch.autograd.grad(log, list(network.parameters())))
        expected = expected + float(log.detach().exp()) * gradient.square() / 7
    network.train()
    found = fisher_information(network, as_rows(inputs, labels), torch.arange(7), "weighted")
    torch.testing.assert_close(found, expected)
    monkeypatch.setattr("farshore.methods.ewc.LARGEST_BLOCK", 1)
    torch.testing.assert_close(
        fisher_information(network, as_rows(inputs, labels), torch.arange(7), "weighted"), expected
    )
    assert differences(before, dict(network.state_dict())) == []
    assert float(found.min()) >= 0


def test_fisher_decays_and_the_anchor_is_the_last_domains_end():
    network = small_network()
    method = attached("ewc", network, decay=0.9, penalty_weight=2.0)
    first, second = as_rows(*rows(9, seed=1)), as_rows(*rows(9, seed=2))
    method.after_domain("a", first)
    of_first = method.fisher.clone()
    method.before_domain("b")
    method.after_domain("b", second)
    of_second = fisher_information(network, second, torch.arange(9), "weighted")
    torch.testing.assert_close(method.fisher, 0.9 * of_first + of_second)
    method.before_domain("c")
    batch = drawing(5)
    terms = method.update(batch)  # right at the anchor: no penalty, no gradient of it
    assert float(terms["penalty"]) == 0.0
    plain = small_network()
    attached("finetune", plain).update(batch)
    assert all(torch.equal(a, b) for a, b in zip(gradients(network), gradients(plain), strict=True))
    assert float(method.update(batch)["penalty"]) > 0  # the step has left the anchor


def test_without_decay_only_the_newest_domain_counts():
    method = attached("ewc", small_network(), decay=0.0)
    for seed in (1, 2):
        method.after_domain(str(seed), as_rows(*rows(9, seed=seed)))
    torch.testing.assert_close(
        method.fisher,
        fisher_information(method.network, as_rows(*rows(9, seed=2)), torch.arange(9), "weighted"),
    )


def test_stronger_springs_hold_the_weights_nearer(blobs):
    start = flat(weights(trained("ewc", blobs, domains=1)).values())
    moved = [
        float(
            (
                flat(weights(trained("ewc", blobs, domains=2, penalty_weight=weight)).values())
                - start
            ).norm()
        )
        for weight in (0, 1e2, 1e6)
    ]
    assert moved[0] > moved[1] > moved[2]


def test_weight_zero_and_the_first_domain_are_finetuning(blobs):
    assert (
        differences(
            weights(trained("ewc", blobs, penalty_weight=0)), weights(trained("finetune", blobs))
        )
        == []
    )
    assert (
        differences(
            weights(trained("ewc", blobs, domains=1)),
            weights(trained("finetune", blobs, domains=1)),
        )
        == []
    )
    assert differences(weights(trained("ewc", blobs)), weights(trained("finetune", blobs)))


@pytest.mark.parametrize("kind", ["weighted", "empirical"])
def test_linear_layers_by_their_identity_equal_gradients_of_single_rows(kind, monkeypatch):
    torch.manual_seed(0)
    hidden = nn.Linear(4, 5, bias=False)
    layers = [
        hidden,
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(5, 5),
        nn.ReLU(inplace=True),
    ]
    network = Network(nn.Sequential(*layers), nn.Linear(5, 3)).double()
    network.features[3].bias.requires_grad_(False)
    some = as_rows(*rows(9))
    monkeypatch.setattr("farshore.methods.ewc._row_by_row", None)
    found = fisher_information(network, some, torch.arange(9), kind)
    monkeypatch.undo()
    monkeypatch.setattr("farshore.methods.ewc._by_layer", lambda *_: None)
    torch.testing.assert_close(found, fisher_information(network, some, torch.arange(9), kind))
    assert not hidden._forward_hooks


def test_a_layer_that_is_used_twice_gets_gradients_of_single_rows():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.layer(self.layer(inputs).relu())

    torch.manual_seed(0)
    network = Network(Twice(), nn.Linear(4, 3), feature_dim=4).double()
    inputs, labels = rows(6)
    expected = 0
    for x, y in zip(inputs, labels, strict=True):
        log = network(x[None]).log_softmax(dim=1)[0, y]
        gradient = flat(torch.autograd.grad(log, list(network.parameters())))
        expected = expected + gradient.square() / 6
    found = fisher_information(network, as_rows(inputs, labels), torch.arange(6), "empirical")
    torch.testing.assert_close(found, expected)
