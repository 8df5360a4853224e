"""Engines: the same table wherever the runs are carried out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from sweeping import EXPERIMENTS, experiment, swept, table

import farshore
from farshore import Run
from farshore.cli.app import main
from farshore.runs.engines.local import LocalEngine, without_interrupts
from farshore.runs.engines.ray_engine import RayEngine
from farshore.runs.engines.work import Work
from farshore.runs.plan.plan import plan_run
from farshore.runs.store.identity import NamedRun

HEART = Path(farshore.__file__).parent / "benchmarks" / "files" / "heart.csv"
THREE = {"methods": ["finetune", "er", "cl-coral"]}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    runs = tmp_path_factory.mktemp("here")
    swept(experiment(part=THREE), runs)
    return table(runs)


def test_local_processes_give_the_table_of_one_process(
    tmp_path: Path, expected: pd.DataFrame
) -> None:
    _, progress = swept(experiment(part=THREE), tmp_path, LocalEngine(2))
    assert progress.done == 12
    pd.testing.assert_frame_equal(table(tmp_path), expected)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's handling of Ctrl-C, even if the tests run under a shell that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("by", ["this thread", "another thread"])
def test_ctrl_c_waits_while_a_worker_is_started(by: str, interruptible: None) -> None:
    """Any thread of the process may receive the signal; Python interrupts the main one."""
    done, ended = [], threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()

    def start() -> None:
        with without_interrupts():
            signal.pthread_kill(
                threading.get_ident() if by == "this thread" else other.ident or 0, signal.SIGINT
            )
            time.sleep(0.1)
            done.append(by)

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        ended.set()
        other.join()
    assert done == [by]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="there is no /proc here")
def test_workers_ignore_ctrl_c_from_the_start() -> None:
    """Tested in a new process, because the first worker also starts Python's resource tracker."""
    script = """
from pathlib import Path
from farshore.runs.engines.local import LocalEngine
with LocalEngine(2) as engine:
    for _ in range(2):
        status = Path(f"/proc/{engine._start().process.pid}/status").read_text()
        blocked = next(line for line in status.splitlines() if line.startswith("SigBlk"))
        print(int(blocked.split()[1], 16) >> 1 & 1)
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["1", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")
def test_a_worker_in_which_no_python_code_gets_a_turn_ends_with_its_parent() -> None:
    """A regular expression holds the interpreter's lock, so the thread that watches cannot run."""
    child = """
import os, re
from farshore.runs.store.claim import die_with_parent, killed_with_parent
killed_with_parent()
die_with_parent(os.getppid())
print(os.getpid(), flush=True)
re.match(r"(a*)*b", "a" * 60)
"""
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    status = Path(f"/proc/{pid}/stat")
    time.sleep(0.2)
    assert status.exists()
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 3
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.soak
def test_ray_gives_the_table_of_one_process(tmp_path: Path, expected: pd.DataFrame) -> None:
    pytest.importorskip("ray")
    _, progress = swept(experiment(part=THREE), tmp_path, RayEngine(slots=2))
    assert progress.done == 12
    pd.testing.assert_frame_equal(table(tmp_path), expected)


@pytest.mark.soak
def test_a_killed_worker_costs_no_run(tmp_path: Path) -> None:
    engine = LocalEngine(1)

    def kill() -> None:
        while not engine.workers or engine.workers[0].process.pid is None:
            time.sleep(0.01)
        os.kill(engine.workers[0].process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    _, progress = swept(experiment(search={"trials": 1, "seeds": 1}), tmp_path, engine)
    thread.join()
    assert (progress.done, progress.failures) == (2, [])


@pytest.mark.soak
def test_an_idle_worker_ends_by_itself_and_tidies_up(tmp_path: Path) -> None:
    run = Run.build(benchmark="rotated-digits", method="finetune", steps=1)
    with LocalEngine(1) as engine:
        engine.submit(
            Work(replace(plan_run(run).runs[0], named=NamedRun(run, "one", {})), str(tmp_path))
        )
        while engine.next(1.0) is None:
            pass
        process = engine.workers[0].process
    assert process.exitcode == 0


def typed(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["farshore", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "file",
    [
        # It probes every condition on the embedded data.
        pytest.param(
            file, marks=pytest.mark.soak if file.stem in ("auto", "dose") else (), id=file.stem
        )
        for file in sorted(EXPERIMENTS.glob("*.yaml"))
    ],
)
def test_every_experiment_passes_a_dry_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(EXPERIMENTS.parents[1])  # one names a network by its path from here
    assert (
        typed(
            "sweep",
            str(file),
            "--runs",
            str(tmp_path / "runs"),
            "--dry-run",
            *("--network", "reproduction/efficientnet_lite0.py:pooled"),
            monkeypatch=monkeypatch,
        )
        == 0
    )
    assert file.stem in capsys.readouterr().out
    assert not list((tmp_path / "runs").glob("*/result.json"))


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path / "data"))
    file, runs = str(EXPERIMENTS / "no_alignment.yaml"), str(tmp_path / "runs")
    assert typed("sweep", file, "--runs", runs, "--dry-run", monkeypatch=monkeypatch) == 0
    printed = capsys.readouterr().out
    assert "no_alignment: 600 runs, 0 done, 0 to do here" in printed
    assert (
        "covertype: not available here (type `farshore prepare covertype` first); 300 runs left out"
        in printed
    )
    tiny = (
        "sweep",
        file,
        "--runs",
        runs,
        "--scale",
        "tiny",
        "--benchmarks",
        "heart-hospitals",
        "--methods",
        "cl-coral",
        "--workers",
        "1",
    )
    assert typed(*tiny, "--dry-run", monkeypatch=monkeypatch) == 0
    assert "2 to do here" in (printed := capsys.readouterr().out)
    assert "with 1 at a time, up to" in printed
    assert typed(*tiny, monkeypatch=monkeypatch) == 0
    assert "[2/2] cl-coral on heart-hospitals, seed 0, trial 1: done" in capsys.readouterr().out
    assert typed("results", runs, monkeypatch=monkeypatch) == 0
    assert "2 runs in" in capsys.readouterr().out
    frame = pd.read_csv(tmp_path / "runs" / "tables" / "runs.csv")
    assert list(frame["trial"]) == [0, 1]
    assert {"target_score_unseen", "source_validation_score"} <= set(frame.columns)
    assert typed("results", runs, "-o", str(tmp_path / "t.parquet"), monkeypatch=monkeypatch) == 0
    assert len(pd.read_parquet(tmp_path / "t.parquet")) == 2


def test_runs_in_a_table_are_done_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweep(runs: str, *words: str) -> str:
        narrow = ("--benchmarks", "heart-hospitals", "--methods", "cl-coral", "--workers", "1")
        file = str(EXPERIMENTS / "no_alignment.yaml")
        command = ("sweep", file, "--runs", runs, "--scale", "tiny", *narrow, *words)
        assert typed(*command, monkeypatch=monkeypatch) == 0
        return capsys.readouterr().out

    there, here = tmp_path / "there", tmp_path / "here"
    assert "2 to do here" in sweep(str(there), "--dry-run")
    sweep(str(there))
    names = {path.parent.name for path in there.glob("*/result.json")}
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text(f"run\n{min(names)}\n")
    assert "1 to do here" in sweep(str(here), "--done", str(elsewhere), "--dry-run")
    assert "unseen target" not in sweep(str(here), "--done", str(elsewhere))
    assert {path.parent.name for path in here.glob("*/result.json")} == {max(names)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine", "slurm"], "--engine slurm is not allowed"),
        (["--address", "auto"], "it needs --engine ray"),
        (["--workers", "0"], "--workers 0 is not allowed"),
        (["--scale", "huge"], "the only scale is tiny"),
        (["--device", "tpu"], "use auto, cpu or cuda"),
        (["--done", str(EXPERIMENTS / "small.yaml")], "is not a table that can be read"),
        (["--done", str(HEART)], "has no column `run`"),
    ],
)
def test_bad_options_are_one_line(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typed("sweep", str(EXPERIMENTS / "small.yaml"), *words, monkeypatch=monkeypatch) == 2
    assert message in capsys.readouterr().err
