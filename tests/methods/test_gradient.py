"""Gradients per domain: those of the first losses apart, of the second ones summed."""

from __future__ import annotations

import pytest
import torch
from attached import rows
from torch import Tensor, nn

from farshore.data.batch import Batch
from farshore.methods import gradient
from farshore.methods.gradient import domain_gradients, flat
from farshore.networks.network import Network


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("distilled", [True, False])
def test_gradients_per_domain_equal_those_of_single_losses(
    joint: bool, distilled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network = Network(
        nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU()), nn.Linear(5, 3)
    ).double()
    inputs, labels = rows(17)
    batch = Batch(inputs, labels, rows=5, domains=torch.tensor([0, 1]), replay_rows=6)
    parameters = list(network.parameters())
    calls = []
    own = gradient.gradients_of
    monkeypatch.setattr(
        gradient, "gradients_of", lambda *of, **kept: calls.append(of) or own(*of, **kept)
    )

    def losses(index: int, logits: Tensor, y: Tensor) -> list[Tensor]:
        risk = nn.functional.cross_entropy(logits, y)
        return [risk, logits.square().mean()] if distilled and index else [risk]

    first, second, values = domain_gradients(network, parameters, batch, losses, joint=joint)
    assert len(calls) == 3 + (0 if not distilled else 1 if joint else 2)
    expected = torch.zeros_like(first[0])
    for index, (x, y) in enumerate(zip(batch.parts(inputs), batch.parts(labels), strict=True)):
        logits = batch.parts(network(inputs))[index] if joint else network(x)
        risk, *more = losses(index, logits, y)
        torch.testing.assert_close(
            first[index], flat(torch.autograd.grad(risk, parameters, retain_graph=True))
        )
        assert float(values[0][index]) == pytest.approx(float(risk.detach()))
        for loss in more:
            expected += flat(torch.autograd.grad(loss, parameters))
            assert float(values[1][index - 1]) == pytest.approx(float(loss.detach()))
    if distilled:
        torch.testing.assert_close(second, expected)
    else:
        assert second is None
