from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from farshore import Domain, Learner
from farshore.data.domain import Rows, _moved


def test_mapped_rows_are_the_same_rows(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (500, 1, 8, 8), dtype=np.uint8)
    np.save(tmp_path / "a.npy", values)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    labels = torch.arange(500) % 3
    index = torch.randperm(500)[:400]
    mapped_rows, tensor_rows = (
        Rows(mapped, labels, index),
        Rows(torch.from_numpy(values), labels, index),
    )
    positions = torch.randint(400, (300,))
    for a, b in zip(mapped_rows.take(positions), tensor_rows.take(positions), strict=True):
        assert torch.equal(a, b)
    assert isinstance(mapped_rows.to(torch.device("cpu")).inputs, np.memmap)


def test_what_does_not_fit_on_the_gpu_stays_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", np.zeros((10, 100), np.uint8))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1999, 4000))
    assert (
        _moved(mapped, torch.device("cuda")) is mapped
    )  # 1,000 bytes are more than half of what is free


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_fits_is_moved_to_the_gpu_once(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(20, dtype=np.uint8).reshape(10, 2))
    domain = Domain.divided(
        "a", np.load(tmp_path / "a.npy", mmap_mode="r"), torch.arange(10) % 2
    ).to(torch.device("cuda"))
    inputs, labels = domain.split("train").take(torch.arange(3))
    assert inputs.device.type == labels.device.type == "cuda"
    assert isinstance(domain.inputs, torch.Tensor)


def test_training_from_a_map_gives_the_same_weights(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (200, 1, 8, 8), dtype=np.uint8)
    np.save(tmp_path / "a.npy", values)
    labels = torch.arange(200) % 2
    outputs = []
    for inputs in (np.load(tmp_path / "a.npy", mmap_mode="r"), torch.from_numpy(values)):
        learner = Learner(network="mlp", network_settings={"width": 8}, memory=20, classes=[0, 1])
        domain = Domain.divided("a", inputs, labels)
        learner.learn_domain(domain, steps=5)
        outputs.append(learner.outputs(domain.split("all"))[0])
    assert torch.equal(outputs[0], outputs[1])


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_set_larger_than_the_limit_runs_within_it(tmp_path: Path) -> None:
    bench = Path(__file__).resolve().parents[2] / "bench" / "data.py"
    done = subprocess.run(
        [
            sys.executable,
            str(bench),
            "--limit-mb",
            "950",
            "--data-mb",
            "1000",
            "--steps",
            "10",
            "--quick",
            "--folder",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "within the limit: yes" in done.stdout
    assert "out of memory, as it must be" in done.stdout
