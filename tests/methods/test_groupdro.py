"""GroupDRO: worked weights, replayed subsets, and the state of the shares."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import SGD

from farshore.base.forms import FormError
from farshore.data.batch import Batch
from farshore.learner.loading import load
from farshore.methods.groupdro import GroupDRO
from farshore.networks.network import Network
from farshore.testing import differences, toy_learned

LOSSES = (0.2, 1.0, 0.5)


def made(domains: int, step_size: float) -> GroupDRO:
    """The method after so many domains, at the start of the next; logits are the inputs."""
    method = GroupDRO(GroupDRO.Settings.build({"step_size": step_size}))
    linear = nn.Linear(2, 2, bias=False).double()
    nn.init.eye_(linear.weight)
    network = Network(nn.Identity(), linear)
    method.attach(network, None, torch.Generator(), lambda parameters: SGD(parameters, lr=0.1))
    for number in range(domains):
        method.before_domain(str(number))
        method.domains.append(str(number))
    method.before_domain("new")
    return method


def batch_of(losses: tuple[float, ...], domains: list[int]) -> Batch:
    """Two equal rows per domain, with this cross-entropy: log(1 + e^-a) for logits (a, 0)."""
    logits = [-math.log(math.exp(loss) - 1) for loss in losses for _ in range(2)]
    inputs = torch.tensor([[value, 0.0] for value in logits], dtype=torch.float64)
    labels = torch.zeros(len(logits), dtype=torch.long)
    return Batch(inputs, labels, rows=2, domains=torch.tensor(domains), replay_rows=2)


def test_worked_weights_of_two_domains() -> None:
    """q: (0.5 e^0.2, 0.5 e^1), divided by their sum; the current domain is the last."""
    method = made(1, step_size=1.0)
    loss = method.terms(batch_of((0.2, 1.0), [0]))["erm"]
    low, high = math.exp(0.2), math.exp(1.0)
    assert loss.item() == pytest.approx((0.2 * low + 1.0 * high) / (low + high))
    assert loss.item() == pytest.approx(0.751980, abs=1e-6)
    assert method.shares.tolist() == pytest.approx([0.689974, 0.310026], abs=1e-6)
    again = method.terms(batch_of((0.2, 1.0), [0]))["erm"]
    low, high = math.exp(0.4), math.exp(2.0)
    assert again.item() == pytest.approx((0.2 * low + 1.0 * high) / (low + high))


def test_only_drawn_domains_move_and_no_gradient_passes_their_shares() -> None:
    method = made(3, step_size=0.5)
    assert method.shares.tolist() == pytest.approx([0.25] * 4)
    loss = method.terms(batch_of(LOSSES, [2, 0]))["erm"]
    drawn = [0.25 * math.exp(0.5 * each) for each in LOSSES]  # current (3), 2, 0
    total = sum(drawn) + 0.25
    expected = [drawn[2] / total, 0.25 / total, drawn[1] / total, drawn[0] / total]
    assert method.shares.tolist() == pytest.approx(expected)
    assert loss.item() == pytest.approx(
        sum(share * each for share, each in zip(drawn, LOSSES, strict=True)) / sum(drawn)
    )
    assert not method.shares.requires_grad
    method.forget("1")
    assert method.shares.tolist() == pytest.approx([each / sum(drawn) for each in drawn[::-1]])


def test_one_domain_and_no_step_are_er() -> None:
    alone = Batch(*(lambda b: (b.inputs, b.labels))(batch_of((0.7,), [])), rows=2)
    assert made(0, 0.5).terms(alone)["erm"].item() == pytest.approx(0.7)
    still = made(1, 0.0)
    assert still.terms(batch_of((0.2, 1.0), [0]))["erm"].item() == pytest.approx(0.6)
    assert still.shares.tolist() == [0.5, 0.5]


def test_shares_are_saved_and_wrong_ones_refused(tmp_path: Path) -> None:
    learner = toy_learned("groupdro", domains=3, settings={"step_size": 0.5})
    shares = learner.system.method.shares
    assert len(shares) == 3
    assert shares.sum().item() == pytest.approx(1)
    assert len(set(shares.tolist())) == 3
    learner.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert differences(learner.state_dict(), again.state_dict()) == []
    with pytest.raises(FormError, match="a number per domain"):
        again.system.method.load_state_dict({"shares": torch.ones(5)})
