"""With many sources, some are scored after each one, and the result says so."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from farshore import FarshoreError
from farshore.cli.run_output import show
from farshore.results.frame import frame_of_results
from farshore.runs import protocol
from farshore.runs.protocol import execute, scored_after
from farshore.runs.result import Result, average, backward_transfer, forgetting
from farshore.runs.run import Run

SITES = 9


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(20 * SITES, 3)), columns=list("abc"))
    rows["label"] = np.where(rows["a"] + rng.normal(size=len(rows)) > 0, "yes", "no")
    rows["site"] = [f"site {number // 20}" for number in range(len(rows))]
    path = tmp_path_factory.mktemp("many") / "sites.csv"
    rows.to_csv(path, index=False)
    return path


def run_of(table: Path, method: str = "slda") -> Run:
    options = {"path": str(table), "domain": "site", "label": "label"}
    return Run(benchmark="table", options=options, method=method, target="site 0")


def test_the_scored_sources_are_a_fixed_draw_the_newest_and_the_next(table: Path) -> None:
    run = run_of(table)
    assert scored_after(3, protocol.MANY_SOURCES, run) is None
    of_stages = [scored_after(number, 200, run) for number in range(199)]
    assert of_stages == [scored_after(number, 200, run) for number in range(199)]
    always = set.intersection(*map(set, of_stages))
    assert len(always) == protocol.SAMPLED_SOURCES
    assert all(each == {*always, number, number + 1} for number, each in enumerate(of_stages))
    other = run.model_copy(update={"scenario_seed": 1})
    assert scored_after(3, 200, other) != scored_after(3, 200, run)


def test_a_sampled_matrix_has_the_scores_of_the_whole_one_and_none_of_the_rest(
    table: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = execute(run_of(table))
    monkeypatch.setattr(protocol, "MANY_SOURCES", 5)
    monkeypatch.setattr(protocol, "SAMPLED_SOURCES", 2)
    said: list[str] = []

    class Reader(protocol.Observer):
        def note(self, text: str) -> None:
            said.append(text)

    sampled = execute(run_of(table), observer=Reader())
    note = "after each of the 8 sources, 2 drawn ones are scored"
    assert any(note in text for text in said)
    assert any(note in text for text in sampled.notes)
    assert not any(note in text for text in whole.notes)
    assert sampled.target.scores == whole.target.scores
    for split, rows in sampled.matrices.items():
        for number, (row, full) in enumerate(zip(rows, whole.matrices[split], strict=True)):
            kept = [position for position, value in enumerate(row) if value is not None]
            assert {number, min(number + 1, 7)} <= set(kept)
            assert [row[position] for position in kept] == [full[position] for position in kept]
            assert len(kept) <= 4 or number == 7
    matrix, full = sampled.matrices["validation"], whole.matrices["validation"]
    assert average(matrix) == average(full)
    assert backward_transfer(matrix) == backward_transfer(full)
    # Forgetting needs every score since a source was learned: it is that of the drawn sources.
    scored = [i for i in range(7) if all(row[i] is not None for row in matrix[i:])]
    drops = [max(row[i] for row in full[i:7]) - full[7][i] for i in scored]
    assert 2 <= len(scored) < 7
    assert forgetting(matrix) == pytest.approx(sum(drops) / len(drops))
    # Everything that reads a result reads this one.
    sampled.save(tmp_path / "result.json")
    again = Result.read(tmp_path / "result.json")
    assert again.matrices == sampled.matrices
    console = Console(width=60, record=True, file=io.StringIO())
    show(again, console)
    assert "on some of 8 sources" in " ".join(console.export_text().split())
    frame_of_results([("run", again, {})])
    saved = json.loads((tmp_path / "result.json").read_text())
    saved["matrices"]["validation"][3][3] = None
    (tmp_path / "result.json").write_text(json.dumps(saved))
    with pytest.raises(FarshoreError, match="newest and the final scores"):
        Result.read(tmp_path / "result.json")
