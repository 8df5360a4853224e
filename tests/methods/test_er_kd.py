"""er-kd with a slow teacher: worked numbers, a second implementation, resume, and class growth.

What it does with stored logits is in test_mix.py.
"""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from attached import attached, small_network
from torch import nn

from farshore import Learner, load
from farshore.data.batch import Batch
from farshore.errors import FarshoreError
from farshore.networks.network import Network
from farshore.tasks.classification import empirical_risk
from farshore.testing import check_method, differences, toy_learned, toy_learner, toy_rows

EMA = {"teacher": "ema"}


def replaying(rows: int = 4, width: int = 4, seed: int = 3) -> Batch:
    """Current rows, then as many of each of two past domains, with stored logits of zero."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(3 * rows, width, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (3 * rows,), generator=generator)
    return Batch(
        inputs,
        labels,
        rows=rows,
        domains=torch.arange(2),
        replay_rows=rows,
        stored={"logits": torch.zeros(2, rows, 3, dtype=torch.float64)},
    )


def test_the_teacher_by_worked_numbers() -> None:
    """Weights 0, 6, 0, 8 with d = 0.7: 0, (0 + 6)/2 = 3, 2/3 · 3 = 2, and 0.7 · 2 + 0.3 · 8 = 3.8.

    The third step would have 1 - 1/4 = 0.75 as a plain mean; d is less.
    """
    network = Network(nn.Identity(), nn.Linear(1, 1, bias=False)).double()
    nn.init.zeros_(network.classifier.weight)
    method, batch = attached("er-kd", network, **EMA, teacher_decay=0.7), replaying()
    seen = [float(method.teacher.classifier.weight)]
    for weight in (6.0, 0.0, 8.0):
        nn.init.constant_(network.classifier.weight, weight)
        method.after_step(batch)
        seen.append(float(method.teacher.classifier.weight))
    assert seen == pytest.approx([0.0, 3.0, 2.0, 3.8])


def test_steps_equal_those_of_a_second_implementation() -> None:
    network, decay, weight = small_network(), 0.6, 0.4
    by_hand, slow = deepcopy(network), deepcopy(network)
    method = attached(
        "er-kd", network, rate=0.1, **EMA, teacher_decay=decay, distillation_weight=weight
    )
    optimizer = torch.optim.SGD(by_hand.parameters(), lr=0.1)
    for step in range(1, 6):
        batch = replaying(seed=step)
        terms = method.update(batch)
        method.after_step(batch)
        optimizer.zero_grad()
        distance = torch.zeros((), dtype=torch.float64)
        for row in range(4, 12):
            x = batch.inputs[row : row + 1]
            distance = distance + (by_hand(x) - slow(x).detach()).square().sum() / (8 * 3)
        loss = empirical_risk(by_hand(batch.inputs), batch.labels) + weight * distance
        loss.backward()
        optimizer.step()
        assert float(terms["distillation"]) == pytest.approx(float(distance.detach()), abs=1e-12)
        kept = min(1 - 1 / (step + 1), decay)
        with torch.no_grad():
            for own, trained in zip(slow.parameters(), by_hand.parameters(), strict=True):
                own.copy_(kept * own + (1 - kept) * trained)
    for one, other in ((network, by_hand), (method.teacher, slow)):
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b)
    assert float(distance.detach()) > 0


def test_it_passes_the_battery() -> None:
    check_method("er-kd", settings=EMA)


def test_without_a_teacher_nothing_is_kept_and_the_first_domain_is_er() -> None:
    assert toy_learned("er-kd").system.method.state_dict() == {}
    one, other = (
        toy_learned(name, domains=1, settings=s) for name, s in (("er-kd", EMA), ("er", {}))
    )
    assert differences(network_of(one), network_of(other)) == []
    assert differences(
        network_of(toy_learned("er-kd")), network_of(toy_learned("er-kd", settings=EMA))
    )


def network_of(learner: Learner) -> dict[str, torch.Tensor]:
    return learner.state_dict()["system"]["network"]


def test_forgetting_and_growing_keep_the_teacher(tmp_path) -> None:
    learner = toy_learned("er-kd", domains=2, settings=EMA)
    slow = learner.system.method.teacher
    before = {name: value.clone() for name, value in slow.state_dict().items()}
    learner.forget("d0")
    assert differences(before, dict(slow.state_dict())) == []
    learner.grow([7, 5])
    method = learner.system.method
    for name, value in method.teacher.state_dict().items():
        old = before[name]
        assert torch.equal(value[: len(old)], old)
        assert torch.equal(value[len(old) :], method.network.state_dict()[name][len(old) :])
    learner.learn(*toy_rows(2, classes=2), domain="d2", steps=3)
    learner.save(tmp_path)
    assert differences(learner.state_dict(), load(tmp_path).state_dict()) == []


def test_batchnorm_statistics_are_the_networks() -> None:
    from farshore.testing.toys import toy_image_network, toy_images

    learner = toy_learner("er-kd", network=toy_image_network(), network_settings=None, settings=EMA)
    for number in range(2):
        learner.learn(*toy_images(number), domain=f"d{number}", steps=4)
    method = learner.system.method
    for own, trained in zip(method.teacher.batchnorms(), method.network.batchnorms(), strict=True):
        assert not own.training
        assert torch.equal(own.running_mean, trained.running_mean)
        assert not torch.equal(own.weight, trained.weight)


@pytest.mark.parametrize("given", [{"teacher": "slow"}, {"teacher_decay": 1.0}])
def test_wrong_settings_are_refused(given: dict) -> None:
    with pytest.raises(FarshoreError, match=next(iter(given))):
        toy_learner("er-kd", settings=given)
