"""A full disk: one line says so, what was there before stays, and a finished result is printed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from filling import full_disk
from sweeping import experiment, swept

from farshore.cli.app import main
from farshore.deployment.changes import learn
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.deployment.template import make_template
from farshore.results.experiment_table import save_table
from farshore.runs.engines.carry_out import carry_out, open_runs
from farshore.runs.engines.engine import InlineEngine
from farshore.runs.plan.plan import plan_run
from farshore.runs.run import Run
from farshore.runs.store import store as run_folders
from farshore.runs.store.claim import Claim, is_stale
from farshore.runs.store.store import Store

COLUMNS = Columns(label="y")
RUN = ["run", "heart-hospitals", "er", "--steps", "2", "--set", "batch_size=8"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two sites, and a folder of runs."""
    folder = tmp_path_factory.mktemp("prepared")
    for number in range(2):
        rows = {"a": [number + 0.1 * row for row in range(20)], "y": ["p", "q"] * 10}
        pd.DataFrame(rows).to_csv(folder / f"{number}.csv", index=False)
        new = NewModel(memory=6, settings={"batch_size": 4}) if number == 0 else NewModel()
        learn(
            folder / "model",
            folder / f"{number}.csv",
            name=f"site {number}",
            columns=COLUMNS,
            new=new,
            steps=2,
        )
    ncm = NewModel(method="ncm")
    make_template(folder / "template", folder / "0.csv", columns=COLUMNS, new=ncm)
    new = NewModel(template=folder / "template")
    for number, name in enumerate(("sums", "others")):
        rows = folder / f"{number}.csv"
        learn(folder / name, rows, name=f"site {number}", columns=Columns(), new=new)
    swept(experiment(search={"trials": 1, "seeds": 1}), folder / "runs")
    return folder


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Type a command; returns the exit code, what was printed, and the error."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["farshore", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """All files except locks, whose contents are a message to other processes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


COMMANDS: dict[str, Callable[[Path], list[object]]] = {
    "learn": lambda work: ["learn", work / "model", work / "1.csv", "--name", "c", "--steps", 2],
    "learn a first site": lambda work: [
        *("learn", work / "new", work / "0.csv", "--name", "c", "--label", "y", "--steps", 2)
    ],
    "join": lambda work: ["join", work / "sums", work / "others", "-o", work / "joined"],
    "forget": lambda work: ["forget", work / "model", "site 0"],
    "undo": lambda work: ["undo", work / "model"],
    "predict": lambda work: ["predict", work / "model", work / "0.csv", "-o", work / "p.csv"],
    "export": lambda work: ["export", work / "model", work / "model.pt2"],
    "run": lambda work: [*RUN, "--out", work / "runs"],
    "compare": lambda work: [
        *("compare", "heart-hospitals", "--methods", "er", "--steps", 2, "--runs", work / "runs")
    ],
    "results": lambda work: ["results", work / "runs", "-o", work / "results.csv"],
    "report": lambda work: ["report", work / "runs", "-o", work / "report.md"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_one_line_and_nothing_changes(name: str, prepared: Path, typed, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(prepared, work)
    before = contents(work)
    with full_disk(0):
        code, _, error = typed(*COMMANDS[name](work))
    assert code == 2
    assert error.startswith("farshore: error: ")
    assert error.count("\n") == 1
    assert "File too large" in error
    assert contents(work) == before


def test_the_table_of_a_sweep(tmp_path: Path) -> None:
    from farshore.errors import FarshoreError

    with full_disk(0), pytest.raises(FarshoreError, match=r"toy\.csv' cannot be written"):
        save_table(pd.DataFrame({"a": [1]}), tmp_path, "toy")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "model", "0.csv"],
        ["evaluate", "model", "0.csv"],
        ["show", "model"],
        ["show", "model", "--log"],
        ["card", "model"],
        ["results", "runs"],
        ["methods"],
        ["methods", "er"],
        ["benchmarks"],
        ["sweep", "--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_full_standard_output(
    words: list[str], prepared: Path, typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    with open("/dev/full", "w") as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        code, _, error = typed(*words)
    assert code == 2
    assert error == (
        "farshore: error: the standard output cannot be written: No space left on device\n"
    )


def no_space_for(monkeypatch: pytest.MonkeyPatch, name: str, times: int = 1000) -> None:
    """No file of this name can be written in a run's folder, for some times."""
    real, left = run_folders.write_atomic, [times]

    def write(path: Path, data: bytes) -> None:
        if path.name == name and left[0]:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    monkeypatch.setattr(run_folders, "write_atomic", write)


@pytest.mark.parametrize("out", [True, False])
def test_a_run_whose_result_cannot_be_written_prints_all_of_it(
    out: bool, typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*RUN, *(["--out", tmp_path] if out else [])]
    with monkeypatch.context() as patched:
        no_space_for(patched, "result.json")
        code, printed, error = typed(*words)
    assert code == 2
    assert "result.json: No space left on device; the whole result is printed" in error
    assert error.count("\n") == 1
    result = json.loads(printed[printed.index("\n{") :])
    assert result["status"] == "done"
    if out:
        assert typed(*words)[0] == 0  # with space, the same command finishes
        (written,) = tmp_path.glob("*/result.json")
        assert json.loads(written.read_text())["target"]["scores"] == result["target"]["scores"]
        assert not list(tmp_path.glob("*/failure.txt"))


def test_a_result_is_written_once_there_is_space_again(
    typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_space_for(monkeypatch, "result.json", times=1)
    code, printed, _ = typed(*RUN, "--out", tmp_path)
    assert code == 0
    assert "result.json and model" in printed
    assert len(list(tmp_path.glob("*/result.json"))) == 1


def test_a_model_that_cannot_be_saved_does_not_cost_the_result(
    typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from farshore.base import state

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(state, "write_atomic", full)
        code, printed, error = typed(*RUN, "--out", tmp_path)
    assert code == 2
    assert "the model was not saved" in printed
    assert "result.json; no model was kept" in printed
    assert "with --again repeats the run" in error
    assert len(list(tmp_path.glob("*/result.json"))) == 1
    assert typed(*RUN, "--out", tmp_path, "--again")[0] == 0
    assert len(list(tmp_path.glob("*/model/manifest.json"))) == 1


def test_a_disk_that_fills_during_a_run_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress lines and states between domains are lost; the result, which is small, is not."""
    monkeypatch.setattr("farshore.runs.engines.work.LEAST_SECONDS", 0.0)
    plan = plan_run(Run.build(benchmark="heart-hospitals", method="er", steps=2))
    store = Store(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("farshore.runs.engines.work.append_line", full)
    monkeypatch.setattr("farshore.base.state.write_atomic", full)
    with InlineEngine() as engine:
        progress = carry_out(plan, store, engine, todo=open_runs(plan, store)[0])
    assert progress.failures == []
    assert store.read(plan.runs[0].name).status == "done"


def test_claims_on_a_full_disk(tmp_path: Path) -> None:
    claim = Claim(tmp_path, 0)
    claim.path.write_text("{}")
    with full_disk(0):
        assert not is_stale(tmp_path)
    assert contents(tmp_path) == {"claim-0": b"{}"}
