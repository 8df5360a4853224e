"""k-winners: the stated share of channels passes, and ReLUs become winners but for the stem."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from farshore.networks.cnn import cnn
from farshore.networks.winners import KWinners, kth_largest, sparse


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((3, -1, 2, -2, 0.5), (3, 0, 2, 0, 0.5)),
        ((3, -1, -0.5, -2, -3), (3, 0, 0, 0, 0)),
    ],
)
def test_worked_numbers(values: tuple[float, ...], expected: tuple[float, ...]) -> None:
    assert KWinners(0.6)(torch.tensor([values])).tolist() == [list(expected)]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("shape", [(6, 10), (6, 10, 4, 4)])
def test_the_share_of_winners_at_every_place(share: float, shape: tuple[int, ...]) -> None:
    inputs = torch.rand(shape, generator=torch.Generator().manual_seed(0)) + 0.1
    passed = KWinners(share)(inputs)
    assert (passed > 0).sum(dim=1).unique().tolist() == [round(10 * share)]
    kept, dropped = inputs[passed > 0], inputs[passed == 0]
    assert torch.equal(passed[passed > 0], kept)
    if len(shape) == 2 and len(dropped):
        smallest = torch.where(passed > 0, inputs, torch.inf).amin(dim=1)
        assert bool((torch.where(passed > 0, -torch.inf, inputs).amax(dim=1) <= smallest).all())


@pytest.mark.parametrize("k", range(1, 8))
def test_the_kth_largest_is_that_of_a_sort(k: int) -> None:
    values = torch.randint(-3, 3, (5, 7, 2), generator=torch.Generator().manual_seed(0)).float()
    by_sort = values.sort(dim=1, descending=True).values[:, k - 1 : k]
    assert torch.equal(kth_largest(values, k), by_sort)


def test_the_gradient_passes_where_the_value_does() -> None:
    inputs = torch.tensor([[3.0, -1.0, 2.0, -2.0, 0.5]], requires_grad=True)
    KWinners(0.4)(inputs).sum().backward()
    assert inputs.grad.tolist() == [[1, 0, 1, 0, 0]]


def test_the_stem_stays_and_a_second_time_changes_nothing() -> None:
    network = cnn((1, 8, 8), 2, width=8)
    kinds = []
    for _ in range(2):
        sparse(network.features, 0.9)
        kinds.append(
            [type(module) for module in network.features if isinstance(module, nn.ReLU | KWinners)]
        )
    assert kinds == 2 * [[nn.ReLU, KWinners, KWinners, KWinners]]


def test_an_only_activation_is_replaced() -> None:
    features = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    sparse(features, 0.5)
    assert isinstance(features[1][0], KWinners)
