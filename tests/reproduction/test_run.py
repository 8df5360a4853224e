"""The runs behind docs/reproduction.md can be repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reproduction import ROOT, TABLES, run
from reproduction.collect import REPRODUCED

RUNS = Path("runs")


def swept(data_set: str) -> list[str]:
    """The experiments that are carried out for a data set."""
    return [Path(command[2]).stem for command in run.commands(data_set, RUNS, "cpu")]


def test_the_command_covers_every_experiment_of_a_data_set() -> None:
    others = ("image_benchmarks", "protocol_ablated")
    assert swept("rotated-mnist") == [name for name in REPRODUCED if name not in others]
    assert "fitted_order" not in swept("covertype")
    assert swept("wm811k") == ["image_benchmarks"]
    assert swept("imagenet") == []


def test_what_is_missing_is_what_the_tables_do_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    [command] = run.commands("wm811k", RUNS, "cuda", missing=True)
    assert command[:2] == ["farshore", "sweep"]
    assert command[3:] == [
        *("--runs", "runs", "--device", "cuda", "--benchmarks", "wm811k"),
        *("--done", str(TABLES / "image_benchmarks.csv")),
    ]
    monkeypatch.setattr(run, "table", lambda _: [])
    [command] = run.commands("wm811k", RUNS, "cuda", missing=True)
    assert "--done" not in command  # nothing has run yet


def test_a_failed_run_does_not_stop_the_next_experiment_but_an_error_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = ["run", "--table", "covertype", "--scale", "tiny", "--runs", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", typed)
    for code, started in ((1, len(swept("covertype"))), (2, 1), (130, 1)):
        carried: list[list[str]] = []
        monkeypatch.setattr(
            run, "carry_out", lambda command, done=carried, end=code: done.append(command) or end
        )
        assert run.main() == code
        assert len(carried) == started


@pytest.mark.soak
def test_a_data_set_is_reproduced_at_tiny_scale(tmp_path: Path) -> None:
    # One with few runs: the experiments of the others run at this scale in test_experiments.py.
    command = [sys.executable, "-m", "reproduction.run", "--table", "wm811k"]
    subprocess.run([*command, "--scale", "tiny", "--runs", str(tmp_path)], check=True, cwd=ROOT)
    assert len(list(tmp_path.glob("*/result.json"))) >= 20
