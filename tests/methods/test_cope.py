"""CoPE: the pseudo-prototypical loss against worked numbers and a slow second implementation;
prototypes move as stated.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.methods.cope import CoPESettings, PrototypeHead, moved, pseudo_prototype_loss
from farshore.settings import Choice, Uniform

AXES = torch.eye(2, dtype=torch.float64)


def loss(rows: list[tuple[float, float]], labels: list[int], temperature: float) -> float:
    directions = torch.tensor(rows, dtype=torch.float64)
    return float(
        pseudo_prototype_loss(directions, torch.tensor(labels), AXES, temperature, repel_both=True)
    )


@pytest.mark.parametrize(
    ("temperature", "expected"), [(1, 0.626523), (0.5, 0.253856), (0.1, 9.0798e-5)]
)
def test_two_rows_on_their_prototypes(temperature: float, expected: float) -> None:
    assert loss([(1, 0), (0, 1)], [0, 1], temperature) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("temperature", "expected"), [(1, 1.118367), (0.1, 1.438909)])
def test_three_rows(temperature: float, expected: float) -> None:
    assert loss([(1, 0), (0.6, 0.8), (0, 1)], [0, 0, 1], temperature) == pytest.approx(
        expected, rel=1e-6
    )


def test_one_class_has_no_repellor() -> None:
    assert loss([(1, 0), (0.6, 0.8)], [0, 0], 1) == pytest.approx(0.585793, abs=1e-6)


def slow(
    directions: Tensor, labels: Tensor, prototypes: Tensor, temperature: float, both: bool
) -> Tensor:
    """Row by row, as the equation is printed."""
    count = len(labels)

    def ratio(anchor: Tensor, q: Tensor, c: int) -> Tensor:
        own = (q @ anchor / temperature).exp()
        rest = sum(
            (prototypes[k] @ anchor / temperature).exp() for k in range(len(prototypes)) if k != c
        )
        return own / (own + rest)

    total = directions.new_zeros(())
    for i in range(count):
        c = int(labels[i])
        mates = [j for j in range(count) if labels[j] == c]
        inside = ratio(directions[i], prototypes[c], c)
        for j in mates:
            if j != i:
                inside = inside + ratio(directions[i], directions[j].detach(), c)
        total = total - (inside / len(mates)).log()
        for j in range(count):
            if labels[j] != c:
                pushing = directions[i] if both else directions[i].detach()
                total = (
                    total
                    - (
                        1
                        - 0.5
                        * (
                            ratio(directions[j], pushing, c)
                            + ratio(directions[j], prototypes[c], c)
                        )
                    ).log()
                )
    return total / count


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("classes", [2, 4])
def test_value_and_gradient_against_the_slow_form(both: bool, classes: int) -> None:
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(9, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (9,), generator=generator)
    prototypes = normalize(torch.rand(classes, 5, generator=generator, dtype=torch.float64), dim=1)
    found = []
    for form in (
        lambda f: pseudo_prototype_loss(f, labels, prototypes, 0.5, repel_both=both),
        lambda f: slow(f, labels, prototypes, 0.5, both),
    ):
        directions = normalize(raw, dim=1).requires_grad_()
        value = form(directions)
        found.append((value.detach(), torch.autograd.grad(value, directions)[0]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_the_order_of_rows_does_not_matter() -> None:
    generator = torch.Generator().manual_seed(1)
    directions = normalize(torch.randn(8, 3, generator=generator, dtype=torch.float64), dim=1)
    labels = torch.arange(8) % 2
    order = torch.randperm(8, generator=generator)
    prototypes = torch.eye(2, 3, dtype=torch.float64)
    one = pseudo_prototype_loss(directions, labels, prototypes, 1.0, repel_both=True)
    other = pseudo_prototype_loss(
        directions[order], labels[order], prototypes, 1.0, repel_both=True
    )
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("temperature", [0.01, 0.005])
def test_low_temperatures_stay_finite_in_float32(temperature: float) -> None:
    directions = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    value = pseudo_prototype_loss(
        directions, torch.tensor([0, 1, 1]), torch.eye(2), temperature, repel_both=True
    )
    value.backward()
    assert bool(torch.isfinite(value))
    assert bool(torch.isfinite(directions.grad).all())


def test_prototypes_follow_the_mean() -> None:
    old = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    sums, counts = (
        torch.tensor([[1.2, 1.6], [0.0, 0.0]], dtype=torch.float64),
        torch.tensor([2.0, 0.0], dtype=torch.float64),
    )
    plain = moved(old, sums, counts, 0.9, unit=False)
    assert plain.tolist() == [pytest.approx([0.96, 0.08]), [0.0, 1.0]]
    assert float(plain[0].norm()) == pytest.approx(0.963328, abs=1e-6)
    assert moved(old, sums, counts, 0.9, unit=True)[0].tolist() == pytest.approx(
        [0.996546, 0.083045], abs=1e-6
    )


def domain(number: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(number)
    y = torch.arange(60) % 3
    return 3 * torch.eye(3, 4)[y] + 0.4 * torch.randn(60, 4, generator=generator) + 0.5 * number, y


def trained(domains: int = 2, steps: int = 6, **settings: object) -> Learner:
    learner = Learner(
        method="cope",
        memory=12,
        settings={"batch_size": 8, **settings},
        network_settings={"width": 8},
        preprocess="none",
    )
    for number in range(domains):
        learner.learn(*domain(number), domain=f"{number}", steps=steps)
    return learner


def head(learner: Learner) -> PrototypeHead:
    found = learner.system.method.network.classifier
    assert isinstance(found, PrototypeHead)
    return found


def test_unit_length_where_that_reading_is_on() -> None:
    lengths = head(trained(reading="avalanche")).prototypes.norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(3))
    assert float(head(trained()).prototypes.norm(dim=1).max()) < 1 - 1e-4


def test_prototypes_begin_as_the_reading_says() -> None:
    torch.manual_seed(0)
    positive, all_around = (
        PrototypeHead(4, 5, dimension=20, temperature=1.0, positive=value)
        for value in (True, False)
    )
    assert float(positive.prototypes.min()) >= 0
    assert float(all_around.prototypes.min()) < 0
    for made in (positive, all_around):
        torch.testing.assert_close(made.prototypes.norm(dim=1), torch.ones(5))


def test_the_features_can_be_the_embedding() -> None:
    learner = trained(embedding="features")
    network = learner.system.method.network
    assert head(learner).prototypes.shape == (3, network.feature_dim)
    assert list(head(learner).parameters()) == []
    x, _ = domain(0)
    with torch.no_grad():
        features = network.extract(x)
        unit = features / features.norm(dim=1, keepdim=True)
        torch.testing.assert_close(network(x), unit @ head(learner).prototypes.T)


def test_prototypes_take_no_gradient_and_momentum_one_leaves_them() -> None:
    fresh, still = (
        trained(domains=1, steps=1, prototype_momentum=1.0),
        trained(prototype_momentum=1.0),
    )
    assert torch.equal(head(fresh).prototypes, head(still).prototypes)
    assert not head(trained()).prototypes.requires_grad
    assert not torch.equal(head(trained()).prototypes, head(still).prototypes)


def test_prediction_is_the_nearest_prototype() -> None:
    learner = trained(steps=40)
    x, y = domain(1)
    network = learner.system.method.network
    with torch.no_grad():
        directions = head(learner).direction(network.extract(x))
    expected = (directions @ head(learner).prototypes.T).argmax(dim=1)
    assert learner.predict(x).tolist() == expected.tolist()
    assert float((expected == y).float().mean()) > 0.9


def test_saved_with_the_network(tmp_path: Path) -> None:
    learner = trained()
    learner.save(tmp_path)
    assert torch.equal(head(load(tmp_path)).prototypes, head(learner).prototypes)
    assert learner.system.method.state_dict() == {}


def test_each_repeat_steps_once() -> None:
    for repeats in (1, 4):
        learner = trained(repeats=repeats, steps=5)
        counted = {int(state["step"]) for state in learner.system.method.opts[0].state.values()}
        assert counted == {2 * 5 * repeats}


def test_current_rows_enter_the_prototypes_once_and_replayed_ones_every_time() -> None:
    seen: list[float] = []

    def watch(prototypes, sums, counts, momentum, *, unit):
        seen.append(float(counts.sum()))
        return prototypes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farshore.methods.cope.moved", watch)
        trained(repeats=3, steps=1)
        trained(repeats=3, steps=1, reading="avalanche")
    assert seen == [8, 8 + 3 * 8, 3 * 8, 3 * 16]


def test_the_papers_table() -> None:
    defaults, searched = CoPESettings.defaults(), CoPESettings.distributions()
    assert (defaults["temperature"], defaults["prototype_momentum"], defaults["repeats"]) == (
        1,
        0.9,
        3,
    )
    assert searched["temperature"] == Uniform(0.5, 1.0)
    assert searched["prototype_momentum"] == Choice((0.8, 0.9, 1.0))
    assert searched["repeats"] == Choice((1, 2, 3, 4, 5))
