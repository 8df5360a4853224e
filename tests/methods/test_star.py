"""STAR: the perturbation has the stated length, the weights stay, and without it STAR is its
host.
"""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from farshore.data.batch import Batch, Draw
from farshore.learner.learner import Learner
from farshore.methods.star import STAR, STARSettings, divergence
from farshore.networks.mlp import mlp
from farshore.networks.network import Network
from farshore.settings import Uniform


def attached(network: Network, **settings: object) -> STAR:
    method = STAR(STARSettings(**settings))
    method.attach(
        network,
        None,
        torch.Generator().manual_seed(0),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    )
    return method


def two_classes() -> Network:
    network = Network(nn.Identity(), nn.Linear(1, 2, bias=False)).double()
    network.classifier.weight.data = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    return network


def value(logits: Tensor, anchor: Tensor, right: Tensor) -> float:
    return float(divergence(logits, anchor, right).detach())


def draw(inputs: Tensor, labels: Tensor, classes: int = 2) -> Draw:
    return Draw(inputs, labels, {"logits": torch.zeros(len(labels), classes, dtype=inputs.dtype)})


def test_closed_form() -> None:
    found = set()
    for seed in range(8):
        network = two_classes()
        method = attached(network, gamma=0.1)
        method.generator.manual_seed(seed)
        value = method._stability(draw(torch.ones(2, 1, dtype=torch.float64), torch.tensor([0, 0])))
        value.backward()
        reached = float(value.detach())
        slope = float(network.classifier.weight.grad[0])
        assert float(network.classifier.weight.grad[1]) == pytest.approx(-slope)
        if slope > 0:
            assert (reached, slope) == pytest.approx((0.00192276, 0.0268819), rel=1e-5)
        else:
            assert (reached, slope) == pytest.approx((0.00200830, -0.0286950), rel=1e-5)
        found.add(slope > 0)
    assert found == {True, False}  # the noise decides which way


def cloud(rows: int = 12) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(rows, 4, generator=generator), torch.arange(rows) % 3


def network_and_draw() -> tuple[Network, Tensor, Tensor]:
    torch.manual_seed(0)
    network = mlp((4,), 3, width=8)
    inputs, _ = cloud()
    return network, inputs, network(inputs).detach().log_softmax(dim=1)


def test_each_matrix_moves_by_gamma_of_its_norm_and_nothing_else_moves() -> None:
    network, inputs, anchor = network_and_draw()
    delta = attached(network, gamma=0.03)._perturbation(
        inputs, anchor, torch.ones(12, dtype=torch.bool)
    )
    assert set(delta) == {
        name for name, parameter in network.named_parameters() if parameter.ndim >= 2
    }
    for name, part in delta.items():
        assert float(part.norm() / network.get_parameter(name).detach().norm()) == pytest.approx(
            0.03, rel=1e-5
        )


def test_several_ascent_steps_stay_within_gamma_and_go_further_up() -> None:
    network, inputs, anchor = network_and_draw()
    right = torch.ones(12, dtype=torch.bool)
    reached = {}
    for steps in (1, 8):
        delta = attached(network, gamma=0.3, ascent_steps=steps)._perturbation(
            inputs, anchor, right
        )
        for name, part in delta.items():
            assert float(part.norm() / network.get_parameter(name).detach().norm()) <= 0.3 * (
                1 + 1e-5
            )
        moved = {name: network.get_parameter(name) + part for name, part in delta.items()}
        reached[steps] = value(torch.func.functional_call(network, moved, (inputs,)), anchor, right)
    assert reached[8] > 0
    assert reached[1] > 0


def test_the_ascent_finds_a_worse_place_than_chance() -> None:
    network, inputs, anchor = network_and_draw()
    right = torch.ones(12, dtype=torch.bool)

    def at(delta: dict[str, Tensor]) -> float:
        moved = {name: network.get_parameter(name) + part for name, part in delta.items()}
        return value(torch.func.functional_call(network, moved, (inputs,)), anchor, right)

    method = attached(network, gamma=0.05)
    chance = []
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        drawn = {
            name: torch.randn(p.shape, generator=generator)
            for name, p in network.named_parameters()
            if p.ndim >= 2
        }
        chance.append(
            at(
                {
                    n: 0.05 * network.get_parameter(n).norm() * part / part.norm()
                    for n, part in drawn.items()
                }
            )
        )
    assert at(method._perturbation(inputs, anchor, right)) > max(chance)


def test_the_official_noise_vanishes_in_float32() -> None:
    weight = torch.randn(8, 4)
    method = attached(two_classes(), noise=1e-20)
    assert torch.equal(weight + method._noise(weight, weight.norm()), weight)


def batch_with_draws() -> Batch:
    x, y = cloud()
    stored = {"logits": torch.ones(12, 3)}
    return Batch(
        x, y, rows=12, draws={"replay": Draw(x + 1, y, stored), "stability": Draw(x - 1, y, stored)}
    )


@pytest.mark.parametrize("host", ["er", "der++"])
def test_the_weights_are_where_they_were(host: str) -> None:
    network = network_and_draw()[0]
    before = copy.deepcopy(network.state_dict())
    terms = attached(network, host=host, gamma=0.05).gradients(batch_with_draws())
    assert float(terms["stability"].detach()) > 0
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_fewer_than_two_right_rows_give_nothing() -> None:
    network, inputs, anchor = network_and_draw()
    wrong = (anchor.argmax(dim=1) + 1) % 3
    wrong[0] = anchor[0].argmax()
    value = attached(network)._stability(draw(inputs, wrong, 3))
    value.backward()
    assert float(value.detach()) == 0
    assert all(float(p.grad.abs().max()) == 0 for p in network.parameters() if p.grad is not None)


def test_divergence_goes_from_the_unperturbed_to_the_perturbed() -> None:
    anchor = torch.tensor([[0.9, 0.1], [0.9, 0.1]], dtype=torch.float64).log()
    other = torch.tensor([[0.5, 0.5], [0.5, 0.5]], dtype=torch.float64).log()
    expected = 0.9 * (torch.tensor(1.8).double().log()) + 0.1 * (torch.tensor(0.2).double().log())
    right = torch.tensor([True, True])
    torch.testing.assert_close(divergence(other, anchor, right), expected)
    assert float(divergence(other, anchor, torch.tensor([True, False]))) == 0


def test_batchnorm_statistics_are_left_alone() -> None:
    features = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU())
    network = Network(features, nn.Linear(6, 3)).train()
    before = copy.deepcopy(dict(network.named_buffers()))
    inputs, _ = cloud()
    attached(network)._stability(draw(inputs, torch.zeros(12, dtype=torch.long), 3))
    assert all(torch.equal(buffer, before[name]) for name, buffer in network.named_buffers())


def test_the_hosts() -> None:
    network, batch = network_and_draw()[0], batch_with_draws()
    x, y, again = batch.inputs, batch.labels, batch.draws["replay"]
    terms = attached(network, stability_weight=0).terms(batch)
    assert set(terms) == {"erm"}
    torch.testing.assert_close(
        terms["erm"],
        cross_entropy(network(torch.cat([x, again.inputs])), torch.cat([y, again.labels])),
    )
    terms = attached(network, stability_weight=0, host="der++").terms(batch)
    torch.testing.assert_close(terms["erm"], cross_entropy(network(x), y))
    torch.testing.assert_close(terms["replay"], cross_entropy(network(again.inputs), again.labels))
    torch.testing.assert_close(
        terms["distillation"], mse_loss(network(again.inputs), again.stored["logits"])
    )
    assert batch.outputs["logits"].shape == (12, 3)


def trained(**settings: object) -> Tensor:
    learner = Learner(
        method="star",
        memory=20,
        settings={"batch_size": 8, **settings},
        network_settings={"width": 8},
        preprocess="none",
    )
    for number in range(3):
        x, y = cloud(48)
        learner.learn(x + number, y, domain=f"{number}", steps=4)
    return torch.cat([p.detach().flatten() for p in learner.system.method.network.parameters()])


def test_without_weight_or_radius_it_is_its_host() -> None:
    plain = trained(stability_weight=0)
    assert torch.equal(plain, trained(gamma=0))
    assert not torch.equal(plain, trained(stability_weight=1.0))


def test_the_papers_table() -> None:
    defaults, searched = STARSettings.defaults(), STARSettings.distributions()
    assert (defaults["gamma"], defaults["stability_weight"]) == (0.01, 0.01)
    assert searched["gamma"] == searched["stability_weight"] == Uniform(0.01, 0.05)
