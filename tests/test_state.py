"""State on disk: it round-trips, is replaced atomically, and damage is reported by name."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
import torch

from farshore.base.state import load_state, save_state
from farshore.errors import StateError

TREE = {
    "numbers": [1, 2.5, True, None, "text"],
    "tuple": (1, (2, 3)),
    "by number": {0: torch.arange(3), 7: {"deep": torch.ones(2, 2, dtype=torch.float64)}},
    "bytes": torch.tensor([1, 2, 255], dtype=torch.uint8),
    "empty": {},
    "scalar": torch.tensor(3.5),
}


def test_round_trip(tmp_path: Path) -> None:
    save_state(tmp_path / "s", TREE, kind="test")
    back = load_state(tmp_path / "s", kind="test")
    assert back["numbers"] == TREE["numbers"]
    assert back["tuple"] == TREE["tuple"]
    assert list(back["by number"]) == [0, 7]
    assert torch.equal(back["by number"][7]["deep"], TREE["by number"][7]["deep"])
    assert back["bytes"].dtype == torch.uint8
    assert back["empty"] == {}
    assert back["scalar"].shape == ()


def test_saving_again_replaces_and_leaves_no_old_files(tmp_path: Path) -> None:
    save_state(tmp_path, {"n": 1}, kind="test")
    save_state(tmp_path, {"n": 2}, kind="test")
    assert load_state(tmp_path, kind="test") == {"n": 2}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_leaves_the_previous_state_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    save_state(tmp_path, {"n": 1}, kind="test")
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            calls.append(descriptor)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="No space left"):
        save_state(tmp_path, {"n": 2}, kind="test")
    assert load_state(tmp_path, kind="test") == {"n": 1}
    assert len(list(tmp_path.iterdir())) == 2


def damaged(folder: Path, how: str) -> None:
    tensors = next(folder.glob("tensors-*"))
    if how == "flipped":
        data = bytearray(tensors.read_bytes())
        data[-1] ^= 1
        tensors.write_bytes(bytes(data))
    elif how == "cut":
        tensors.write_bytes(tensors.read_bytes()[:-3])
    elif how == "missing":
        tensors.unlink()
    elif how == "manifest":
        (folder / "manifest.json").write_text("{")
    elif how == "no manifest":
        (folder / "manifest.json").unlink()
    elif how == "version":
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps(manifest | {"version": 99}))
    elif how == "outside":
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"]["../x"] = {"sha256": "", "bytes": 0}
        (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "how", ["flipped", "cut", "missing", "manifest", "no manifest", "version", "outside"]
)
def test_a_damaged_folder_is_refused(tmp_path: Path, how: str) -> None:
    save_state(tmp_path, TREE, kind="test")
    damaged(tmp_path, how)
    with pytest.raises(StateError):
        load_state(tmp_path, kind="test")


def test_another_kind_is_refused(tmp_path: Path) -> None:
    save_state(tmp_path, {}, kind="apple")
    with pytest.raises(StateError, match="apple"):
        load_state(tmp_path, kind="pear")


def test_objects_that_are_no_plain_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="set"):
        save_state(tmp_path, {"a": {1, 2}}, kind="test")
