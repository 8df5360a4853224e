"""The distance of features from a site, in single precision, beside the formula in double."""

from __future__ import annotations

import pytest
import torch

from farshore.deployment.familiarity import Moments, moments


@pytest.mark.parametrize("rows", [6, 200, 20_000])
def test_the_distance_is_that_of_the_formula(rows: int) -> None:
    draws = torch.Generator().manual_seed(rows)
    mixed = torch.randn(40, 64, generator=draws)
    features = (torch.randn(rows, 40, generator=draws) @ mixed).relu()  # 40 directions in 64
    site = moments(features[0::2], features[1::2])
    new = 3 * (torch.randn(50, 40, generator=draws) @ mixed).relu()
    centred = new.double() - site.mean.double()
    squares = ((centred @ site.precision.double()) * centred).sum(dim=1)
    torch.testing.assert_close(site.distance(new), (squares / 64).sqrt(), rtol=2e-5, atol=0.0)


def test_moments_without_a_factor_still_give_a_distance() -> None:
    broken = Moments(torch.zeros(3), torch.diag(torch.tensor([1.0, -1.0, 4.0])), torch.ones(()))
    found = broken.distance(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([1 / 3, 0.0], dtype=torch.float64).sqrt())
