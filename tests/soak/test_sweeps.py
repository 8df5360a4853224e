"""Stress tests of sweeps and comparisons: killed drivers and workers, lost nodes, full disks.

No run is lost, none is done twice, and the table stays the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from sweeping import MEASURED, experiment, planned, swept

from farshore.results.tidy_table import tidy_table
from farshore.runs.engines.ray_engine import RayEngine
from farshore.runs.store.store import Store

pytestmark = pytest.mark.soak

# Long enough that kills happen during runs, with several domains each.
TOY = {
    "name": "toy",
    "about": "a toy",
    "search": {"trials": 2, "seeds": 2},
    "parts": [
        {
            "benchmarks": ["heart-hospitals"],
            "methods": ["er", "cl-coral", "ewc"],
            "steps": 400,
            "at_most": {"batch_size": 32},
        }
    ],
}
COMMAND = "from farshore.cli.app import main; main()"
# Workers save a state after every domain, however short, so that kills hit resumable runs.
ENVIRONMENT = {**os.environ, "FARSHORE_STATE_SECONDS": "0"}


def table(runs: Path) -> pd.DataFrame:
    return tidy_table(Store(runs)).drop(columns=list(MEASURED))


def start(file: Path, runs: Path) -> subprocess.Popen[str]:
    """Start a sweep of this file."""
    return command("sweep", str(file), "--runs", str(runs), "--workers", "2")


def command(*words: str) -> subprocess.Popen[str]:
    """Start a command in its own process group, as a shell does in the foreground.

    It reacts to Ctrl-C even if these tests ignore it.
    """
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def processes() -> Iterator[tuple[int, list[str], bytes]]:
    """Id, fields of /proc/N/stat after the name (state, parent, group, ...), and command line."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process has ended
            yield (
                int(path.parent.name),
                path.read_text().rpartition(")")[2].split(),
                path.with_name("cmdline").read_bytes(),
            )


def children(pid: int) -> list[int]:
    return [
        child
        for child, fields, command in processes()
        if int(fields[1]) == pid and b"spawn_main" in command
    ]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy.yaml").write_text(yaml.safe_dump(TOY))
    process = start(folder / "toy.yaml", folder / "runs")
    assert process.wait() == 0, process.stdout.read()
    process.stdout.close()
    return folder / "toy.yaml", table(folder / "runs")


def finish(file: Path, runs: Path, expected: pd.DataFrame, results: dict[str, int]) -> None:
    """Run the same command again: finished runs are kept, and the table is as expected."""
    process = start(file, runs)
    printed = process.communicate()[0]
    assert process.returncode == 0, printed
    pd.testing.assert_frame_equal(table(runs), expected)
    for name, written in results.items():
        assert (runs / name / "result.json").stat().st_mtime_ns == written, f"{name} was done twice"
    for name in expected["run"]:
        lines = [
            json.loads(line) for line in (runs / name / "progress.jsonl").read_text().splitlines()
        ]
        learned = [line["learned"] for line in lines if "learned" in line]
        assert sorted(set(learned)) == ["cleveland", "hungarian", "switzerland"]
        # A domain is repeated only if its state was not yet written.
        assert len(learned) <= 4 + len(lines) // 4
        assert sorted(path.name for path in (runs / name).iterdir()) == [
            "config.json",
            "progress.jsonl",
            "result.json",
            "result.sha256",
        ]


def written(runs: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in runs.glob("*/result.json")}


def test_a_killed_driver_loses_nothing(tmp_path: Path, toy: tuple[Path, pd.DataFrame]) -> None:
    file, expected = toy
    chance = random.Random(0)
    finished: dict[str, int] = {}
    midway = 0
    for _ in range(5):
        process = start(file, tmp_path)
        start_time = time.monotonic()
        while (
            not children(process.pid)
            and process.poll() is None
            and time.monotonic() - start_time < 60
        ):
            time.sleep(0.05)
        time.sleep(chance.uniform(0.5, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        now = written(tmp_path)
        assert {name: now[name] for name in finished} == finished
        finished = now
        midway += len(now) < len(expected)
    assert midway >= 3  # most kills hit an unfinished sweep
    finish(file, tmp_path, expected, finished)


def test_killed_workers_lose_nothing(tmp_path: Path, toy: tuple[Path, pd.DataFrame]) -> None:
    file, expected = toy
    chance = random.Random(1)
    process = start(file, tmp_path)
    kills = 0
    while kills < 5 and process.poll() is None:
        time.sleep(chance.uniform(0.5, 1.5))
        victims = children(process.pid)
        if victims:
            os.kill(chance.choice(victims), signal.SIGKILL)
            kills += 1
    process.communicate()
    assert kills == 5
    finish(file, tmp_path, expected, written(tmp_path))


def of_group(group: int) -> list[int]:
    """The running processes of a group, without zombies."""
    return [
        pid
        for pid, fields, _ in processes()
        if int(fields[2]) == group and fields[0] not in ("Z", "X")
    ]


def test_ctrl_c_stops_cleanly_and_the_same_command_resumes(
    tmp_path: Path, toy: tuple[Path, pd.DataFrame]
) -> None:
    """As in a terminal, the signal goes to the whole group: to the sweep and its workers.

    It is sent while the workers start and while they work.
    """
    file, expected = toy
    finished: dict[str, int] = {}
    moments = [
        lambda: children(process.pid),
        lambda: list(tmp_path.glob("*/claim-*")),
        lambda: len(written(tmp_path)) > len(finished) + 2,
    ]
    # A worker starts; a worker works; some runs are done and others are not.
    for reached in moments:
        process = start(file, tmp_path)
        start_time = time.monotonic()
        while not reached() and time.monotonic() - start_time < 60:
            time.sleep(0.01)
        time.sleep(0.2)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        printed = process.communicate(timeout=60)[0]
        assert process.returncode == 130, printed
        assert "Traceback" not in printed
        now = written(tmp_path)
        assert (
            f"stopped: {len(now)} of {len(expected)} runs are done; the same command resumes"
            in printed
        )
        start_time = time.monotonic()
        # Python's own resource tracker ends a moment later.
        while of_group(process.pid) and time.monotonic() - start_time < 5:
            time.sleep(0.05)
        assert of_group(process.pid) == []
        assert not list(tmp_path.glob("*/claim-*"))
        assert {name: now[name] for name in finished} == finished
        finished = now
    assert 0 < len(finished) < len(expected)
    finish(file, tmp_path, expected, finished)


def compare(runs: Path, *more: str) -> subprocess.Popen[str]:
    """Start a comparison with runs that take seconds each."""
    words = ("--methods", "er,cl-coral,ewc", "--seeds", "2", "--steps", "400", "--workers", "2")
    return command("compare", "heart-hospitals", *words, "--runs", str(runs), *more)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    runs = tmp_path_factory.mktemp("compared")
    process = compare(runs)
    printed = process.communicate()[0]
    assert process.returncode == 0, printed
    return table(runs)


def finish_comparison(runs: Path, expected: pd.DataFrame, results: dict[str, int]) -> None:
    """Run the same comparison again: finished runs are kept, and the table is as expected."""
    process = compare(runs)
    printed = process.communicate()[0]
    assert process.returncode == 0, printed
    assert "the page is" in printed
    pd.testing.assert_frame_equal(table(runs), expected)
    now = written(runs)
    assert {name: now[name] for name in results} == results


def wait_for(reached: Callable[[], object], seconds: float = 60) -> None:
    start_time = time.monotonic()
    while not reached() and time.monotonic() - start_time < seconds:
        time.sleep(0.01)
    assert reached()


def test_a_killed_comparison_leaves_no_worker_behind_and_loses_no_result(
    tmp_path: Path, compared: pd.DataFrame
) -> None:
    process = compare(tmp_path)
    wait_for(lambda: written(tmp_path))
    workers = children(process.pid)
    assert workers
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not of_group(process.pid), seconds=5)
    finished = written(tmp_path)
    assert 0 < len(finished) < len(compared)
    finish_comparison(tmp_path, compared, finished)


def test_ctrl_c_ends_a_comparison_within_seconds(tmp_path: Path, compared: pd.DataFrame) -> None:
    process = compare(tmp_path)
    wait_for(lambda: written(tmp_path))
    start_time = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    printed = process.communicate(timeout=60)[0]
    assert time.monotonic() - start_time < 5
    assert process.returncode == 130, printed
    finished = written(tmp_path)
    assert f"stopped: {len(finished)} of {len(compared)} runs are done" in printed
    assert "Traceback" not in printed
    wait_for(lambda: not of_group(process.pid), seconds=20)
    assert not list(tmp_path.glob("*/claim-*"))
    finish_comparison(tmp_path, compared, finished)


def test_the_run_of_a_killed_worker_is_repeated_by_another(
    tmp_path: Path, compared: pd.DataFrame
) -> None:
    process = compare(tmp_path)
    wait_for(lambda: list(tmp_path.glob("*/claim-*")))
    os.kill(children(process.pid)[0], signal.SIGKILL)
    printed = process.communicate()[0]
    assert process.returncode == 0, printed
    pd.testing.assert_frame_equal(table(tmp_path), compared)


def test_a_run_that_always_kills_its_worker_fails_alone(
    tmp_path: Path, compared: pd.DataFrame
) -> None:
    """Its third worker is the last; all other runs finish, and one line says what happened."""
    victim = str(compared["run"].iloc[0])
    process = compare(tmp_path)
    killed: set[int] = set()
    while process.poll() is None:
        for claim in (tmp_path / victim).glob("claim-*"):
            with contextlib.suppress(OSError, ValueError, ProcessLookupError):
                owner = json.loads(claim.read_text())["pid"]
                if owner not in killed and owner in children(process.pid):
                    os.kill(owner, signal.SIGKILL)
                    killed.add(owner)
        time.sleep(0.01)
    printed = process.communicate()[0]
    assert process.returncode == 1, printed
    assert len(killed) == 3
    assert set(written(tmp_path)) == set(compared["run"]) - {victim}
    # The line comes when it happens, and again at the end.
    (line,) = {line for line in printed.splitlines() if line.startswith("failed: ")}
    assert f"run {victim} " in line
    assert "its process died 3 times" in line
    assert "Traceback" not in printed
    finish_comparison(tmp_path, compared, written(tmp_path))


def test_an_interrupted_run_resumes_after_its_last_finished_domain(tmp_path: Path) -> None:
    words = ("run", "heart-hospitals", "cl-coral", "--steps", "1000", "--out", str(tmp_path))
    process = command(*words)
    wait_for(lambda: list(tmp_path.glob("*/stages/record.json")))
    os.killpg(process.pid, signal.SIGINT)
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 130, printed
    assert "the same command resumes after the last finished domain" in printed
    assert not written(tmp_path)
    assert not list(tmp_path.glob("*/claim-*"))
    process = command(*words)
    again = process.communicate()[0]
    assert process.returncode == 0, again
    assert "learned cleveland" not in again
    assert "learned switzerland" in again


def test_a_killed_search_by_optuna_draws_the_same_trials(tmp_path: Path) -> None:
    part = {**TOY["parts"][0], "methods": ["er", "cl-coral"], "steps": 100}
    file = tmp_path / "toy.yaml"
    file.write_text(
        yaml.safe_dump(
            {**TOY, "search": {"trials": 12, "seeds": 1, "by": "optuna"}, "parts": [part]}
        )
    )
    straight = start(file, tmp_path / "straight")
    printed = straight.communicate()[0]
    assert straight.returncode == 0, printed
    expected = table(tmp_path / "straight")
    assert set(expected["status"]) == {"done", "pruned"}
    finished: dict[str, int] = {}
    for results in (3, 9, 16):
        process = start(file, tmp_path / "killed")
        start_time = time.monotonic()
        while len(written(tmp_path / "killed")) < results and time.monotonic() - start_time < 120:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        now = written(tmp_path / "killed")
        assert results <= len(now) < len(expected)
        assert {name: now[name] for name in finished} == finished
        finished = now
    last = start(file, tmp_path / "killed")
    printed = last.communicate()[0]
    assert last.returncode == 0, printed
    pd.testing.assert_frame_equal(table(tmp_path / "killed"), expected)
    now = written(tmp_path / "killed")
    assert {name: now[name] for name in finished} == finished


def test_a_ray_cluster_that_loses_a_node_finishes(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    part = {"methods": ["er", "cl-coral"], "steps": 30}
    swept(experiment(part=part), tmp_path / "here")
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        lost = False

        def lose(run: object, outcome: object, progress: object) -> None:
            nonlocal lost
            if not lost:
                cluster.remove_node(second, allow_graceful=False)
                lost = True

        _, progress = swept(
            experiment(part=part), tmp_path / "ray", RayEngine(slots=2), report=lose
        )
        assert lost
        assert (progress.done, progress.failures) == (8, [])
    finally:
        ray.shutdown()
        cluster.shutdown()
    pd.testing.assert_frame_equal(table(tmp_path / "here"), table(tmp_path / "ray"))


def test_a_full_disk_is_named_and_only_those_runs_are_repeated(tmp_path: Path) -> None:
    """Fill a file system of 1 MiB in its own namespace; with space, the same command finishes."""
    probe = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],
        capture_output=True,
    )
    if probe.returncode != 0:
        pytest.skip("users may not mount a file system on this machine")
    (tmp_path / "toy.yaml").write_text(
        yaml.safe_dump({**TOY, "parts": [{**TOY["parts"][0], "steps": 2}]})
    )
    runs = tmp_path / "runs"
    runs.mkdir()
    sweep = f"{sys.executable} -m farshore sweep {tmp_path}/toy.yaml --runs {runs} --workers 1"
    script = f"""
        mount -t tmpfs -o size=1m tmpfs {runs}
        head -c 960K /dev/zero > {runs}/ballast
        {sweep}; echo first $?
        ls {runs}/*/result.json | wc -l
        rm {runs}/ballast
        {sweep}; echo second $?
    """
    printed = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True
    ).stdout
    assert "first 1" in printed, printed
    assert "No space left on device" in printed
    assert f"{runs}/" in printed.split("failed: ")[1]
    assert "second 0" in printed
    assert len(planned(experiment(), tmp_path / "none").unique()) == 8
