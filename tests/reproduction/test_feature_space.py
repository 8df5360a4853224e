"""The feature spaces: what is projected, and what the page says of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from reproduction import feature_space
from reproduction.pages import figures
from reproduction.sections import features


@pytest.mark.soak
def test_rows_of_each_domain_are_projected_and_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("umap")
    draws, tensors = np.random.default_rng(0), {}
    for name, shift in (("source 0 a", 0.0), ("source 1 b", 9.0), ("target c", 9.0)):
        rows = draws.normal(shift, 1, (100, 3)).astype(np.float32)
        tensors[f"{name} features"] = torch.from_numpy(rows)
        tensors[f"{name} labels"] = torch.zeros(100, dtype=torch.long)
    save_file(tensors, tmp_path / "features.safetensors")
    found = feature_space.projected(tmp_path / "features.safetensors")
    assert {name: len(rows) for name, rows in found["points"].items()} == dict.fromkeys(
        "abc", feature_space.ROWS
    )
    assert (found["target"], found["rows"]) == ("c", 300)
    assert 0.55 < found["domain_accuracy"] < 0.8  # a is apart, b and c are alike
    assert found == feature_space.projected(tmp_path / "features.safetensors")


def test_the_page_has_the_numbers_and_the_figure_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {"a": [[0.0, 0.0], [1.0, 2.0], [2.0, 2.0]], "b": [[3.0, 1.0]]}
    made = {
        "er": {
            "target": "b",
            "rows": 3,
            "domain_accuracy": 0.873,
            "target_accuracy": 0.612,
            "points": points,
            "score": 41.2,
            "seconds": 3.4,
            "device": "cpu",
            "commit": "0123456789",
        }
    }
    file = tmp_path / "points.json"
    file.write_text(json.dumps(made))
    monkeypatch.setattr(features, "POINTS", file)
    said, *_, row = features.features_section().splitlines()
    assert said.endswith("the target with 61.2% or more.")
    assert row == "| `er` | 87.3 (50) | 61.2 (50) | 41.2 | 0123456; cpu; 3.4 |"
    drawn = figures.feature_space().svg()
    # Every second row of the source and its sign in the legend; a cross has two lines.
    assert drawn.count("<circle") == 3
    assert drawn.count("<line") == 2
    assert "target: b" in drawn
