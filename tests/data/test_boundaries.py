from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import make_scenario

from farshore.benchmarks.own.boundaries import Constructed, construct, join_small
from farshore.benchmarks.rotated_digits import RotatedDigits
from farshore.errors import FarshoreError


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drift_finds_the_true_boundaries_of_rotated_digits(seed: int) -> None:
    true = RotatedDigits().scenario(seed=seed)
    ends = np.cumsum([len(domain) for domain in true.sources])[:-1]
    assert ends.tolist() == [360, 720, 1079]
    constructed = make_scenario("rotated-digits", {"domain_by": "drift"}, seed=seed)
    assert [len(domain) for domain in constructed.sources] == [
        len(domain) for domain in true.sources
    ]
    for mine, real in zip(constructed.sources, true.sources, strict=True):
        assert torch.equal(mine.inputs, real.inputs)
        assert torch.equal(mine.labels, real.labels)
        assert torch.equal(mine.train, real.train)
        assert torch.equal(mine.validation, real.validation)
    assert "4 found, boundaries at rows 360, 720, 1079 of 1438" in constructed.notes[-1]
    assert constructed.target.name == "75"


def test_drift_follows_the_order_of_the_stream() -> None:
    constructed = make_scenario(
        "rotated-digits", {"domain_by": "drift"}, order=["45", "0", "30", "15"]
    )
    assert [len(domain) for domain in constructed.sources] == [359, 360, 359, 360]


def rows(
    rng: np.random.Generator, count: int, shift: float = 0.0, scale: float = 1.0, twist: float = 0.0
) -> np.ndarray:
    values = rng.standard_normal((count, 5)) * scale + shift
    values[:, 1] = twist * values[:, 0] + np.sqrt(1 - twist**2) * values[:, 1]
    return values


@pytest.mark.parametrize("change", [{"shift": 1.0}, {"scale": 2.0}, {"twist": 0.95}])
def test_drift_sees_mean_variance_and_correlation(change: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    constructed = construct(np.concatenate([rows(rng, 400), rows(rng, 300, **change)]), "drift")
    assert int(constructed.domain.max()) == 1
    assert abs(int((constructed.domain == 0).sum()) - 400) <= 20


@pytest.mark.parametrize("seed", range(5))
def test_drift_finds_nothing_if_nothing_changes(seed: int) -> None:
    constructed = construct(rows(np.random.default_rng(seed), 600), "drift")
    assert constructed.names == ["part 1"]
    assert "1 found in 600 rows" in constructed.note


def test_drift_takes_a_number_and_works_on_large_streams() -> None:
    rng = np.random.default_rng(0)
    stream = np.concatenate(
        [rows(rng, 5000), rows(rng, 3000, shift=0.5), rows(rng, 4000, shift=-0.5)]
    )
    constructed = construct(stream, "drift")
    ends = np.flatnonzero(np.diff(constructed.domain)) + 1
    assert len(ends) == 2
    assert np.abs(ends - [5000, 8000]).max() < 100
    assert len(construct(stream, "drift", count=5).names) == 5
    assert construct(np.ones((100, 3)), "drift").names == ["part 1"]


def test_large_images_are_averaged_down() -> None:
    rng = np.random.default_rng(0)
    dark = rng.integers(0, 120, (200, 3, 40, 40), dtype=np.uint8)
    bright = rng.integers(100, 255, (150, 3, 40, 40), dtype=np.uint8)
    assert np.flatnonzero(
        np.diff(construct(np.concatenate([dark, bright]), "drift").domain)
    ).tolist() == [199]


def test_blocks_and_periods() -> None:
    stream = np.zeros((10, 2))
    assert construct(stream, "blocks", count=3).domain.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
    times = np.array([0.0, 1, 2, 50, 51, 52, 53, 54, 99, 100])
    constructed = construct(stream, "time", count=3, times=times)
    assert constructed.domain.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
    assert "3 periods of equal length with 3, 5, 2 rows" in constructed.note


def test_clusters_are_found_anywhere_in_the_stream() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 300)
    constructed = construct(rows(rng, 300) * 0.3 + 5.0 * kind[:, None], "cluster")
    assert len(constructed.names) == 3
    for number in range(3):
        assert len(set(kind[constructed.domain == number])) == 1
    assert len(construct(rows(rng, 100), "cluster", count=4).names) == 4


def test_refusals() -> None:
    with pytest.raises(FarshoreError, match="add --time COLUMN"):
        construct(np.zeros((10, 2)), "time")
    with pytest.raises(FarshoreError, match="between 1 and the number of rows"):
        construct(np.zeros((10, 2)), "blocks", count=11)
    with pytest.raises(FarshoreError, match="it needs --domain auto"):
        make_scenario("rotated-digits", {"domains": 3})
    with pytest.raises(FarshoreError, match="which rotated-digits does not have"):
        make_scenario("rotated-digits", {"domain_by": "time"})


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=2, max_size=60))
def test_joined_domains_can_be_learned(facts: list[tuple[int, int]]) -> None:
    number = np.unique([domain for domain, _ in facts], return_inverse=True)[1]
    labels = np.array([label for _, label in facts])
    joined = join_small(Constructed(number, "found"), labels)
    left = sorted(set(joined.domain.tolist()))
    assert left == list(range(len(left)))
    if len(left) > 1:
        assert all(len(set(labels[joined.domain == part].tolist())) > 1 for part in left)
