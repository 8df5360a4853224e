"""Run folders: named by what determines the numbers, claimed once, resumed, repeated if damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sweeping import Here, experiment, planned, swept, table
from typer.testing import CliRunner

from farshore.cli.app import app
from farshore.errors import FarshoreError
from farshore.learner.loading import load
from farshore.observer import Observer
from farshore.runs.engines.carry_out import open_runs
from farshore.runs.engines.work import Keep, Work, carry_out_work
from farshore.runs.plan.plan import plan_run
from farshore.runs.protocol import execute
from farshore.runs.resume import Resume
from farshore.runs.run import Run
from farshore.runs.store import claim as claims
from farshore.runs.store.claim import Claim, is_stale, newest, release, take
from farshore.runs.store.identity import NamedRun, name_run, run_name
from farshore.runs.store.store import RunFolder, Store

RUN = Run.build(benchmark="heart-hospitals", method="cl-fishr", steps=3, settings={"batch_size": 8})
PLANNED = plan_run(RUN).runs[0]


class Killed(BaseException):
    """Like a kill: nothing catches it."""


class KillAt(Observer):
    def __init__(self, domain: str, step: int) -> None:
        self.at = (domain, step)
        self.begun: list[str] = []

    def start(self, domain: str, steps: int) -> None:
        self.begun.append(domain)

    def step(self, domain: str, step: int, terms: object) -> None:
        if (domain, step) == self.at:
            raise Killed


def same(first, second) -> bool:
    drop = {"seconds", "step_milliseconds", "target"}
    return (
        first.model_dump(exclude=drop) == second.model_dump(exclude=drop)
        and first.target.weights == second.target.weights
    )


@pytest.mark.parametrize("method", ["finetune", "cl-fishr", "der++", "ewc", "tent"])
def test_a_killed_run_repeats_only_the_domain_in_flight(method: str, tmp_path: Path) -> None:
    run = RUN.model_copy(update={"method": method})
    whole = execute(run)
    with pytest.raises(Killed):
        execute(run, observer=KillAt("switzerland", 1), resume=Resume(tmp_path / "s"))
    assert [path.name for path in sorted((tmp_path / "s").iterdir())] == ["2", "record.json"]
    watch = KillAt("nowhere", 0)
    again = execute(run, observer=watch, resume=Resume(tmp_path / "s"))
    assert watch.begun == ["switzerland"]
    assert same(whole, again)
    assert len(again.step_milliseconds) == 3


def test_damaged_stages_start_over(tmp_path: Path) -> None:
    whole = execute(RUN)
    with pytest.raises(Killed):
        execute(RUN, observer=KillAt("hungarian", 1), resume=Resume(tmp_path))
    (tmp_path / "1" / "manifest.json").write_text("{")
    watch = KillAt("nowhere", 0)
    assert same(whole, execute(RUN, observer=watch, resume=Resume(tmp_path)))
    assert watch.begun[0] == "cleveland"


def test_kept_states_are_learners(tmp_path: Path) -> None:
    name = run_name(RUN)
    assert carry_out_work(Work(PLANNED, str(tmp_path), Keep(states=True))).status == "done"
    learner = load(tmp_path / name / "stages" / "2")
    assert [domain["name"] for domain in learner.domains] == ["cleveland", "hungarian"]


def test_a_name_is_what_decides_the_numbers() -> None:
    name = run_name(RUN)
    assert name == run_name(RUN.model_copy(update={"device": "cuda"}))
    others = [
        {"seed": 1},
        {"scenario_seed": 1},
        {"target": "cleveland"},
        {"order": ("hungarian", "cleveland", "switzerland")},
        {"steps": 4},
        {"memory": 50},
        {"settings": {"batch_size": 9}},
        {"method": "er"},
        {"options": {"domain_by": "blocks"}},
        {"network": "cnn"},
        {"network_settings": {"width": 8}},
        {"left_out": ("va",), "target": "cleveland"},
        {"left_out": ("va",), "target": "cleveland", "held_out": True},
    ]
    assert (
        len({name, *(run_name(RUN.model_copy(update=other)) for other in others)})
        == len(others) + 1
    )


def test_two_ways_of_writing_a_run_are_one_run() -> None:
    """A text of the command line and a number of a file; an option at its default, and none."""
    pairs = [
        ({"settings": {"learning_rate": "0.01"}}, {"settings": {"learning_rate": 0.01}}),
        ({"settings": {"execution": "eager"}}, {"settings": {"execution": "eager"}}),
        (
            {"benchmark": "cifar10-c", "options": {"severity": "3", "weights": "imagenet"}},
            {"benchmark": "cifar10-c", "options": {"severity": 3}},
        ),
        ({"options": {"domain": "auto"}}, {"options": {"domain_by": "drift"}}),
        (
            {"network": "mlp", "network_settings": {"width": "32"}},
            {"network": "mlp", "network_settings": {"width": 32}},
        ),
    ]
    usual = {"benchmark": "rotated-digits", "method": "er"}
    for text, plain in pairs:
        assert Run.build(**{**usual, **text}) == Run.build(**{**usual, **plain})
        assert run_name(Run(**{**usual, **text})) == run_name(Run(**{**usual, **plain}))
    given = Run.build(**usual, settings={"batch_size": "64"})
    assert given.settings == {"batch_size": 64}  # at its default, but given


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"options": {"severity": 3}}, "unknown option of rotated-digits 'severity'"),
        ({"settings": {"learning_rat": 1}}, "did you mean 'learning_rate'"),
        ({"settings": {"learning_rate": "fast"}}, "learning_rate = 'fast' is not allowed"),
        ({"network": "cn"}, "unknown network 'cn': did you mean 'cnn'"),
        ({"network_settings": {"depth": 2}}, "unknown setting of network 'cnn' 'depth'"),
        ({"severity": 3}, "unknown name 'severity'"),
    ],
)
def test_a_bad_run_is_refused_before_anything_runs(values: dict[str, object], message: str) -> None:
    with pytest.raises(FarshoreError, match=message):
        Run.build(benchmark="rotated-digits", method="er", **values)


def test_a_run_on_own_data_is_named_by_what_the_file_holds(tmp_path: Path) -> None:
    def name(path: Path, **options: object) -> str:
        given = {"path": str(path), "label": "y", "domain": "d", **options}
        return run_name(Run.build(benchmark="table", options=given, method="er", target="a"))

    here, there, other = (tmp_path / each for each in ("here.csv", "there.csv", "other.csv"))
    here.write_text("d,x,y\na,1,2\n")
    there.write_text("d,x,y\na,1,2\n")
    other.write_text("d,x,y\na,1,3\n")
    assert name(here) == name(there)
    assert len({name(here), name(other), name(here, drop="x")}) == 3
    assert name(here, drop="x") == name(here, drop=["x"])
    with pytest.raises(FarshoreError, match="cannot be read"):
        name(tmp_path / "nowhere.csv")


def test_a_run_on_a_folder_is_named_by_names_and_bytes(tmp_path: Path) -> None:
    def name(path: Path) -> str:
        return run_name(
            Run.build(
                benchmark="image-folder", options={"path": str(path)}, method="er", target="a"
            )
        )

    def folder(title: str, **files: bytes) -> Path:
        for file, data in files.items():
            path = tmp_path / title / "a" / "c" / f"{file}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return tmp_path / title

    first = name(folder("one", x=b"1", y=b"2"))
    assert name(folder("two", x=b"1", y=b"2")) == first
    assert name(folder("three", x=b"1", z=b"2")) != first
    assert name(folder("four", x=b"1", y=b"3")) != first


def test_a_name_is_not_how_the_run_was_spelled() -> None:
    def canonical(run: Run) -> Run:
        return name_run(run.normal()).run

    spelled = {
        "order": ("cleveland", "hungarian", "switzerland"),
        "target": "va",
        "settings": {"batch_size": "8"},
    }
    assert run_name(RUN.model_copy(update=spelled)) == run_name(RUN)
    assert canonical(RUN.model_copy(update=spelled)) == canonical(RUN) == RUN
    other = RUN.model_copy(update={"target": "cleveland"})
    listed = other.model_copy(update={"order": ("hungarian", "switzerland", "va")})
    assert canonical(listed) == other
    for wrong in ({"order": ("va", "cleveland")}, {"target": "nowhere"}):
        with pytest.raises(FarshoreError):
            canonical(RUN.model_copy(update=wrong))


def test_a_raised_results_version_renames_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from farshore.benchmarks.heart_hospitals import HeartHospitals
    from farshore.methods.fishr import CLFishr

    names = {run_name(RUN)}
    monkeypatch.setattr(CLFishr, "results_version", CLFishr.results_version + 1)
    names.add(run_name(RUN))
    monkeypatch.setattr(HeartHospitals, "results_version", HeartHospitals.results_version + 1)
    names.add(run_name(RUN))
    assert len(names) == 3


def test_files_of_a_run_folder(tmp_path: Path) -> None:
    name = run_name(RUN)
    outcome = carry_out_work(Work(PLANNED, str(tmp_path), config={"commit": "abc"}))
    assert (outcome.status, outcome.name) == ("done", name)
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
        "config.json",
        "progress.jsonl",
        "result.json",
        "result.sha256",
    ]
    config = json.loads((tmp_path / name / "config.json").read_text())
    assert config["commit"] == "abc"
    assert config["named_by"]["results_versions"] == {"method": 2, "benchmark": 1}
    lines = [
        json.loads(line) for line in (tmp_path / name / "progress.jsonl").read_text().splitlines()
    ]
    assert [line["learned"] for line in lines if "learned" in line] == [
        "cleveland",
        "hungarian",
        "switzerland",
    ]


def test_diverged_trials_are_results(tmp_path: Path) -> None:
    plan, progress = swept(
        experiment(
            part={"methods": ["er"], "settings": {"learning_rate": 1e30}, "steps": 20},
            search={"trials": 1, "seeds": 4},
        ),
        tmp_path,
    )
    assert (progress.done, progress.diverged, progress.failures) == (4, 4, [])
    assert set(table(tmp_path)["status"]) == {"diverged"}
    assert not open_runs(plan, Store(tmp_path))[0]


def test_nothing_is_repeated_and_a_damaged_result_alone_is(tmp_path: Path) -> None:
    swept(experiment(), tmp_path)
    before = table(tmp_path)
    engine = Here()
    plan, progress = swept(experiment(), tmp_path, engine)
    assert (engine.carried, progress.done) == ([], 8)
    victim = sorted(plan.unique())[3]
    path = tmp_path / victim / "result.json"
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    todo, damaged = open_runs(planned(experiment(), tmp_path), Store(tmp_path), discard=False)
    assert list(todo) == [victim]
    assert damaged == [f"{path} is damaged: its checksum is not the one in result.sha256"]
    swept(experiment(), tmp_path, engine)
    assert engine.carried == [victim]
    assert table(tmp_path).equals(before)


def test_a_bad_run_is_named_and_ends_no_other(tmp_path: Path) -> None:
    found = experiment(part={"methods": ["er"], "memory": 1})
    both = found.model_copy(update={"parts": [*found.parts, *experiment().parts]})
    _, progress = swept(both, tmp_path)
    assert (progress.done, len(progress.failures)) == (8, 4)
    assert (
        "er on heart-hospitals): memory = 1 is smaller than the number of domains"
        in progress.failures[0]
    )


# ---- claims --------------------------------------------------------------------------------------


def test_only_one_gets_a_claim(tmp_path: Path) -> None:
    got: list[Claim | None] = []
    threads = [
        threading.Thread(target=lambda: got.append(take(tmp_path / "run"))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([claim for claim in got if claim is not None]) == 1
    assert not is_stale(tmp_path / "run")
    release(tmp_path / "run")
    assert newest(tmp_path / "run") is None


def test_the_claim_of_a_dead_process_is_taken_over_by_one(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from farshore.runs.store.claim import take; "
        "take(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)
    assert is_stale(tmp_path / "run")
    assert take(tmp_path / "run").number == 1
    assert take(tmp_path / "run") is None


def test_a_claim_of_another_machine_is_valid_while_it_has_a_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = take(tmp_path / "run")
    owner = json.loads(claim.path.read_text())
    claim.path.write_text(json.dumps({**owner, "host": "elsewhere", "pid": 1}))
    assert take(tmp_path / "run") is None
    old = time.time() - claims.STALE_SECONDS - 5
    os.utime(claim.path, (old, old))
    assert take(tmp_path / "run").number == 1


def test_a_heartbeat_in_the_future_counts_while_it_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that was set back is no reason to wait until the date that it showed before."""
    claim = take(tmp_path / "run")
    owner = json.loads(claim.path.read_text())
    claim.path.write_text(json.dumps({**owner, "host": "elsewhere", "pid": 1}))
    seconds = 0.0
    monkeypatch.setattr(claims.time, "monotonic", lambda: seconds)
    later = time.time() + 10**8
    for beat in range(3):
        os.utime(claim.path, (later + beat, later + beat))
        for _ in range(2):
            assert take(tmp_path / "run") is None
            seconds += claims.STALE_SECONDS / 2
    assert take(tmp_path / "run") is None
    seconds += 1
    assert take(tmp_path / "run").number == 1


def test_an_owner_that_slept_finds_out_that_it_lost_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.01)
    with take(tmp_path / "run") as claim:
        beat = claim.path.stat().st_mtime_ns
        while claim.path.stat().st_mtime_ns == beat:
            time.sleep(0.01)
        (tmp_path / "run" / "claim-1").write_text("{}")
        assert claim.lost.wait(5)
        with pytest.raises(FarshoreError, match="taken over"):
            claim.check()
    assert newest(tmp_path / "run") == 1  # the old owner does not release the new one's claim


def test_a_run_of_another_sweep_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farshore.runs.engines.carry_out.POLL_SECONDS", 0.05)
    found = experiment(search={"trials": 1, "seeds": 1})
    first = next(iter(planned(found, tmp_path).unique()))
    other = take(tmp_path / first)
    assert (
        carry_out_work(Work(replace(PLANNED, named=NamedRun(RUN, first, {})), str(tmp_path))).status
        == "claimed"
    )
    timer = threading.Timer(0.5, lambda: release(other.folder))
    timer.start()
    engine = Here()
    _, progress = swept(found, tmp_path, engine)
    timer.join()
    assert progress.done == 2
    assert engine.carried.count(first) >= 2
    assert RunFolder(tmp_path / first).finished()


def test_weights_count_by_their_contents(tmp_path: Path) -> None:
    files = {}
    for place, text in (("a", "def f():\n    pass\n"), ("b", "def f():\n    pass\n"), ("c", "")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "own.py").write_text(text + "raise SystemExit('never imported')\n")
        files[place] = f"{tmp_path / place / 'own.py'}:f"
    names = {
        place: run_name(Run.build(benchmark="rotated-digits", method="er", network=file))
        for place, file in files.items()
    }
    assert names["a"] == names["b"] != names["c"]


def test_names_stay_what_they_were() -> None:
    """Stores of results are found by these names."""
    fields = {"benchmark": "heart-hospitals", "method": "er", "steps": 20}
    assert run_name(Run(**fields)) == "e6db3186f5ff4398"
    other = {
        "target": "cleveland",
        "order": ("va", "hungarian", "switzerland"),
        "settings": {"batch_size": "16"},
    }
    assert run_name(Run(**fields, **other)) == "1b2046b460a9fd22"


def test_a_run_is_normalised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line to its result: the plan and the worker take it as it is."""
    normalised: list[Run] = []
    normal = Run.normal

    def counted(run: Run) -> Run:
        normalised.append(run)
        return normal(run)

    monkeypatch.setattr(Run, "normal", counted)
    words = ["run", "heart-hospitals", "er", "--steps", "20", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert len(normalised) == 1
    assert RunFolder(tmp_path / "e6db3186f5ff4398").finished()
