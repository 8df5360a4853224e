"""Studies: trials guided and stopped by the sources only, the same however often one is killed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from sweeping import EXPERIMENTS, Here, experiment, planned, summary, swept, table

from farshore.cli.app import main
from farshore.data.seal import SealedTarget
from farshore.errors import FarshoreError
from farshore.runs.engines import work
from farshore.runs.engines.engine import Engine
from farshore.runs.engines.local import LocalEngine
from farshore.runs.engines.work import WorkOutcome
from farshore.runs.plan.experiment import Experiment, read_experiment, search_by
from farshore.runs.plan.plan import selected
from farshore.runs.search.space import trial_settings
from farshore.runs.store.store import Store

TRIALS = 12


def study(**values: object) -> Experiment:
    return experiment(search={"trials": TRIALS, "seeds": 1, "by": "optuna"}, **values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("whole")
    _, progress = swept(study(), runs)
    assert (progress.total, progress.done, progress.already_done, progress.failures) == (
        2 * TRIALS,
        2 * TRIALS,
        0,
        [],
    )
    assert 4 <= progress.pruned <= 2 * TRIALS - 4
    return runs


def test_the_defaults_then_the_papers_draws_then_steered_ones(whole: Path) -> None:
    from farshore.benchmarks import make_benchmark

    found = [each for each in planned(study(), whole).runs if each.condition.method == "cl-coral"]
    assert [each.trial for each in found] == list(range(TRIALS))
    for each in found:
        drawn = trial_settings(
            "cl-coral", make_benchmark("heart-hospitals"), search_seed=0, number=0, trial=each.trial
        )
        rate = each.run.settings.get("learning_rate")
        assert (rate == drawn.get("learning_rate")) == (each.trial < 10)
        assert each.run.settings.get("batch_size", 0) <= 16
    # Only the defaults are shared with the paper's search: a run that may be stopped has a name of
    # its own.
    random = experiment(search={"trials": TRIALS, "seeds": 1}, part={"methods": ["cl-coral"]})
    assert set(planned(random, whole).unique()) & {each.name for each in found} == {found[0].name}


def test_pruned_trials_do_less_never_open_the_target_and_never_win(whole: Path) -> None:
    store = Store(whole)
    plan = planned(study(), whole)
    for each in plan.runs:
        result = store.read(each.name)
        lines = [
            json.loads(line)
            for line in (whole / each.name / "progress.jsonl").read_text().splitlines()
        ]
        learned = [line["learned"] for line in lines if "learned" in line]
        if result.status == "done":
            assert len(learned) == 3
            continue
        assert result.status == "pruned"
        assert each.trial > 0
        assert len(learned) == len(result.matrices["validation"]) == len(result.stages) < 3
        assert learned[-1] in result.message
        assert result.target is None
        assert sum(result.rows_per_step) > 0
    frame = table(whole)
    pruned = frame[frame["status"] == "pruned"]
    assert pruned["target_score_unseen"].isna().all()
    assert pruned["source_validation_score"].isna().all()
    chosen = selected(plan, store)
    assert len(chosen) == 2
    assert all(
        trial.result.status == "done" for cell in chosen.values() for trial in cell.trials.values()
    )


def test_a_scrambled_target_changes_no_trial(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_open = SealedTarget.open

    def scrambled(self: SealedTarget, frozen: object) -> object:
        found = true_open(self, frozen)
        return replace(found, inputs=torch.randn_like(found.inputs), labels=found.labels.flip(0))

    monkeypatch.setattr(SealedTarget, "open", scrambled)
    swept(study(), tmp_path)
    before, after = table(whole), table(tmp_path)
    assert not before["target_score_unseen"].equals(after["target_score_unseen"])
    same = [name for name in before.columns if not name.startswith("target_")]
    pd.testing.assert_frame_equal(before[same], after[same])
    picked = [
        summary(planned(study(), runs), Store(runs))["trials_selected"].tolist()
        for runs in (whole, tmp_path)
    ]
    assert picked[0] == picked[1]


class Killed(BaseException):
    """Like a kill: nothing catches it."""


class KillAfter(Here):
    def __init__(self, runs: int) -> None:
        super().__init__()
        self.left = runs

    def next(self, seconds: float) -> WorkOutcome | None:
        if self.left == 0:
            raise Killed
        self.left -= 1
        return super().next(seconds)


def test_a_killed_sweep_resumes_and_repeats_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried: list[str] = []
    for runs in (0, 1, 6, 7):
        engine = KillAfter(runs)
        with pytest.raises(Killed):
            swept(study(), tmp_path, engine)
        carried += engine.carried
    assert table(tmp_path).shape[0] == 14
    choices = list(selected(planned(study(), tmp_path), Store(tmp_path)).values())
    assert sum(each.runs for each in choices) == 2 * TRIALS - 14
    assert {each.planned for each in choices} == {TRIALS}

    # Now inside runs: a domain's state is written, but whether the run continues is not decided.
    monkeypatch.setattr(work, "LEAST_SECONDS", 0.0)

    def die(*_: object) -> bool:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(work, "promising", die)
        with pytest.raises(Killed):
            swept(study(), tmp_path)
    (half,) = tmp_path.glob("*/stages/record.json")
    assert json.loads(half.read_text())["done"] == 1
    engine = Here()
    _, progress = swept(study(), tmp_path, engine)
    carried += engine.carried
    assert (progress.done, progress.failures) == (2 * TRIALS, [])
    assert len(carried) == len(set(carried)) == 2 * TRIALS
    pd.testing.assert_frame_equal(table(tmp_path), table(whole))
    _, progress = swept(study(), tmp_path, KillAfter(0))  # nothing is left to do
    assert progress.already_done == 2 * TRIALS


@pytest.mark.soak
def test_two_processes_give_the_same_trials(whole: Path, tmp_path: Path) -> None:
    _, progress = swept(study(), tmp_path, LocalEngine(2))
    assert progress.done == 2 * TRIALS
    pd.testing.assert_frame_equal(table(tmp_path), table(whole))


@pytest.mark.soak
def test_ray_gives_the_same_trials(whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from farshore.runs.engines.ray_engine import RayEngine

    swept(study(), tmp_path, RayEngine(slots=2))
    pd.testing.assert_frame_equal(table(tmp_path), table(whole))


def test_a_damaged_trial_is_repeated_alone(whole: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(whole, tmp_path / "runs")
    victim = planned(study(), whole).runs[4].name
    (tmp_path / "runs" / victim / "result.json").write_text("{")
    engine = Here()
    _, progress = swept(study(), tmp_path / "runs", engine)
    assert engine.carried == [victim]
    assert (progress.total, progress.done) == (2 * TRIALS, 2 * TRIALS)
    pd.testing.assert_frame_equal(table(tmp_path / "runs"), table(whole))


def test_a_failed_trial_stops_its_study_alone(tmp_path: Path) -> None:
    class FailEr(Here):
        def next(self, seconds: float) -> WorkOutcome | None:
            task = self.tasks[0]
            if task.planned.run.method == "er" and task.planned.run.halving:
                self.tasks.clear()
                return WorkOutcome(task.name, "failed", "no luck")
            return super().next(seconds)

    plan, progress = swept(study(), tmp_path, FailEr())
    (failure,) = progress.failures
    assert failure.endswith("(er on heart-hospitals): no luck")
    assert progress.done == TRIALS + 1
    notes = summary(plan, Store(tmp_path))["note"]
    assert notes.dropna().tolist() == [f"{TRIALS - 1} of {TRIALS} runs are missing"]


def test_settings_that_are_all_held_are_one_run(tmp_path: Path) -> None:
    held = {"learning_rate": 0.01, "batch_size": 8}
    _, progress = swept(study(part={"methods": ["er"], "settings": held}), tmp_path)
    assert progress.done == progress.total <= 2


GOOD = {
    "name": "x",
    "about": "y",
    "search": {"by": "optuna"},
    "parts": [{"benchmarks": ["rotated-digits"], "methods": ["er"]}],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"search": {"by": "grid"}},
            r"search.by = 'grid' is not allowed: it should be 'random' or 'optuna'",
        ),
        ({"search": {"sampler": "optuna"}}, r"search.sampler: unknown key 'sampler'"),
        (
            {"selection": "leave-one-source-out"},
            r"selection = 'leave-one-source-out' is not allowed with search by optuna",
        ),
        ({"selection": "oracle"}, r"selection = 'oracle' is not allowed with search by optuna"),
        (
            {"parts": [{**GOOD["parts"][0], "features": True}]},
            r"parts.0.features: search by optuna stops trials",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_key(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **change}))
    with pytest.raises(FarshoreError, match=rf"mine.yaml: {message}"):
        read_experiment(path)


def test_the_option_changes_every_search_of_an_experiment() -> None:
    own = experiment(part={"search": {"trials": 3}})
    assert [own.search.by, own.parts[0].search.by] == ["random", "random"]
    other = search_by(own, "optuna")
    assert [other.search.by, other.parts[0].search.by, other.parts[0].search.trials] == [
        "optuna",
        "optuna",
        3,
    ]
    with pytest.raises(FarshoreError, match="is not allowed with search by optuna"):
        search_by(experiment(selection="oracle"), "optuna")


def typed(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["farshore", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, runs = str(EXPERIMENTS / "no_alignment.yaml"), str(tmp_path / "runs")
    tiny = (
        "sweep",
        file,
        "--runs",
        runs,
        "--search",
        "optuna",
        "--scale",
        "tiny",
        "--workers",
        "1",
    )
    few = (*tiny, "--methods", "cl-coral,cl-vrex")
    assert typed(*few, "--dry-run", monkeypatch=monkeypatch) == 0
    assert "no_alignment: at most 8 runs, 0 done, 8 to do here" in capsys.readouterr().out
    monkeypatch.setattr("farshore.runs.engines.local.LocalEngine", lambda *_, **__: Here())
    assert typed(*few, monkeypatch=monkeypatch) == 0
    assert "[8/8] " in (printed := capsys.readouterr().out)
    assert "missing" not in printed
    assert typed(*few, "--dry-run", monkeypatch=monkeypatch) == 0
    assert "at most 8 runs, 8 done, 0 to do here" in capsys.readouterr().out
    assert typed("sweep", file, "--search", "grid", monkeypatch=monkeypatch) == 2
    assert "--search grid is not allowed: use random or optuna" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert typed(*few, "--dry-run", monkeypatch=monkeypatch) == 2
    assert "pip install '.[search]'" in capsys.readouterr().err


def test_engines_are_asked_for_one_trial_of_a_study_at_a_time(tmp_path: Path) -> None:
    class Wide(Here):
        """Accepts up to eight tasks and carries out the newest first."""

        slots = 8
        most = 0

        @property
        def free(self) -> int:
            return 8 - len(self.tasks)

        def next(self, seconds: float) -> WorkOutcome | None:
            places = [(task.planned.run.method, task.planned.run.seed) for task in self.tasks]
            assert len(set(places)) == len(places)
            self.most = max(self.most, len(places))
            self.tasks.rotate(1)
            return super().next(seconds)

    engine: Engine = Wide()
    swept(study(), tmp_path, engine)
    assert engine.most == 2
