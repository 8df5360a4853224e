"""Models saved in earlier state formats still open, predict the same, and continue to learn."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import farshore
from farshore import FarshoreError

FIXTURES = Path(__file__).parent / "fixtures"
STATES = FIXTURES / "states"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_state", FIXTURES / "make_state.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kind_of(folder: Path) -> str:
    """The kind of learner behind the version in the folder's name; empty for plain replay."""
    return folder.name.partition("-")[2]


def check(script: ModuleType, folder: Path, work: Path) -> None:
    """The model predicts as recorded, also after a save, and continues to learn."""
    expected = json.loads((folder / "expected.json").read_text())
    inputs = np.asarray(expected["inputs"], dtype=expected.get("dtype", "float32"))
    own = script.own_network(kind_of(folder))
    shutil.copytree(folder / "model", work)
    for _ in range(2):  # as it was stored, and as the current version writes it
        learner = farshore.load(work, **own)
        assert learner.classes == expected["classes"]
        assert [domain["name"] for domain in learner.domains] == expected["domains"]
        assert np.allclose(
            learner.predict_proba(inputs), expected["probabilities"], rtol=0, atol=1e-6
        )
        learner.save(work)
    learner.learn(inputs, np.asarray(expected["classes"] * 4), domain="one more", steps=2)
    assert len(learner.domains) == len(expected["domains"]) + 1


def test_the_current_version_has_its_stored_states(script: ModuleType) -> None:
    missing = [kind for kind in script.KINDS if not script.folder_of(STATES, kind).is_dir()]
    assert not missing, "run `python tests/fixtures/make_state.py` and commit its folders"


@pytest.mark.parametrize("folder", sorted(STATES.glob("*")), ids=lambda folder: folder.name)
def test_a_stored_state_opens_and_predicts_the_same(
    folder: Path, script: ModuleType, tmp_path: Path
) -> None:
    manifest = json.loads((folder / "model" / "manifest.json").read_text())
    assert str(manifest["version"]) == folder.name.partition("-")[0]
    check(script, folder, tmp_path / "model")


def test_the_script_writes_states_that_pass_and_never_replaces_one(
    script: ModuleType, tmp_path: Path
) -> None:
    for kind in script.KINDS:
        folder = script.folder_of(tmp_path, kind)
        script.write(folder, kind)
        check(script, folder, tmp_path / f"model {kind}")
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 100_000
        with pytest.raises(FarshoreError, match="never replaced"):
            script.write(folder, kind)
