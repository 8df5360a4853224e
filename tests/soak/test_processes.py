"""Three processes, one domain each, equal one process bit for bit, for every continual method."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from farshore.learner.loading import load
from farshore.methods import continual
from farshore.testing import differences, toy_learned
from farshore.testing.toys import toy_settings

# That of a toy learner.
BUDGET = {"replay_budget": "per-domain"}
pytestmark = pytest.mark.soak

# One process learns the next domain with every method, so that torch is imported three times in all
# and not three times per method.
SCRIPT = """
import json, sys, torch, farshore
torch.set_num_threads(1)
folder, number = sys.argv[1], int(sys.argv[2])
data = torch.load(f"{folder}/data{number}.pt")
for method, settings in json.load(open(f"{folder}/settings.json")).items():
    model = f"{folder}/{method}"
    learner = farshore.load(model) if number else farshore.Learner(
        "mlp", method, 18, settings=settings, network_settings={"width": 16}, preprocess="none")
    learner.learn(data["x"], data["y"], domain=f"d{number}", steps=8)
    learner.save(model)
"""


def test_three_processes_equal_one(blobs, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(
        json.dumps({method: {**BUDGET, **toy_settings(method)} for method in continual()})
    )
    for number in range(3):
        x, y = blobs(number)
        torch.save({"x": x, "y": y}, tmp_path / f"data{number}.pt")
        subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), str(number)], check=True)
    different = {
        method: paths
        for method in continual()
        if (
            paths := differences(
                toy_learned(method).state_dict(), load(tmp_path / method).state_dict()
            )
        )
    }
    assert different == {}
