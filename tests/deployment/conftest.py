"""Models of made clinics, and commands typed at them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from clinics import make_model

from farshore.cli.app import main


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Type a command; returns the exit code and what was printed."""

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["farshore", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


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
