"""Loggers: what they write, which are refused, and that a run's numbers do not depend on them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from pictured import result

from farshore.cli.app import main
from farshore.errors import FarshoreError
from farshore.loggers import CSV, PACKAGES, Logger, check_logger, make_logger
from farshore.runs.store.store import run_folders


class Remembering(Logger):
    """Remembers what it is given."""

    name = "remembering"

    def __init__(self, every: int = 10) -> None:
        super().__init__(every=every)
        self.written: list[tuple[int, dict[str, float]]] = []
        self.facts: dict[str, str] = {}
        self.closed = False

    def write(self, values: Mapping[str, float]) -> None:
        self.written.append((self.count, dict(values)))

    def describe(self, facts: Mapping[str, str]) -> None:
        self.facts |= facts

    def close(self) -> None:
        self.closed = True


def test_losses_are_read_now_and_then_and_steps_count_over_domains() -> None:
    logger = Remembering(every=3)
    for domain in ("a", "b"):
        for step in range(4):
            logger.step(domain, step, {"erm": torch.tensor(float(step))})
        logger.domain(domain, {f"{domain} validation accuracy": 0.5})
    steps = [count for count, values in logger.written if "loss/erm" in values]
    assert steps == [0, 3, 6]
    assert [count for count, values in logger.written if "loss/erm" not in values] == [4, 8]
    logger.finish(result("er", target=0.6))
    assert logger.written[-1] == (8, {"target/accuracy": 0.6, "target/macro_f1": 0.6})
    assert logger.facts["method"] == "er"
    assert logger.closed


def test_a_diverged_run_is_closed_without_target_scores() -> None:
    logger = Remembering()
    logger.finish(result("er", status="diverged"))
    assert logger.written == []
    assert logger.facts["status"] == "diverged"
    assert logger.closed


def test_an_unknown_logger_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(FarshoreError, match="did you mean 'tensorboard'"):
        check_logger("tensorbord")


@pytest.mark.parametrize("name", [name for name, package in PACKAGES.items() if package])
def test_a_missing_package_is_named_with_what_to_type(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farshore.loggers.find_spec", lambda package: None)
    with pytest.raises(FarshoreError, match=rf"pip install '\.\[{name}\]', or use --log csv"):
        check_logger(name)


def typed(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["farshore", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_log_csv_writes_a_file_per_run_and_changes_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("run", "heart-hospitals", "er", "--steps", 3, "--set", "batch_size=8")
    assert typed(monkeypatch, *command, "--out", tmp_path / "plain") == 0
    assert typed(monkeypatch, *command, "--out", tmp_path / "logged", "--log", "csv") == 0
    (plain,), (logged,) = (
        [folder.read() for folder in run_folders(tmp_path / name)] for name in ("plain", "logged")
    )
    assert plain.target is not None
    assert logged.target is not None
    assert plain.target.scores == logged.target.scores
    (path,) = (tmp_path / "logged" / "logs" / "csv").iterdir()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    written = {row["name"]: float(row["value"]) for row in rows}
    assert written["target/accuracy"] == logged.target_score
    assert "loss/erm" in written
    assert int(rows[-1]["step"]) == 9
    assert not (tmp_path / "plain" / "logs").exists()


def test_log_without_a_folder_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "run", "heart-hospitals", "er", "--log", "csv") == 2
    assert "give --out OUT too" in capsys.readouterr().err


def test_the_csv_file_is_complete_after_every_domain(tmp_path: Path) -> None:
    logger = make_logger("csv", tmp_path, "one")
    assert isinstance(logger, CSV)
    logger.domain("a", {"a validation accuracy": 0.25})
    with logger.path.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["step", "name", "value"],
            ["0", "score/a validation accuracy", "0.25"],
        ]
    logger.close()
    logger.close()
