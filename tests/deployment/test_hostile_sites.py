"""Hostile values in a model's record of sites are refused; its learner still opens."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from farshore.base.state import load_parts, save_state
from farshore.deployment.model import Model
from farshore.errors import StateError
from farshore.learner.loading import load


def held(tensors: dict, name: str, value: torch.Tensor) -> None:
    tensors["held_out"]["clinic 0"][name] = value


HOSTILE = {
    "temperature": lambda parts: parts["sites"].update(
        calibration={
            "temperature": float("nan"),
            "offsets": [0.0, 0.0],
            "rows": 1,
            "labelled": True,
            "when": "",
        }
    ),
    "tiny temperature": lambda parts: parts["sites"].update(
        calibration={
            "temperature": 1e-300,
            "offsets": [0.0, 0.0],
            "rows": 1,
            "labelled": True,
            "when": "",
        }
    ),
    "offsets": lambda parts: parts["sites"].update(
        calibration={
            "temperature": 1.0,
            "offsets": [0.0] * 9,
            "rows": 1,
            "labelled": True,
            "when": "",
        }
    ),
    "rows of another width": lambda parts: held(parts["sites"], "inputs", torch.zeros(30, 3)),
    "rows that are not finite": lambda parts: held(
        parts["sites"], "inputs", parts["sites"]["held_out"]["clinic 0"]["inputs"] * torch.nan
    ),
    "a label that is no class": lambda parts: held(parts["sites"], "labels", torch.full((30,), 7)),
    "no rows": lambda parts: parts["sites"]["held_out"].update(
        {"clinic 0": {"inputs": torch.zeros(0, 8), "labels": torch.zeros(0, dtype=torch.long)}}
    ),
    "an arrival": lambda parts: parts["sites"]["sites"]["clinic 1"]["arrival"].update(accuracy=7.0),
    "a negative count": lambda parts: parts["sites"]["sites"]["clinic 1"]["arrival"].update(
        rows=-1.0
    ),
    "a profile": lambda parts: parts["sites"]["sites"]["clinic 1"]["profile"].pop("missing"),
    "counts of classes": lambda parts: parts["sites"]["sites"]["clinic 1"].update(
        classes={"yes": "many"}
    ),
    "reliability": lambda parts: parts["sites"].update(
        reliability={"clinic 0": {"rows": torch.zeros(50).long(), "correct": torch.ones(50).long()}}
    ),
    "the log": lambda parts: parts["log"].update(entries=[{"action": "learned"}]),
    "a text in the log": lambda parts: parts["log"]["entries"][0].update(before={"a": "b"}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_values_are_refused(work: Path, what: str) -> None:
    model = work / "model"
    parts = load_parts(model, kind="learner")
    HOSTILE[what](parts)
    learner = parts.pop("learner")
    save_state(model, learner, kind="learner", records=parts)
    with pytest.raises(StateError, match="its record of sites cannot be read"):
        Model.open(model)
    load(model)  # the learner itself is whole
