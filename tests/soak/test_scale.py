"""A million rows: training that is killed is finished by the same command, with equal numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from killing import Killer

from farshore.base.manifest import MANIFEST
from farshore.learner.loading import load
from farshore.testing import differences

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no /proc here"),
]
ROWS = 1_000_000


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million rows of four sites."""
    draws = np.random.default_rng(0)
    columns = {f"x{place}": draws.normal(size=ROWS).astype("float32") for place in range(4)}
    ill = columns["x0"] + columns["x1"] > 0
    frame = pd.DataFrame(columns).assign(
        site=np.array(list("abcd"))[np.arange(ROWS) % 4], ill=np.where(ill, "yes", "no")
    )
    file = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.to_parquet(file)
    return file


def check_finishes(words: Callable[[Path], list[object]], folder: Path, kept: str) -> str:
    """Whole in one folder; in another, killed half-way with a state on the disk, and repeated."""
    with Killer() as killer:
        whole, work = folder / "whole", folder / "work"
        whole.mkdir()
        work.mkdir()
        done = killer.run(words(whole), whole)
        assert done.code == 0, done.printed
        ended = killer.run(words(work), work, change=done.changes // 2)
        assert ended.code == -9
        assert list(work.glob(kept))
        again = killer.run(words(work), work)
        assert again.code == 0, again.printed
    return again.printed


def test_a_killed_run_of_a_million_rows(rows: Path, tmp_path: Path) -> None:
    def words(work: Path) -> list[object]:
        options = ["--domain", "site", "--label", "ill", "--target", "d", "--steps", 100]
        return ["run", rows, "er", *options, "--memory", 2000, "--out", work / "runs"]

    def numbers(work: Path) -> dict[str, object]:
        (file,) = work.glob("runs/*/result.json")
        result = json.loads(file.read_text())
        assert result["status"] == "done"
        return {
            "weights": result["target"]["weights"],
            "scores": result["target"]["scores"],
            "matrices": result["matrices"],
        }

    check_finishes(words, tmp_path, f"runs/*/stages/*/{MANIFEST}")
    assert numbers(tmp_path / "work") == numbers(tmp_path / "whole")


def test_a_killed_learn_of_a_million_rows(rows: Path, tmp_path: Path) -> None:
    def words(work: Path) -> list[object]:
        options = [
            "--label",
            "ill",
            "--drop",
            "site",
            "--name",
            "a",
            "--method",
            "er",
            "--steps",
            200,
        ]
        return ["learn", work / "model", rows, *options, "--checkpoint", 50]

    printed = check_finishes(words, tmp_path, f"model/checkpoint/{MANIFEST}")
    assert "continuing a after" in printed
    folders = (tmp_path / "whole", tmp_path / "work")
    models = [load(folder / "model").state_dict() for folder in folders]
    assert differences(*models) == []
