"""LODE: cross-entropy splits exactly, and ρ acts where classes are missing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from farshore.learner.learner import Learner
from farshore.methods.lode import LODESettings, decoupled
from farshore.settings import Choice

Z = (1.0, 2.0, 0.0)
NEW = torch.tensor([False, True, True])
Y = torch.tensor([1])


def parts(new: Tensor = NEW) -> tuple[Tensor, Tensor, Tensor]:
    z = torch.tensor([Z], dtype=torch.float64, requires_grad=True)
    inter, intra = decoupled(z, Y, new)
    return z, inter[0], intra[0]


def value(loss: Tensor) -> float:
    return float(loss.detach())


def gradient(loss: Tensor, z: Tensor) -> list[float]:
    return torch.autograd.grad(loss.sum(), z, retain_graph=True)[0][0].tolist()


def test_worked_numbers() -> None:
    z, inter, intra = parts()
    assert value(inter) == pytest.approx(0.280678, abs=1e-6)
    assert value(intra) == pytest.approx(0.126928, abs=1e-6)
    assert value(inter + intra) == pytest.approx(0.407606, abs=1e-6)
    assert value(0.1 * inter + intra) == pytest.approx(0.154996, abs=1e-6)
    assert value(0.1 / 2 * inter + intra) == pytest.approx(0.140962, abs=1e-6)
    assert gradient(inter, z) == pytest.approx([0.244728, -0.215556, -0.029172], abs=1e-6)
    assert gradient(intra, z) == pytest.approx([0, -0.119203, 0.119203], abs=1e-6)
    assert gradient(0.1 * inter + intra, z) == pytest.approx(
        [0.024473, -0.140759, 0.116286], abs=1e-6
    )


def test_the_parts_are_the_cross_entropy() -> None:
    generator = torch.Generator().manual_seed(0)
    z = 5 * torch.randn(40, 7, generator=generator, dtype=torch.float64)
    new = torch.tensor([True, False, True, True, False, True, False])
    y = torch.tensor([0, 2, 3, 5]).repeat(10)
    inter, intra = decoupled(z, y, new)
    torch.testing.assert_close(
        inter + intra, cross_entropy(z, y, reduction="none"), rtol=0, atol=1e-12
    )
    assert bool((inter > 0).all())
    assert bool((intra > 0).all())


def test_without_old_classes_there_is_nothing_to_decouple() -> None:
    z, inter, intra = parts(torch.tensor([True, True, True]))
    assert value(inter) == 0
    assert gradient(inter, z) == [0, 0, 0]
    assert value(intra) == pytest.approx(0.407606, abs=1e-6)


def test_logits_of_any_size_stay_finite() -> None:
    z = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    inter, intra = decoupled(z, torch.tensor([1]), torch.tensor([False, True, False]))
    (inter + intra).sum().backward()
    assert value(inter) == 2e4
    assert value(intra) == 0
    assert bool(torch.isfinite(z.grad).all())


def domain(number: int, classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(number)
    y = torch.arange(60) % classes
    return torch.randn(60, 4, generator=generator) + y[:, None] + number, y


def trained(classes: int = 3, domains: int = 2, **settings: object) -> Learner:
    learner = Learner(
        method="lode",
        memory=20,
        settings={"learning_rate": 0.01, **settings},
        network_settings={"width": 8},
        preprocess="none",
    )
    for number in range(domains):
        learner.learn(*domain(number, classes), domain=f"{number}", steps=5)
    return learner


def weights(learner: Learner) -> Tensor:
    return torch.cat([p.detach().flatten() for p in learner.system.method.network.parameters()])


def test_the_published_split_is_inert_where_every_domain_has_all_classes() -> None:
    one, other = (trained(rho=rho, split="domain", batch_size=64) for rho in (0.01, 0.2))
    assert torch.equal(weights(one), weights(other))


def test_the_split_by_batch_acts() -> None:
    one, other = (trained(rho=rho, batch_size=2) for rho in (0.01, 0.2))
    assert not torch.equal(weights(one), weights(other))


def test_rho_does_nothing_in_the_first_domain() -> None:
    one, other = (trained(rho=rho, batch_size=2, domains=1) for rho in (0.01, 0.2))
    assert torch.equal(weights(one), weights(other))


@pytest.mark.parametrize(
    ("weighting", "expected"), [("domains", 0.1 / 2), ("classes", 0.1 * 2 / 1)]
)
def test_the_weight_of_inter(weighting: str, expected: float) -> None:
    method = trained(weighting=weighting, batch_size=4).system.method
    assert float(method._weight(NEW)) == pytest.approx(expected)


def test_classes_of_finished_domains_are_old() -> None:
    learner = Learner(
        method="lode",
        memory=20,
        settings={"split": "domain", "batch_size": 32},
        classes=[0, 1, 2, 3],
        preprocess="none",
    )
    learner.learn(*domain(0, 2), domain="a", steps=3)
    method = learner.system.method
    method.before_domain("b")
    method.current.index_fill_(0, torch.tensor([1]), True)
    # 0 is old; 1 came again; 2 and 3 never came.
    assert method._new_classes(torch.tensor([1])).tolist() == [False, True, True, True]


def test_the_papers_table() -> None:
    assert LODESettings.defaults()["rho"] == 0.1
    assert LODESettings.distributions()["rho"] == Choice((0.01, 0.05, 0.1, 0.2))
