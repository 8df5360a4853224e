"""UPGD: the update's worked numbers, the gate's range, and the state that outlives domains."""

from __future__ import annotations

import math

import pytest
import torch
from attached import trained, weights
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import farshore
from farshore.methods.upgd import UPGD, UtilityGatedDescent, scaled_utilities
from farshore.testing import differences


def step(**settings):
    """One step on w = (1, -2), b = (0.5) with gradients (-0.2, -0.1) and (0.4)."""
    w, b = (
        nn.Parameter(torch.tensor(values, dtype=torch.float64)) for values in ([1.0, -2.0], [0.5])
    )
    w.grad, b.grad = (
        torch.tensor([-0.2, -0.1], dtype=torch.float64),
        torch.tensor([0.4], dtype=torch.float64),
    )
    settings = UPGD.Settings.build(
        {"learning_rate": 0.1, "noise": 0, "gate_scale": 1, "maximum": "raw", **settings}
    )
    optimizer = UtilityGatedDescent([w, b], settings, torch.Generator().manual_seed(0))
    optimizer.step()
    return [*w.tolist(), *b.tolist()]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"utility_decay": 0}, [1.0053788, -1.9926894, 0.4707577]),
        ({"utility_decay": 0.5, "weight_decay": 0.01}, [1.0013841, -1.9891920, 0.4642681]),
        (
            {"utility_decay": 0.5, "weight_decay": 0.01, "gate_scale": 2},
            [1.0037681, -1.9803841, 0.4290362],
        ),
        # Corrected above and below, the ratio is that of decay 0.
        ({"utility_decay": 0.5, "maximum": "corrected"}, [1.0053788, -1.9926894, 0.4707577]),
        ({"utility_decay": 0.5, "normalisation": "local"}, [1.0066048, -1.9933024, 0.4707577]),
        # Without noise, gating the noise alone is plain descent.
        ({"gated": "noise"}, [1.02, -1.99, 0.46]),
    ],
)
def test_worked_steps(settings, expected):
    assert step(**settings) == pytest.approx(expected, abs=1e-7)


def test_a_weight_of_utility_zero_moves_as_in_plain_descent():
    p = nn.Parameter(torch.tensor([0.0, 1.0], dtype=torch.float64))
    p.grad = torch.tensor([0.3, -0.3], dtype=torch.float64)
    settings = UPGD.Settings.build({"learning_rate": 0.1, "noise": 0})
    UtilityGatedDescent([p], settings, torch.Generator()).step()
    assert p.tolist()[0] == -0.1 * 0.3
    assert p.tolist()[1] == pytest.approx(1 + 2 * 0.1 * 0.3 * (1 - 1 / (1 + math.exp(-1))))


@given(
    st.integers(0, 10_000),
    st.sampled_from(["global", "local"]),
    st.sampled_from([0.0, 1e-30, 1.0, 1e15]),
)
def test_gate_lies_in_its_range(seed, normalisation, size):
    generator = torch.Generator().manual_seed(seed)
    utilities = [
        size * torch.randn(3, 2, generator=generator),
        size * torch.randn(4, generator=generator),
    ]
    scaled = scaled_utilities(utilities, normalisation, utilities)
    for s, utility in zip(scaled, utilities, strict=True):
        assert bool(
            ((s >= 0) & (s <= 1 / (1 + math.exp(-1)) + 1e-6)).all()
        )  # even the most useful weight moves
        if size >= 1 and normalisation == "local":
            assert torch.equal(s > 0.5, utility > 0)


@pytest.mark.parametrize("utilities", [[0.0, 0.0], [-1.0, -2.0], [float("inf"), 1.0]])
def test_a_maximum_that_cannot_scale_opens_every_gate_by_half(utilities):
    (s,) = scaled_utilities([torch.tensor(utilities)], "global", [torch.tensor(utilities)])
    assert s.tolist() == [0.5, 0.5]


def test_a_parameter_without_gradient_stays_and_does_not_count():
    used, unused = (
        nn.Parameter(torch.tensor([value], dtype=torch.float64)) for value in (1.0, 100.0)
    )
    used.grad = torch.tensor([-0.2], dtype=torch.float64)
    optimizer = UtilityGatedDescent(
        [used, unused], UPGD.Settings.build({"weight_decay": 0.5}), torch.Generator()
    )
    optimizer.step()
    assert unused.tolist() == [100.0]
    assert unused not in optimizer.state


def test_noise_has_its_standard_deviation_and_comes_from_the_methods_generator():
    def moved(seed, noise):
        p = nn.Parameter(torch.zeros(20_000, dtype=torch.float64))
        p.grad = torch.zeros_like(p)
        optimizer = UtilityGatedDescent(
            [p],
            UPGD.Settings.build({"noise": noise, "learning_rate": 0.5}),
            torch.Generator().manual_seed(seed),
        )
        optimizer.step()
        return p.detach()

    assert float(moved(0, 0.1).std()) == pytest.approx(2 * 0.5 * 0.1 * 0.5, rel=0.02)
    assert torch.equal(moved(0, 0.1), moved(0, 0.1))
    assert not torch.equal(moved(0, 0.1), moved(1, 0.1))
    assert float(moved(0, 0).abs().sum()) == 0


@pytest.mark.parametrize("reset", ["never", "domain"])
def test_utilities_survive_domains_and_disk(blobs, tmp_path, reset):
    learner = trained("upgd", blobs, domains=2, reset_optimizer=reset)
    (optimizer,) = learner.system.method.opts
    assert {float(state["steps"]) for state in optimizer.state.values()} == {24.0}
    learner.save(tmp_path / "model")
    loaded = farshore.load(tmp_path / "model")
    assert differences(learner.state_dict(), loaded.state_dict()) == []
    for each in (learner, loaded):
        each.learn(*blobs(2), domain="2", steps=12)
    assert differences(learner.state_dict(), loaded.state_dict()) == []
    assert differences(weights(learner), weights(trained("upgd", blobs))) == []


def test_gate_is_logged(blobs):
    learner = trained("upgd", blobs, domains=1)
    assert 0.26 < float(learner.system.method.descent.gate) < 1
