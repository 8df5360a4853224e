"""Finished runs are collected into the committed tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import reporting

from farshore.runs.result import backward_transfer
from farshore.runs.store.store import Store
from reproduction import TABLES, collect, finished_runs
from reproduction.collect import planned_runs
from reproduction.finished_runs import table

# What rows of earlier runs do not have.


def test_the_tables_stay_small_enough_to_commit() -> None:
    assert sum(path.stat().st_size for path in TABLES.iterdir()) < 5_000_000


def test_every_table_is_of_an_experiment_and_carries_all_metrics() -> None:
    tables = sorted(path.stem for path in TABLES.glob("*.csv"))
    assert set(tables) <= set(collect.COLLECTED)
    for name in tables:
        frame = table(name)
        done = frame[frame["status"] == "done"]
        assert len(done)
        for metric in ("accuracy", "macro_f1", "balanced_accuracy", "log_loss"):
            assert done[f"target_{metric}"].notna().all()


def test_the_target_as_it_is_weights_the_recalls_by_class_size() -> None:
    classes = ("spruce-fir", "lodgepole-pine", "ponderosa-pine", "aspen", "douglas-fir")
    always_lodgepole = [[0, 0, 0, 0, 0], [0, 9, 0, 0, 0], [0, 9, 0, 0, 0], [0] * 5, [0, 9, 0, 0, 0]]
    score = collect.score_as_it_is("cache-la-poudre", classes, always_lodgepole)
    assert score == pytest.approx(3_026 / 36_968)
    half = [[0] * 5, [0, 0, 9, 0, 0], [0, 0, 4, 0, 4], [0] * 5, [0, 0, 0, 0, 9]]
    score = collect.score_as_it_is("cache-la-poudre", classes, half)
    assert score == pytest.approx((21_454 / 2 + 9_741) / 36_968)
    assert collect.score_as_it_is("neota", classes, half) is None


def test_the_gain_by_learning_is_positive_even_where_much_is_forgotten() -> None:
    matrix = [[0.9, 0.5, 0.3], [0.8, 0.9, 0.4], [0.2, 0.6, 0.9]]
    assert collect.gain_by_learning(matrix) == pytest.approx((0.1 + 0.5) / 2)
    assert backward_transfer(matrix) == pytest.approx((-0.7 - 0.3) / 2)
    assert collect.gain_by_learning(matrix[:1]) is None


def test_no_table_has_a_run_that_its_experiment_no_longer_plans() -> None:
    # The name of a run changes with the results version of its method and of its data set.
    for name in collect.COLLECTED:
        recorded = table(name)["run"]
        assert set(recorded) <= {planned.name for planned in planned_runs(name)}
        assert recorded.is_unique, name


@pytest.fixture
def own_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the tables, which a test may change."""
    copy = Path(shutil.copytree(TABLES, tmp_path / "tables"))
    for module in (finished_runs, collect):
        monkeypatch.setattr(module, "TABLES", copy)
    table.cache_clear()
    yield copy
    table.cache_clear()


def test_collecting_adds_to_the_tables_and_replaces_the_same_runs(
    own_tables: Path, tmp_path: Path
) -> None:
    path, store = own_tables / "readings.csv", Store(tmp_path / "runs")
    known = pd.read_csv(path, dtype=str)
    collect.collect(store.runs, ["readings"])  # an empty store: nothing changes
    assert pd.read_csv(path, dtype=str).equals(known)

    first, second = planned_runs("readings")[:2]
    for planned in (first, second):
        made = reporting.result(planned.run, 0.25)
        reporting.write(store.runs, made, planned, commit="c0ffee")
    known[known["run"] != first.name].to_csv(path, index=False)  # one is missing, one is there
    table.cache_clear()
    collect.collect(store.runs, ["readings"])
    again = pd.read_csv(path, dtype=str)
    others = ~known["run"].isin([first.name, second.name])
    assert sorted(again["run"]) == sorted(known["run"])
    assert again[others][list(known)].equals(known[others])
    assert set(again[~others]["target_score_unseen"].astype(float)) == {0.25}
    assert set(again[~others]["device"]) == {"cpu"}
    assert set(again[~others]["commit"]) == {"c0ffee"}


def test_collecting_drops_runs_that_are_no_longer_planned(own_tables: Path, tmp_path: Path) -> None:
    path = own_tables / "readings.csv"
    known = pd.read_csv(path, dtype=str)
    known.assign(run=["0" * 16, *known["run"][1:]]).to_csv(path, index=False)
    table.cache_clear()
    collect.collect(tmp_path, ["readings"])
    assert list(pd.read_csv(path, dtype=str)["run"]) == list(known["run"][1:])
    known[:1].assign(run="0" * 16).to_csv(path, index=False)  # none of them is planned
    table.cache_clear()
    collect.collect(tmp_path, ["readings"])
    assert table("readings").empty
