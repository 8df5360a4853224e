"""Preparing an image benchmark always gives the same bytes."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from official import (
    use_made_frost,
    wafers,
    write_hospitals,
    write_tiny_imagenet,
    write_wafer_arrays,
)

from farshore.benchmarks import BENCHMARKS


def write_wafer_pickle(root: Path) -> None:
    (root / "wm811k").mkdir()
    (root / "wm811k" / "LSWMD.pkl").write_bytes(pickle.dumps(wafers()))


# cifar10-c, whose official files cannot be made small, has its own test in
# test_image_benchmarks.py.
SMALL: dict[str, tuple[str, Callable[[Path], None]]] = {
    "tinyimagenet-c": ("tinyimagenet-c", write_tiny_imagenet),
    "wm811k from the pickle": ("wm811k", write_wafer_pickle),
    "wm811k from arrays": ("wm811k", write_wafer_arrays),
    "camelyon17": ("camelyon17", write_hospitals),
}


def arrays(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.npy"))}


@pytest.mark.parametrize("case", SMALL)
def test_a_second_prepare_gives_the_same_bytes(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, write = SMALL[case]
    made = []
    for folder in ("first", "second"):
        root = tmp_path / folder
        root.mkdir()
        if name == "tinyimagenet-c":
            use_made_frost(root, monkeypatch)
        write(root)
        made.append(BENCHMARKS.get(name)().prepare(root))
    first, second = (arrays(prepared.folder) for prepared in made)
    assert len(first) == 2 * len(BENCHMARKS.get(name).domains)
    assert first == second
    assert made[0].manifest == made[1].manifest
    assert all(count > 0 for count in made[0].domains.values())


@pytest.mark.soak
@pytest.mark.parametrize("name", ["tinyimagenet-c", "wm811k"])
def test_real_data_in_two_processes(name: str, shared: Path, tmp_path: Path) -> None:
    """Run the command twice, with different hash seeds and numbers of threads."""
    raw = "tinyimagenet" if name == "tinyimagenet-c" else name
    if not (shared / raw).is_dir():
        pytest.skip(
            f"the real files are missing: set FARSHORE_SHARED to the folder that contains {raw}/"
        )
    manifests = []
    for number in ("1", "2"):
        root = tmp_path / number
        root.mkdir()
        for folder in (raw, "frost"):
            (root / folder).symlink_to(shared / folder, target_is_directory=True)
        command = [sys.executable, "-m", "farshore", "prepare", name, "--root", str(root)]
        environment = {**os.environ, "PYTHONHASHSEED": number, "OMP_NUM_THREADS": number}
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        assert f"prepared {name}" in process.stdout
        manifests.append(
            json.loads((root / "prepared" / f"{name}-seed-0" / "manifest.json").read_text())
        )
    assert manifests[0]["files"] == manifests[1]["files"]
    assert len(manifests[0]["files"]) == 2 * len(BENCHMARKS.get(name).domains)
