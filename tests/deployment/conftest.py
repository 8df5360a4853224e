"""Models of made clinics."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from clinics import make_model


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of four clinics; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("four")
    make_model(folder, 4)
    return folder


@pytest.fixture
def work(four: Path, tmp_path: Path) -> Path:
    """A copy of that folder, to change."""
    shutil.copytree(four, tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture(scope="session")
def by_sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of three clinics, with a method that keeps sums instead of rows."""
    folder = tmp_path_factory.mktemp("sums")
    make_model(folder, 3, "ncm")
    return folder
