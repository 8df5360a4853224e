"""Models on a network of transformers, stored with another configuration of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from farshore.deployment.changes import learn
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns

VIT = {
    "model_type": "vit",
    "hidden_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "image_size": 8,
    "patch_size": 4,
}


def make_images(folder: Path) -> Path:
    draws = np.random.default_rng(0)
    for domain in "abc":
        for number in range(6):
            file = folder / domain / "yn"[number % 2] / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draws.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(file)
    return folder


def make_vit(folder: Path) -> Path:
    """Images of three sites, and a model of the first, made from a configuration."""
    settings = {"weights": "none", "config": VIT, "mean": [0.5] * 3, "std": [0.5] * 3}
    learn(
        folder / "model",
        make_images(folder / "images") / "a",
        name="a",
        columns=Columns(),
        new=NewModel(network="hf:some/vit", network_settings=settings, settings={"train": "all"}),
        steps=2,
        size=8,
    )
    return folder


def changed_model(model: Path, folder: Path, change: Callable[[dict], None]) -> Path:
    """A copy of the model whose learner says something else, with fitting checksums."""
    folder.mkdir()
    for file in (model / "model").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    name = manifest["parts"]["learner"]["tree"]
    tree = json.loads((folder / name).read_text())
    change(tree)
    data = json.dumps(tree).encode()
    (folder / name).write_bytes(data)
    manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
