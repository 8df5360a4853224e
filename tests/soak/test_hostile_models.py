"""Stress tests of models and runs from strangers: no crash, no unbounded allocation, one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from confined import confine
from mutated_models import METHODS, make_models
from mutated_results import make_runs

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_models(folder, METHODS)
    return folder


@pytest.mark.parametrize("seed", range(4))
def test_mutated_models_work_or_are_refused(models: Path, seed: int) -> None:
    confine("mutated_models:open_mutated", cases=200, seed=seed, arguments=(str(models),))


def test_mutated_runs_are_read_or_refused(tmp_path: Path) -> None:
    make_runs(tmp_path)
    confine("mutated_results:read_mutated", cases=150, seed=1, arguments=(str(tmp_path),))
