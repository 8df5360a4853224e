from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real files for development: $FARSHORE_SHARED, or shared/data next to the checkout."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("FARSHORE_SHARED", default))
    if not folder.is_dir():
        pytest.skip(
            "the real data are missing: set FARSHORE_SHARED to the folder that contains mnist/ "
            "and covertype/"
        )
    return folder


@pytest.fixture(scope="session")
def root(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with the official files, prepared by the first test that uses it."""
    root = tmp_path_factory.mktemp("root")
    for name in ("mnist", "covertype"):
        (root / name).symlink_to(shared / name, target_is_directory=True)
    return root


@pytest.fixture
def data_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FARSHORE_DATA", str(root))
    return root
