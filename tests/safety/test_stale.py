"""A file that was replaced is never taken for the one before: in one process, and between runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from stored_networks import make_images

import farshore
from farshore.benchmarks import make_benchmark
from farshore.networks.build import build_network, settle_network
from farshore.runs.protocol import execute
from farshore.runs.run import Run

NETWORK = """
from torch import nn

class Pooled(nn.Module):
    input_size = 8

    def forward(self, images):
        return images.flatten(2).mean(dim=2)

def pooled():
    return Pooled()
"""


def replace(path: Path, text: str) -> None:
    """Another file in its place, of the same size and time, as `cp -p` makes it."""
    before = path.stat()
    assert len(text.encode()) == before.st_size
    other = path.with_name("other")
    other.write_text(text)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def table(shift: int) -> str:
    draws = np.random.default_rng(shift)
    rows = [f"{site},{draws.normal():.3f},{'yn'[row % 2]}" for site in "abc" for row in range(20)]
    return "\n".join(["d,x,y", *(f"{row:<20}" for row in rows)]) + "\n"


@pytest.mark.parametrize("how", ["replaced", "written"])
def test_a_table_of_the_same_size_and_time_gives_new_runs(tmp_path: Path, how: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(table(0))
    options = {"domain": "d", "label": "y", "target": "c", "seeds": 1, "runs": tmp_path / "runs"}
    first = farshore.compare(file, methods="ncm", **options).frame
    if how == "replaced":
        replace(file, table(1))
    else:
        before = file.stat()
        file.write_text(table(1))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = farshore.compare(file, methods="ncm", **options).frame
    assert set(first["run"]).isdisjoint(second["run"])


def test_weights_that_were_replaced_are_named_anew(tmp_path: Path) -> None:
    network = build_network("resnet18", (3, 16, 16), 2, {"weights": "none", "width": 2})
    file = tmp_path / "w.safetensors"
    origins = set()
    for value in (0.0, 1.0):
        tensors = {
            name: torch.full_like(each, value) for name, each in network.state_dict().items()
        }
        save_file(tensors, file)
        os.utime(file, (1, 1))
        origins.add(settle_network("resnet18", {"weights": str(file), "width": 2}).origin)
    assert len(origins) == 2


def test_a_data_set_that_was_saved_again_is_read_again(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    from PIL import Image

    digests = set()
    for shade in (10, 20):
        columns = {
            "image": [Image.new("RGB", (8, 8), (shade, 0, 0))] * 6,
            "site": list("aabbcc"),
            "label": list("ynynyn"),
        }
        datasets.Dataset.from_dict(columns).save_to_disk(tmp_path / "d")
        options = {"path": str(tmp_path / "d"), "domain": "site", "label": "label"}
        digests.add(make_benchmark("hf-dataset", options).data_digest())
    assert len(digests) == 2


def test_code_that_changed_computes_its_features_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layers look the same and have the same weights; what they compute is another thing."""
    monkeypatch.setenv("FARSHORE_FEATURES", str(tmp_path / "features"))
    make_images(tmp_path / "images")
    (tmp_path / "net.py").write_text(NETWORK)
    run = Run.build(
        benchmark="image-folder",
        options={"path": str(tmp_path / "images"), "size": 8},
        method="ncm",
        target="c",
        network=f"{tmp_path}/net.py:pooled",
    )
    first = execute(run)
    assert any("net.py counts for the name of this run" in note for note in first.notes)
    kept = {path.name for path in (tmp_path / "features").rglob("*.npy")}
    (tmp_path / "net.py").write_text(NETWORK.replace(".mean(dim=2)", ".amax(dim=2)"))
    execute(run)
    now = {path.name for path in (tmp_path / "features").rglob("*.npy")}
    assert len(now) == 2 * len(kept) > 0
