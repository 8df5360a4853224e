"""The inline engine: live progress, Ctrl-C, and the same numbers as from workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from torch import Tensor

from farshore.learner.loading import load
from farshore.observer import Observer
from farshore.runs.engines import work
from farshore.runs.engines.carry_out import RESULT_ONLY, Keep, carry_out, open_runs
from farshore.runs.engines.engine import InlineEngine
from farshore.runs.engines.local import LocalEngine
from farshore.runs.plan.plan import Plan, plan_run
from farshore.runs.result import Result
from farshore.runs.run import Run
from farshore.runs.store.store import Store

RUN = Run.build(benchmark="heart-hospitals", method="cl-coral", steps=3, settings={"batch_size": 8})


class Watch(Observer):
    """Records all events and raises Ctrl-C at this domain and step."""

    def __init__(self, stop: tuple[str, int] | None = None) -> None:
        self.stop = stop
        self.heard: list[str] = []

    def start(self, domain: str, steps: int) -> None:
        self.heard.append(f"start {domain}")

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        if (domain, step) == self.stop:
            raise KeyboardInterrupt

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        self.heard.append(f"learned {domain}")


def carried_out(runs: Path, observer: Observer | None = None, keep: Keep = RESULT_ONLY) -> Result:
    plan, store = plan_run(RUN), Store(runs)
    with InlineEngine(observer) as engine:
        progress = carry_out(plan, store, engine, todo=open_runs(plan, store)[0], keep=keep)
    assert (progress.done, progress.failures) == (1, [])
    return store.read(plan.runs[0].name)


def test_an_observer_sees_the_run_and_its_folder_has_the_lines(tmp_path: Path) -> None:
    watch = Watch()
    carried_out(tmp_path, watch)
    domains = ("cleveland", "hungarian", "switzerland")
    assert watch.heard == [f"{word} {name}" for name in domains for word in ("start", "learned")]
    (lines,) = tmp_path.glob("*/progress.jsonl")
    assert lines.read_text().count('"learned"') == 3


def test_ctrl_c_passes_through_and_the_run_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "LEAST_SECONDS", 0.0)
    whole = carried_out(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        carried_out(tmp_path / "stopped", Watch(("switzerland", 1)))
    assert not list((tmp_path / "stopped").glob("*/claim-*"))
    watch = Watch()
    again = carried_out(tmp_path / "stopped", watch)
    assert watch.heard == ["start switzerland", "learned switzerland"]
    assert again.target.weights == whole.target.weights


def test_what_is_kept_beside_the_result(tmp_path: Path) -> None:
    name = plan_run(RUN).runs[0].name
    carried_out(tmp_path / "model", keep=Keep(model=True))
    learner = load(tmp_path / "model" / name / "model")
    assert [domain["name"] for domain in learner.domains] == [
        "cleveland",
        "hungarian",
        "switzerland",
    ]
    carried_out(tmp_path / "result")
    assert not (tmp_path / "result" / name / "model").exists()


@pytest.mark.soak
def test_workers_give_the_numbers_of_this_process(tmp_path: Path) -> None:
    runs = [
        RUN.model_copy(update={"method": name, "seed": seed})
        for name in ("er", "cl-coral")
        for seed in (0, 1)
    ]
    plan = Plan(None, [plan_run(run).runs[0] for run in runs])
    weights = []
    for folder, engine in (("here", InlineEngine()), ("there", LocalEngine(2))):
        store = Store(tmp_path / folder)
        with engine:
            carry_out(plan, store, engine, todo=open_runs(plan, store)[0])
        weights.append([store.read(each.name).target.weights for each in plan.runs])
    assert weights[0] == weights[1]
