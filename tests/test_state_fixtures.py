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
from farshore.base.state import VERSION
from farshore.errors import FarshoreError

FIXTURES = Path(__file__).parent / "fixtures"
STATES = FIXTURES / "states"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_state", FIXTURES / "make_state.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(folder: Path, work: Path) -> None:
    """The model predicts as recorded, also after a save, and continues to learn."""
    expected = json.loads((folder / "expected.json").read_text())
    inputs = np.asarray(expected["inputs"], dtype=np.float32)
    shutil.copytree(folder / "model", work)
    for _ in range(2):  # as it was stored, and as the current version writes it
        learner = farshore.load(work)
        assert learner.classes == expected["classes"]
        assert [domain["name"] for domain in learner.domains] == expected["domains"]
        assert np.allclose(
            learner.predict_proba(inputs), expected["probabilities"], rtol=0, atol=1e-6
        )
        learner.save(work)
    learner.learn(inputs, np.asarray(expected["classes"] * 4), domain="one more", steps=2)
    assert len(learner.domains) == len(expected["domains"]) + 1


def test_the_current_version_has_its_stored_state() -> None:
    stored = sorted(path.name for path in STATES.glob("*"))
    assert str(VERSION) in stored, "run `python tests/fixtures/make_state.py` and commit its folder"


@pytest.mark.parametrize("folder", sorted(STATES.glob("*")), ids=lambda folder: folder.name)
def test_a_stored_state_opens_and_predicts_the_same(folder: Path, tmp_path: Path) -> None:
    assert json.loads((folder / "model" / "manifest.json").read_text())["version"] == int(
        folder.name
    )
    check(folder, tmp_path / "model")


def test_the_script_writes_a_state_that_passes_and_never_replaces_one(
    script: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / str(VERSION)
    script.write(folder)
    check(folder, tmp_path / "model")
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 100_000
    with pytest.raises(FarshoreError, match="never replaced"):
        script.write(folder)
