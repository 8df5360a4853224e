"""Stress tests of a saved model: after killed saves or damaged files it loads or is refused."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from damaging import mutate

from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import load

pytestmark = pytest.mark.soak

SAVER = """
import sys, torch, farshore
torch.set_num_threads(1)
learner = farshore.load(sys.argv[1])
print("ready", flush=True)
while True:
    learner.save(sys.argv[1])
"""


def trained(folder: Path) -> torch.Tensor:
    inputs, labels = (
        torch.randn(60, 4, generator=torch.Generator().manual_seed(0)),
        torch.arange(60) % 2,
    )
    learner = Learner(
        "mlp", "cl-coral", memory=20, settings={"batch_size": 8}, network_settings={"width": 64}
    )
    learner.learn(inputs, labels, domain="a", steps=5)
    learner.learn(inputs + 1, labels, domain="b", steps=5)
    learner.save(folder)
    return inputs


def test_a_killed_save_never_leaves_a_model_that_does_not_load(tmp_path: Path) -> None:
    inputs = trained(tmp_path / "model")
    expected = load(tmp_path / "model").predict_proba(inputs)
    chance = random.Random(0)
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(tmp_path / "model")],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert np.array_equal(load(tmp_path / "model").predict_proba(inputs), expected)
    load(tmp_path / "model").save(tmp_path / "model")
    # The next save removes the files that killed saves left behind.
    assert (
        len([path for path in (tmp_path / "model").iterdir() if not path.name.startswith(".")]) == 3
    )


@pytest.mark.parametrize("seed", range(4))
def test_mutated_folders_are_refused_or_predict_as_before(tmp_path: Path, seed: int) -> None:
    inputs = trained(tmp_path / "model")
    expected = load(tmp_path / "model").predict_proba(inputs)
    chance = random.Random(seed)
    refused = 0
    for number in range(50):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "model", copy)
        how = mutate(copy, chance)
        try:
            predicted = load(copy).predict_proba(inputs)
        except FarshoreError:
            refused += 1
        else:
            assert np.array_equal(predicted, expected), how
        shutil.rmtree(copy)
    assert refused > 40
