"""Runs that begin alike: their common sources are learned once, and no number changes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch import Tensor

from farshore.learner.learner import Learner
from farshore.observer import Observer
from farshore.runs.beginnings import Beginnings, beginning_keys, family
from farshore.runs.engines import work
from farshore.runs.engines.carry_out import carry_out, in_families, open_runs
from farshore.runs.engines.engine import InlineEngine
from farshore.runs.engines.local import LocalEngine, Worker
from farshore.runs.engines.work import Work
from farshore.runs.plan.plan import Plan, plan_run
from farshore.runs.protocol import execute
from farshore.runs.result import Result
from farshore.runs.run import Run
from farshore.runs.store.store import Store

# What each run learns, with the fourth hospital as the target.
ORDERS = ("chv", "chs", "cvh", "hcv")
NAMES = {name[0]: name for name in ("cleveland", "hungarian", "va", "switzerland")}


def runs_of(method: str, **fields: Any) -> list[Run]:
    runs = []
    for order in ORDERS:
        (target,) = set(NAMES) - set(order)
        named = tuple(NAMES[letter] for letter in order)
        runs.append(
            Run.build(
                **{
                    "benchmark": "heart-hospitals",
                    "method": method,
                    "steps": 2,
                    "order": named,
                    "target": NAMES[target],
                    **fields,
                }
            )
        )
    return runs


def carried_out(runs: list[Run], folder: Path, engine: Any = None) -> list[Result]:
    plan = Plan(None, [plan_run(run).runs[0] for run in runs])
    store = Store(folder)
    with engine or InlineEngine() as chosen:
        progress = carry_out(plan, store, chosen, todo=open_runs(plan, store)[0])
    assert progress.failures == []
    return [store.read(planned.name) for planned in plan.runs]


def numbers(result: Result) -> dict[str, Any]:
    """All that is measured but times and the moment of opening, with a checksum of the weights."""
    plain: dict[str, Any] = json.loads(result.text())
    plain["target"].pop("opened_at")
    times = ("run", "seconds", "step_milliseconds", "hardware")
    return {name: value for name, value in plain.items() if name not in times}


@pytest.mark.parametrize("method", ["er", "cl-fishr", "ewc", "trees", "best"])
def test_shared_sources_are_learned_once_and_no_number_changes(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [execute(run) for run in runs_of(method)]
    learned: list[str] = []
    learn = Learner.learn_domain

    def counted(self: Learner, domain: Any, **options: Any) -> None:
        learned.append(domain.name)
        learn(self, domain, **options)

    monkeypatch.setattr(Learner, "learn_domain", counted)
    together = carried_out(runs_of(method), tmp_path)
    # cleveland, hungarian, va | switzerland | va, hungarian; the last run shares nothing.
    assert [name[0] for name in learned] == list("chvsvhhcv")
    for one, other in zip(alone, together, strict=True):
        assert numbers(one) == numbers(other)
    shared = [result.seconds.get("shared", 0.0) for result in together]
    assert shared[0] == shared[3] == 0.0
    spent = [result.step_milliseconds[0] for result in together]
    assert spent[0] == spent[1] == spent[2] != spent[3]
    assert all(each.seconds["total"] >= each.seconds["training"] for each in together)
    assert shared[1] > shared[2] > 0.0


def test_workers_share_too(tmp_path: Path) -> None:
    runs = runs_of("er")[:3]
    together = carried_out(runs, tmp_path, LocalEngine(1))
    assert [numbers(each) for each in together] == [numbers(execute(run)) for run in runs]
    assert ["shared" in each.seconds for each in together] == [False, True, True]


class Stops(Observer):
    """Raises Ctrl-C in the third source of the run whose second source was shared."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        self.heard.append(domain[0])
        if self.heard.count("s"):
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_after_a_shared_source_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "LEAST_SECONDS", 0.0)
    runs = runs_of("cl-fishr")[:2]
    with pytest.raises(KeyboardInterrupt):
        carried_out(runs, tmp_path, InlineEngine(Stops()))
    assert [path.parts[-2] for path in tmp_path.glob("*/stages/2")]
    resumed = carried_out(runs, tmp_path)
    assert [numbers(each) for each in resumed] == [numbers(execute(run)) for run in runs]
    assert resumed[1].seconds["shared"] > 0.0  # the record has kept it
    assert not list(tmp_path.glob("*/stages"))


def test_weights_of_rows_count_after_a_shared_source(tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    table = pd.DataFrame({"x": draws.normal(size=160), "w": draws.uniform(1, 9, size=160)})
    table["site"] = np.repeat(list("abcd"), 40)
    table["y"] = np.where(table["x"] + draws.normal(size=160) > 0, "yes", "no")
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    fields: dict[str, Any] = {"benchmark": "table", "method": "er", "steps": 2}
    fields["options"] = {"path": str(path), "domain": "site", "label": "y", "weight": "w"}
    runs = [Run.build(target="d", **fields), Run.build(target="c", **fields)]
    together = carried_out(runs, tmp_path / "runs")
    assert [numbers(each) for each in together] == [numbers(execute(run)) for run in runs]
    assert "shared" in together[1].seconds


def test_a_key_follows_from_settings_and_rows_alone() -> None:
    from farshore.benchmarks import make_benchmark

    def keys(change: Any = None, **options: Any) -> list[bytes]:
        scenario = make_benchmark("heart-hospitals").scenario(target="va")
        sources = list(scenario.sources)
        if change is not None:
            sources[1] = change(sources[1])
        learner = Learner("mlp", "er", classes=scenario.classes, **options)
        return list(beginning_keys(learner, sources, 5))

    assert keys() == keys()
    assert len({*keys(), *keys(seed=1), *keys(settings={"batch_size": 8})}) == 9
    cut = keys(lambda source: replace(source, train=source.train[:-1]))
    assert [one == other for one, other in zip(keys(), cut, strict=True)] == [True, False, False]
    moved = keys(lambda source: replace(source, inputs=source.inputs + 1e-3))
    assert [one == other for one, other in zip(keys(), moved, strict=True)] == [True, False, False]


def test_memory_is_bounded() -> None:
    def filled(most_bytes: int) -> Beginnings:
        beginnings = Beginnings(most_bytes)
        for run in runs_of("er")[:3]:
            execute(run, beginnings=beginnings)
        return beginnings

    everything = filled(1 << 27)
    assert len(everything) == 6
    less = filled(everything.bytes // 2)
    assert 2 <= len(less) <= 4
    assert less.bytes <= everything.bytes // 2
    assert len(filled(0)) == 0


def test_what_does_not_begin_alike_has_no_family() -> None:
    runs = runs_of("er")
    assert len({family(run) for run in runs}) == 2
    assert family(runs[0]) != family(runs_of("er", seed=1)[0])
    assert family(runs[0]) != family(runs_of("er", steps=3)[0])
    assert family(runs_of("joint")[0]) == ""
    assert family(runs[0].model_copy(update={"device": "cuda"})) == ""
    listed = Run.build(benchmark="heart-hospitals", method="er", steps=2, target="va")
    assert family(listed) == family(runs[0])


def test_runs_of_a_family_come_one_after_another() -> None:
    runs = [*runs_of("er"), *runs_of("cl-fishr")]
    planned = [plan_run(run).runs[0] for run in runs]
    ordered = in_families([planned[number] for number in (0, 4, 3, 1, 5)])
    names = [planned[number].name for number in (0, 1, 4, 5, 3)]
    assert [each.name for each, _ in ordered] == names
    assert [bool(name) for _, name in ordered] == [True, True, True, True, False]


def test_a_worker_gets_its_family_and_no_other_worker_does_before_the_end() -> None:
    planned = plan_run(runs_of("er")[0]).runs[0]

    def task(name: str) -> Work:
        return Work(planned, "runs", family=name)

    engine = LocalEngine(2)
    busy: Any = Worker(None, None, None, task=task("a"), family="a")  # type: ignore[arg-type]
    idle: Any = Worker(None, None, None, family="b")  # type: ignore[arg-type]
    engine.workers = [busy, idle]
    waiting = deque([task("a"), task("c"), task("b"), task("a")])
    chosen = [engine.choose(waiting).family for _ in range(4)]
    assert chosen == ["b", "c", "a", "a"]
