"""The summary that `farshore show` prints: saved with the model, and never out of date."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clinics import COLUMNS, clinic, written

from farshore.base.manifest import MANIFEST, digest
from farshore.deployment.changes import forget, learn, take_back
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.summary import saved_summary, summary
from farshore.errors import StateError
from farshore.learner.loading import load


def learned(folder: Path, number: int = 0) -> Path:
    model = folder / "model"
    folder.mkdir(exist_ok=True)
    data = written(folder, clinic(number), f"{number}.csv")
    learn(model, data, name=f"site {number}", columns=COLUMNS, new=NewModel(), steps=3)
    return model


def changed(model: Path, part: str, change: Any) -> None:
    """Change a part of the current state, with its checksum in the manifest."""
    manifest = json.loads((model / MANIFEST).read_text())
    name = manifest["parts"][part]["tree"]
    tree = json.loads((model / name).read_text())
    change(tree)
    data = json.dumps(tree).encode()
    (model / name).write_bytes(data)
    manifest["files"][name] = {"sha256": digest(data), "bytes": len(data)}
    (model / MANIFEST).write_text(json.dumps(manifest))


def test_it_is_that_of_the_model_after_every_change(tmp_path: Path) -> None:
    model = learned(tmp_path)
    assert saved_summary(model) == summary(Model.open(model))
    learned(tmp_path, 1)
    now = saved_summary(model)
    assert now == summary(Model.open(model))
    assert now is not None
    assert [row[0] for row in now["sites"]] == ["site 0", "site 1"]
    take_back(model)
    assert saved_summary(model) in (None, summary(Model.open(model)))
    learned(tmp_path, 1)
    forget(model, "site 0")
    assert saved_summary(model) == summary(Model.open(model))


def test_it_counts_only_with_what_it_was_saved_with(tmp_path: Path) -> None:
    model = learned(tmp_path)
    assert saved_summary(model) is not None
    changed(model, "learner", lambda tree: tree["config"].update(method="unknown"))
    assert saved_summary(model) is None
    model = learned(tmp_path / "other")
    load(model).save(model)
    assert saved_summary(model) is None


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"facts": 1},
        {"sites": [[1, 2]]},
        {"metric": None},
        {"facts": [["x", 1]]},
        {"sites": [["a"] * 6 + ["b"]]},
        {"sites": [["a"] * 8]},
    ],
)
def test_one_of_another_form_is_not_used(tmp_path: Path, wrong: Any) -> None:
    model = learned(tmp_path)

    def change(tree: dict[str, Any]) -> None:
        tree["summary"] = {**tree["summary"], **wrong} if wrong else wrong

    changed(model, "summary", change)
    assert saved_summary(model) is None


def test_damage_of_any_file_is_noticed(tmp_path: Path) -> None:
    model = learned(tmp_path)
    (tensors,) = model.glob("tensors-learner-*")
    data = bytearray(tensors.read_bytes())
    data[-1] ^= 1
    tensors.write_bytes(bytes(data))
    with pytest.raises(StateError, match="checksum"):
        saved_summary(model)


def test_show_prints_it_without_torch(tmp_path: Path, typed: Any) -> None:
    model = learned(tmp_path)
    script = (
        "import sys; from farshore.cli.app import app\n"
        f"try: app(['show', {str(model)!r}])\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules, 'pandas' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "False False"
    code, opened = typed("show", model)
    assert code == 0
    (model / MANIFEST).write_text((model / MANIFEST).read_text().replace('"summary"', '"another"'))
    assert typed("show", model)[1].split() == opened.split()
