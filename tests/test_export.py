"""Exported models predict like the learner, for all networks, tables with gaps, and images."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from exported import encode
from torch import nn

import farshore
from farshore.deployment.export import export_model
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner

onnxruntime = pytest.importorskip("onnxruntime")
PACKAGE = str(Path(farshore.__file__).parent).encode()


class Residual(nn.Module):
    """A block with BatchNorm and a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(4, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Conv2d(4, 4, 3, padding=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.block(x))


def residual() -> farshore.Network:
    from farshore.networks.network import ImageInputs

    features = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        Residual(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    return farshore.Network(features, nn.Linear(4, 2), inputs=ImageInputs((0.4,), (0.3,)))


def predict(file: Path, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    if file.suffix == ".onnx":
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        return session.run(
            ["probabilities"], {name: values.numpy() for name, values in inputs.items()}
        )[0]
    with open(file, "rb") as stream:
        return torch.export.load(stream).module()(*inputs.values()).detach().numpy()


@pytest.mark.parametrize("method", ["er", "cope", "sarl"])
@pytest.mark.parametrize("network", ["mlp", "cnn", "residual"])
def test_images(method: str, network: str, pictures, tmp_path: Path) -> None:
    chosen = residual() if network == "residual" else network
    width = {} if network == "residual" else {"width": 8}
    learner = Learner(
        chosen,
        method,
        12,
        settings={"batch_size": 8, "learning_rate": 0.01},
        network_settings=width,
    )
    for domain in range(2):
        learner.learn(*pictures(domain), domain=f"d{domain}", steps=8)
    export_model(learner, tmp_path / "m.onnx")
    for rows in (1, 17):
        x = pictures(3, rows=24)[0][:rows]
        assert (
            np.abs(predict(tmp_path / "m.onnx", {"images": x}) - learner.predict_proba(x)).max()
            < 1e-5
        )


@pytest.mark.soak
@pytest.mark.parametrize("method", ["er", "cope", "sarl"])
def test_resnet18(method: str, tmp_path: Path) -> None:
    """Colour images with ImageNet's scaling, BatchNorm and shortcuts."""
    x = torch.randint(0, 256, (24, 3, 32, 32), generator=torch.Generator().manual_seed(0)).to(
        torch.uint8
    )
    settings = {"batch_size": 4, "learning_rate": 0.001}
    learner = Learner(
        "resnet18",
        method,
        8,
        settings=settings,
        network_settings={"width": 64 if method == "er" else 8, "weights": "none"},
    )
    learner.learn(x, torch.arange(24) % 2, domain="a", steps=2)
    export_model(learner, tmp_path / "m.onnx")
    assert (
        np.abs(predict(tmp_path / "m.onnx", {"images": x[:5]}) - learner.predict_proba(x[:5])).max()
        < 1e-5
    )


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_table_with_gaps_and_unknown_categories(suffix: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = 60
    frame = pd.DataFrame(
        {
            "age": draw.normal(50, 10, rows).round(1),
            "dose": draw.normal(1e6, 3, rows),
            "never": [None] * rows,
            "ward": draw.choice(["A", "B", "C"], rows),
        }
    )
    frame.loc[::7, "age"] = None
    frame.loc[::5, "ward"] = None
    labels = np.where(frame["dose"] > 1e6, "ill", "well")
    learner = Learner(
        "mlp",
        "cl-coral",
        20,
        settings={"batch_size": 8, "learning_rate": 0.01},
        network_settings={"width": 16},
    )
    learner.learn(frame, labels, domain="a", steps=30)
    facts = export_model(learner, tmp_path / f"m{suffix}")
    assert facts["categories"] == {"ward": {"A": 0, "B": 1, "C": 2, "(other)": 3, "(missing)": -1}}
    with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(tmp_path / f"m{suffix}") as parts:
        assert not any(PACKAGE in parts.read(name) for name in parts.namelist())
    assert PACKAGE not in (tmp_path / f"m{suffix}").read_bytes(), "it names files of this machine"
    new = frame.copy()
    new.loc[3, "ward"] = "Z"
    new.loc[4, "dose"] = 1e308
    exported = predict(tmp_path / f"m{suffix}", encode(learner.preprocessing, new))
    assert np.abs(exported - learner.predict_proba(new)).max() < 1e-5
    if suffix == ".onnx":
        import onnx

        metadata = {prop.key: prop.value for prop in onnx.load(tmp_path / "m.onnx").metadata_props}
        assert json.loads(metadata["farshore"])["classes"] == ["ill", "well"]


def test_plain_arrays_and_refusals(blobs, tmp_path: Path) -> None:
    learner = Learner(
        "mlp",
        "er",
        20,
        settings={"batch_size": 8},
        network_settings={"width": 16},
        preprocess="none",
    )
    with pytest.raises(FarshoreError, match="nothing to export"):
        export_model(learner, tmp_path / "m.onnx")
    learner.learn(*blobs(0), domain="a", steps=3)
    with pytest.raises(FarshoreError, match="ends in"):
        export_model(learner, tmp_path / "m.pkl")
    with pytest.raises(FarshoreError, match="no folder"):
        export_model(learner, tmp_path / "x" / "m.onnx")
    export_model(learner, tmp_path / "m.pt2")
    x = blobs(1)[0]
    assert (
        np.abs(predict(tmp_path / "m.pt2", {"inputs": x}) - learner.predict_proba(x)).max() < 1e-5
    )
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt2"]
