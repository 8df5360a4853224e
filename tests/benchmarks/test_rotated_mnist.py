from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from scenarios import make_scenario

from farshore import Run, execute
from farshore.benchmarks.rotated_mnist import (
    RotatedMNIST,
    RotatedMNISTExtended,
    RotatedMNISTTime,
    read_idx,
)
from farshore.data.images.images import rotate
from farshore.data.seal import FrozenModel
from farshore.errors import FarshoreError


def test_five_disjoint_parts_of_the_official_digits(data_root: Path) -> None:
    prepared = RotatedMNIST().prepare()
    assert prepared.domains == {"0": 14000, "15": 14000, "30": 14000, "45": 14000, "75": 14000}
    digits = np.concatenate([prepared.read(name)[1].numpy() for name in prepared.domains])
    assert np.bincount(digits).tolist() == [
        6903,
        7877,
        6990,
        7141,
        6824,
        6313,
        6876,
        7293,
        6825,
        6958,
    ]  # of all 70,000
    raw = np.concatenate(
        [
            read_idx(data_root / "mnist" / f"{kind}-images-idx3-ubyte.gz")
            for kind in ("train", "t10k")
        ]
    )
    known = {image.tobytes() for image in raw}
    upright = {image.tobytes() for image in np.asarray(prepared.read("0")[0])}
    assert upright <= known
    # 70,000 different digits in five parts: a rotated upright digit is in no other part.
    turned = {image.tobytes() for image in np.asarray(prepared.read("15")[0])}
    first = torch.from_numpy(np.array(prepared.read("0")[0][:500]))
    assert not turned & {image.tobytes() for image in rotate(first, 15.0).numpy()}
    assert len(known) == 70_000


def test_in_time_the_targets_and_what_follows_fifty_degrees_are_never_learned(
    data_root: Path,
) -> None:
    benchmark = RotatedMNISTTime()
    prepared = benchmark.prepare()
    assert list(prepared.domains) == [str(angle) for angle in range(0, 90, 10)]
    assert set(prepared.domains.values()) == {7777, 7778}
    assert benchmark.each_target() == {
        "60": ("70", "80"),
        "70": ("60", "80"),
        "80": ("60", "70"),
    }
    scenario = benchmark.scenario(target="80")
    assert [domain.name for domain in scenario.sources] == ["0", "10", "20", "30", "40", "50"]
    assert [len(domain.train) for domain in scenario.sources] == [7000] * 6
    assert [domain.name for domain in benchmark.scenario(target="20").sources] == ["0", "10"]


def test_images_are_bytes_and_turn_counter_clockwise(data_root: Path) -> None:
    inputs, _ = RotatedMNIST().prepare().read("45")
    assert (inputs.shape, inputs.dtype) == ((14000, 1, 28, 28), np.uint8)
    assert isinstance(inputs, np.memmap)
    bar = torch.zeros(1, 1, 28, 28, dtype=torch.uint8)
    bar[..., 13:15, 14:] = 255  # from the centre to the right
    turned = rotate(bar, 90.0)[0, 0]
    assert turned[:14].sum() > 20 * turned[14:].sum()  # now upwards


def test_scenario_has_the_papers_numbers(data_root: Path) -> None:
    RotatedMNIST().prepare()
    began = time.perf_counter()
    scenario = RotatedMNIST().scenario()
    assert time.perf_counter() - began < 2
    assert [domain.name for domain in scenario.sources] == ["0", "15", "30", "45"]
    assert [(len(domain.train), len(domain.validation)) for domain in scenario.sources] == [
        (11200, 2800)
    ] * 4
    assert (scenario.target.name, scenario.steps, scenario.memory, scenario.network) == (
        "75",
        1000,
        1000,
        "cnn",
    )
    assert scenario.profile == "default"
    upright = RotatedMNIST().scenario(target="0", order=["75", "15", "45", "30"])
    assert [domain.name for domain in upright.sources] == ["75", "15", "45", "30"]
    assert torch.equal(upright.sources[1].train, scenario.sources[1].train)
    target = upright.target.open(FrozenModel(torch.nn.Linear(1, 1)))
    assert len(target) == 14000


def test_same_seed_same_bytes(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "mnist").symlink_to(data_root / "mnist", target_is_directory=True)
    first, second = RotatedMNIST().prepare(), RotatedMNIST().prepare(tmp_path)
    assert first.manifest["files"] == second.manifest["files"]
    other = RotatedMNIST().prepare(tmp_path, seed=1)
    assert (
        other.manifest["files"]["00-inputs.npy"]["sha256"]
        != first.manifest["files"]["00-inputs.npy"]["sha256"]
    )


def test_drift_finds_the_angles_of_the_stream(data_root: Path) -> None:
    constructed = make_scenario("rotated-mnist", {"domain_by": "drift"})
    ends = np.cumsum([len(domain) for domain in constructed.sources])
    assert len(ends) == 4
    assert np.abs(ends - [14000, 28000, 42000, 56000]).max() <= 10


def test_it_runs_from_the_memory_map(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        RotatedMNIST, "network", "mlp"
    )  # the cnn scores 70,000 digits too slowly for a test on a CPU
    monkeypatch.setattr(RotatedMNIST, "network_settings", {"width": 16})
    result = execute(Run(benchmark="rotated-mnist", method="er", steps=100))
    assert result.target is not None
    assert result.target.rows == 14000
    assert result.seconds["preparation"] < 2
    assert (result.source_score(1) or 0) > 0.3  # chance is 0.1


def test_extended_repeats_the_sources(data_root: Path) -> None:
    scenario = RotatedMNISTExtended().scenario()
    names = [domain.name for domain in scenario.sources]
    assert len(names) == len(set(names)) == 15
    assert names[:5] == ["0-1", "15-1", "30-1", "45-1", "0-2"]
    assert torch.equal(scenario.sources[4].train, scenario.sources[0].train)
    assert scenario.target.name == "75"
    with pytest.raises(FarshoreError, match="not unseen"):
        RotatedMNISTExtended().scenario(target="0-1")
