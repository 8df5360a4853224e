"""A folder of runs records its experiments: complete, with dependencies, tiny ones separately."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweeping import EXPERIMENTS, FILES, experiment
from typer.testing import CliRunner

from farshore.cli.app import app
from farshore.errors import FarshoreError
from farshore.runs.plan.experiment import make_book, read_experiment
from farshore.runs.plan.narrow import tiny
from farshore.runs.plan.plan import make_plan
from farshore.runs.store.store import (
    TINY,
    Store,
    record_experiment,
    recorded_book,
    recorded_experiments,
)

BOOK = make_book(EXPERIMENTS / "none.yaml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_recorded_reads_back_to_the_same(path: Path, tmp_path: Path) -> None:
    found = read_experiment(path)
    record_experiment(found, tmp_path, BOOK)
    read = recorded_experiments(tmp_path)
    assert read[found.name][0] == found
    assert set(read) == {
        found.name,
        *found.reads,
        *(part.settings_from for part in found.parts if part.settings_from),
    }


def test_tiny_experiments_are_recorded_separately_and_find_each_other(tmp_path: Path) -> None:
    record_experiment(read_experiment(EXPERIMENTS / "main.yaml"), tmp_path, BOOK)
    small = make_book(EXPERIMENTS / "none.yaml", tiny)
    record_experiment(small("source"), tmp_path, small, ending=TINY)
    assert set(recorded_experiments(tmp_path)) == {"main", "main.tiny", "naive.tiny", "source.tiny"}
    assert recorded_book(tmp_path)("main").search.trials == 20
    assert recorded_experiments(tmp_path)["source.tiny"][1]("main").search.trials == 2
    with pytest.raises(FarshoreError, match="does not record the experiment 'naive'"):
        recorded_book(tmp_path)("naive")


def test_what_is_there_is_replaced_only_by_its_own_sweep(tmp_path: Path) -> None:
    main = experiment(name="main")
    record_experiment(main, tmp_path, BOOK)
    record_experiment(read_experiment(EXPERIMENTS / "sensitivity.yaml"), tmp_path, BOOK)
    assert recorded_book(tmp_path)("main") == main
    record_experiment(experiment(name="main", about="anew"), tmp_path, BOOK)
    assert recorded_book(tmp_path)("main").about == "anew"


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    record_experiment(experiment(), tmp_path, BOOK)
    (tmp_path / "experiments" / "bad.yaml").write_text("name: [")
    damaged: list[str] = []
    assert set(recorded_experiments(tmp_path, damaged)) == {"toy"}
    assert "bad.yaml" in damaged[0]
    with pytest.raises(FarshoreError, match=r"bad\.yaml"):
        recorded_experiments(tmp_path)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "experiments").write_text("a file")
    with pytest.raises(FarshoreError, match="cannot be written"):
        record_experiment(experiment(), tmp_path, BOOK)


@pytest.mark.soak
def test_a_narrowed_sweep_records_the_whole_experiment(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    call = [
        "sweep",
        str(EXPERIMENTS / "small.yaml"),
        "--runs",
        str(runs),
        "--workers",
        "1",
        "--scale",
        "tiny",
    ]
    narrowed = [*call, "--methods", "finetune", "--benchmarks", "heart-hospitals"]
    assert CliRunner().invoke(app, [*narrowed, "--dry-run"]).exit_code == 0
    assert not (runs / "experiments").exists()
    assert CliRunner().invoke(app, narrowed).exit_code == 0
    found, _ = recorded_experiments(runs)["small.tiny"]
    assert found == tiny(read_experiment(EXPERIMENTS / "small.yaml"))


def test_runs_can_be_looked_for_where_their_data_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path / "none"))
    found = read_experiment(EXPERIMENTS / "no_alignment.yaml")
    assert set(make_plan(found, Store(tmp_path), BOOK).absent) == {"rotated-mnist", "covertype"}
    elsewhere = make_plan(found, Store(tmp_path), BOOK, available_only=False)
    assert not elsewhere.absent
    assert len(elsewhere.runs) == 2 * 5 * 3 * 20
