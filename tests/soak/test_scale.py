"""A million rows: training that is killed is finished by the same command, with equal numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from killing import Ended, Killer

from farshore.base.state import MANIFEST
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


def killed(killer: Killer, words: list[object], work: Path, kept: str) -> Ended:
    """Kill the command after some of its work is on the disk; tell that more was to do."""
    for change in (30, 40, 20, 15, 50, 12):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        ended = killer.run(words, work, change=change)
        if ended.code == -9 and list(work.glob(kept)):
            return ended
    pytest.fail(f"no state was on the disk when the command was killed: {ended.printed}")


def test_a_killed_run_of_a_million_rows(rows: Path, tmp_path: Path) -> None:
    def words(work: Path) -> list[object]:
        options = ["--domain", "site", "--label", "ill", "--target", "d", "--steps", 100]
        return ["run", rows, "er", *options, "--memory", 2000, "--out", work / "runs"]

    def numbers(work: Path) -> dict[str, object]:
        (file,) = work.glob("runs/*/result.json")
        result = json.loads(file.read_text())
        assert json.loads(file.read_text())["status"] == "done"
        return {
            "weights": result["target"]["weights"],
            "scores": result["target"]["scores"],
            "matrices": result["matrices"],
        }

    with Killer() as killer:
        whole = tmp_path / "whole"
        whole.mkdir()
        assert killer.run(words(whole), whole).code == 0
        work = tmp_path / "work"
        killed(killer, words(work), work, f"runs/*/stages/*/{MANIFEST}")
        again = killer.run(words(work), work)
        assert again.code == 0, again.printed
    assert numbers(work) == numbers(whole)


def test_a_killed_learn_of_a_million_rows(rows: Path, tmp_path: Path) -> None:
    def words(work: Path) -> list[object]:
        options = ["--label", "ill", "--drop", "site", "--name", "a", "--steps", 200]
        return ["learn", work / "model", rows, *options, "--checkpoint", 50]

    with Killer() as killer:
        whole, work = tmp_path / "whole", tmp_path / "work"
        whole.mkdir()
        assert killer.run(words(whole), whole).code == 0
        killed(killer, words(work), work, f"model/checkpoint/{MANIFEST}")
        again = killer.run(words(work), work)
        assert again.code == 0, again.printed
        assert "resumed" in again.printed or "continue" in again.printed
    models = [load(folder / "model").state_dict() for folder in (whole, work)]
    assert differences(*models) == []
