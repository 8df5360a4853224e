"""Commands killed at any moment: nothing saved is lost, and the same command finishes the work.

A sweep kills the commands that change a model, and `run`, before every single change that they make
on disk. A second test kills all commands at 40 random moments. After each kill the folder contains
the old or the new state; the repeated command succeeds, and its result is that of an uninterrupted
one to the last bit.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from killing import HERE, WORKER_MOMENT, Ended, Killer, alive

from farshore.base.manifest import MANIFEST
from farshore.base.state import load_parts
from farshore.deployment.familiarity import past_rows
from farshore.learner.loading import load
from farshore.runs.store.store import Store
from farshore.testing import differences

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no /proc here"),
]

MOMENTS = 40
# Another seed gives other moments.
SEED = int(os.environ.get("FARSHORE_KILL_SEED", "0"))
TAG = re.compile(r"[0-9a-f]{12}")
# What a process killed while it claims a run leaves for later.
LITTER = re.compile(r".*/\.(claim-\d+|clock)\.[0-9a-f]{8}")


# ---- what a folder contains ----------------------------------------------------------------------


def model_contents(work: Path) -> dict[str, Any] | None:
    """The model without the time at which it was made; None if there is none."""
    if not (work / "model" / MANIFEST).exists():
        return None
    parts = load_parts(work / "model", kind="learner")
    for facts in (*parts["sites"]["sites"].values(), *parts["log"]["entries"]):
        facts.pop("when")
    calibration = parts["sites"]["calibration"]
    if calibration is not None:
        calibration.pop("when")
    return parts


def results(work: Path) -> dict[str, Any]:
    """The results without times."""
    found = {}
    for name, result, _ in Store(work / "runs").results():
        numbers = result.model_dump(exclude={"seconds", "step_milliseconds"})
        if numbers["target"]:
            numbers["target"].pop("opened_at")
        found[name] = numbers
    return found


def is_known_model(contents: Any, before: Any, after: Any) -> bool:
    """Whether this is the old or the new model; a new one begins untrained."""
    if contents is None or (before is None and not contents["learner"]["domains"]):
        return before is None
    known = [model for model in (before, after) if model is not None]
    return any(differences(model, contents) == [] for model in known)


def are_known_results(contents: Any, before: Any, after: Any) -> bool:
    return all(after[name] == numbers for name, numbers in contents.items())


def names(work: Path) -> list[str]:
    """All files, without the parts of their names that are drawn at random."""
    listed = (str(path.relative_to(work)) for path in work.rglob("*"))
    return sorted(TAG.sub("TAG", name) for name in listed)


# ---- the commands --------------------------------------------------------------------------------


@dataclass
class Case:
    """A command to kill.

    before: the folder that it starts from.
    exact: whether the repeated command leaves nothing else in the folder.
    """

    name: str
    words: Callable[[Path], list[object]]
    before: Path
    contents: Callable[[Path], Any] = model_contents
    is_known: Callable[[Any, Any, Any], bool] = is_known_model
    exact: bool = True
    old: Any = None
    new: Any = None
    files: tuple[str, ...] = ()
    whole: Ended | None = None


QUICK = ["--steps", 4, "--checkpoint", 2]
FIRST = ["--label", "y", "--method", "cl-coral", "--memory", 20, "--set", "batch_size=8"]
TINY = ["--steps", 2, "--set", "batch_size=8"]


def site(path: Path, number: int) -> None:
    draw = np.random.default_rng(number)
    y = np.arange(40) % 2
    columns = {"a": y + draw.normal(0, 0.3, 40) + number, "b": draw.normal(0, 1, 40)}
    pd.DataFrame({**columns, "y": np.where(y, "p", "q")}).to_csv(path, index=False)


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as started:
        yield started


def succeed(killer: Killer, words: list[object], work: Path) -> Ended:
    ended = killer.run(words, work)
    assert ended.code == 0, ended.printed
    return ended


@pytest.fixture(scope="module")
def cases(killer: Killer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Every command with its starting point and its uninterrupted result."""
    folder = tmp_path_factory.mktemp("cases")
    for number in range(3):
        site(folder / f"{number}.csv", number)
    # Every third label is wrong, so that the model is too certain of itself.
    wrong = pd.read_csv(folder / "2.csv")
    wrong.loc[::3, "y"] = wrong.loc[::3, "y"].map({"p": "q", "q": "p"})
    wrong.to_csv(folder / "few.csv", index=False)

    def learn(number: int) -> Callable[[Path], list[object]]:
        more = FIRST if number == 0 else []
        words = [folder / f"{number}.csv", "--name", f"site {number}", *QUICK, *more]
        return lambda work: ["learn", work / "model", *words]

    empty, one, two = (folder / name for name in ("empty", "one", "two"))
    empty.mkdir()
    succeed(killer, learn(0)(one), one)
    shutil.copytree(one, two)
    succeed(killer, learn(1)(two), two)
    # The training of a third site was interrupted: its checkpoint contains rows of past sites.
    for moment in range(1, 30):
        killer.run(learn(2)(two), two, change=moment)
        if (two / "model" / "checkpoint" / MANIFEST).exists():
            break
    places = folder / "places"
    columns = ["--label", "y", "--method", "ncm", "--template-only"]
    succeed(killer, ["learn", places / "template", folder / "0.csv", *columns], places)
    for number, name in enumerate("ab"):
        words = [folder / f"{number}.csv", "--name", f"site {number}"]
        template = ["--template", places / "template"]
        succeed(killer, ["learn", places / name, *words, *template], places)
    runs = {"contents": results, "is_known": are_known_results}
    listed = [
        Case("learn the first site", learn(0), empty),
        Case("learn the second site", learn(1), one),
        Case("forget", lambda work: ["forget", work / "model", "site 0"], two),
        Case("undo", lambda work: ["undo", work / "model"], two),
        Case("calibrate", lambda work: ["calibrate", work / "model", folder / "few.csv"], one),
        Case(
            "run",
            lambda work: ["run", "heart-hospitals", "cl-coral", *TINY, "--out", work / "runs"],
            empty,
            **runs,
        ),
        Case(
            "compare",
            lambda work: [
                *("compare", "heart-hospitals", "--methods", "er,finetune", "--seeds", 1),
                *(*TINY, "--workers", 1, "--runs", work / "runs"),
            ],
            empty,
            exact=False,
            **runs,
        ),
        Case(
            "audit",
            lambda work: [
                *("audit", "heart-hospitals", "--methods", "ncm", "--orders", "listed"),
                *("--steps", 2, "--workers", 1, "--runs", work / "runs"),
            ],
            empty,
            exact=False,
            **runs,
        ),
        Case("join", lambda work: ["join", work / "a", work / "b", "-o", work / "model"], places),
        Case(
            "learn with a template",
            lambda work: [
                *("learn", work / "model", folder / "1.csv", "--name", "site 1"),
                *("--template", work / "template"),
            ],
            places,
        ),
    ]
    for case in listed:
        work = copied(case, folder / "whole" / case.name)
        case.old = case.contents(work)
        case.whole = succeed(killer, case.words(work), work)
        case.new, case.files = case.contents(work), tuple(names(work))
    return {case.name: case for case in listed}


def copied(case: Case, work: Path) -> Path:
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(case.before, work)
    return work


# ---- after a kill --------------------------------------------------------------------------------


def check_finishes(case: Case, killer: Killer, work: Path, ended: Ended, moment: str) -> None:
    """Nothing is lost, the same command finishes, and the result is the expected one."""
    contents = case.contents(work)
    assert case.is_known(contents, case.old, case.new), moment
    deadline = time.monotonic() + 5
    while alive(ended.group):
        assert time.monotonic() < deadline, f"{moment}: workers outlive the command"
        time.sleep(0.02)
    if ended.code == -9:
        saved = {path: path.stat().st_mtime_ns for path in work.glob("runs/*/result.json")}
        again = killer.run(case.words(work), work)
        # Killed after its last change: there is nothing left to do, and nothing to undo.
        complete = case.name == "undo" and differences(case.new, contents) == []
        if again.code != 0 and complete:
            assert "the last undo was carried out" in again.printed, moment
        else:
            assert again.code == 0, f"{moment}: {again.printed}"
        assert all(path.stat().st_mtime_ns == written for path, written in saved.items()), moment
    assert differences(case.new, case.contents(work)) == [], moment
    left = [name for name in names(work) if not LITTER.fullmatch(name)]
    if case.exact:
        assert left == [name for name in case.files if not LITTER.fullmatch(name)], moment


def rows_of(model: Path, name: str) -> list[bytes]:
    """The rows that a model keeps of a site, as they lie in its files."""
    inputs = past_rows(load(model))[name][0]
    return [row.numpy().tobytes() for row in inputs]


def rows_found(folder: Path, rows: list[bytes]) -> int:
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return sum(any(row in data for data in files) for row in rows)


EVERY_CHANGE = [
    "learn the first site",
    "learn the second site",
    "forget",
    "undo",
    "calibrate",
    "run",
    "join",
    "learn with a template",
]


@pytest.mark.parametrize("name", EVERY_CHANGE)
def test_killed_before_every_change_on_disk(
    name: str, killer: Killer, cases: dict[str, Case], tmp_path: Path
) -> None:
    case = cases[name]
    assert case.whole is not None
    rows = rows_of(case.before / "model", "site 0") if name == "forget" else []
    assert rows_found(case.before, rows) == len(rows)
    assert case.whole.changes > 5
    for change in range(1, case.whole.changes + 1):
        work = copied(case, tmp_path / "work")
        ended = killer.run(case.words(work), work, change=change)
        assert ended.code == -9, ended.printed
        check_finishes(case, killer, work, ended, f"{name}, before change {change}")
        assert rows_found(work, rows) == 0


def test_killed_at_random_moments(killer: Killer, cases: dict[str, Case], tmp_path: Path) -> None:
    """Each command in turn; every second moment is a time, the others are changes on disk.

    Every third comparison loses one of its workers instead, and finishes by itself.
    """
    chance = random.Random(SEED)
    comparisons = 0
    for number in range(MOMENTS):
        case = list(cases.values())[number % len(cases)]
        assert case.whole is not None
        work = copied(case, tmp_path / "work")
        comparisons += case.name == "compare"
        if case.name == "compare" and comparisons % 3 == 0:
            moment = f"{case.name}: a worker before its change {(change := chance.randint(1, 60))}"
            code = 0
            environment = {
                WORKER_MOMENT: f"{change}|{work}|{tmp_path / f'token{number}'}",
                "PYTHONPATH": os.pathsep.join(
                    [str(HERE.with_name("killed_workers")), os.environ.get("PYTHONPATH", "")]
                ),
            }
            ended = killer.run(case.words(work), work, environment=environment)
            assert (tmp_path / f"token{number}").exists()
        elif number // len(cases) % 2:
            seconds = chance.uniform(0, case.whole.seconds)
            ended = killer.run(case.words(work), work, seconds=seconds)
            while ended.code == 0:  # it was faster than the first time
                seconds, work = 0.6 * seconds, copied(case, work)
                ended = killer.run(case.words(work), work, seconds=seconds)
            moment, code = f"{case.name}: after {seconds:.3f} s", -9
        else:
            change = chance.randint(1, case.whole.changes)
            moment, code = f"{case.name}: before change {change} of {case.whole.changes}", -9
            ended = killer.run(case.words(work), work, change=change)
        print(f"seed {SEED}, {moment}: exit code {ended.code}")
        assert ended.code == code, f"{moment}: {ended.printed}"
        check_finishes(case, killer, work, ended, moment)
