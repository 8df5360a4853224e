"""Folders of runs for tests of the report, with made-up results: nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sweeping import EXPERIMENTS

from farshore.benchmarks import make_benchmark
from farshore.report.build import Report
from farshore.results.tables import Row, Table
from farshore.runs import catalog
from farshore.runs.plan.experiment import Experiment, make_book
from farshore.runs.plan.plan import Plan, Planned, make_plan
from farshore.runs.result import Result, TargetScores
from farshore.runs.run import Run
from farshore.runs.store.identity import name_run
from farshore.runs.store.store import RunFolder, Store, record_experiment

VERSIONS = {
    "farshore": "0.1.0",
    "python": "3.11",
    "torch": "2.7",
    "machine": "x86_64",
    "threads": "1",
}
Score = Callable[[Planned], float | None]
# A part of an experiment with every kind of method, and the score that each gets.
BOTH = {
    "benchmarks": ["heart-hospitals", "rotated-digits"],
    "methods": ["finetune", "er", "cl-coral", "urm", "tent"],
}
NUMBERS = {"finetune": 0.5, "er": 0.6, "cl-coral": 0.7, "urm": 0.8, "tent": 0.55}


def result(
    run: Run,
    score: float | None,
    *,
    notes: tuple[str, ...] = (),
    validation: float = 0.5,
    **values: Any,
) -> Result:
    """A result of this run with this target score; None is a diverged run."""
    benchmark = make_benchmark(run.benchmark, run.options)
    unseen = benchmark.choose_target(run.target)
    sources = list(run.order or benchmark.listed(unseen))
    done = score is not None
    target = TargetScores(
        name=unseen,
        rows=10,
        scores={"accuracy": score, "macro_f1": score},
        confusion=[[1]],
        opened_at="2026-01-01T00:00:00+00:00",
        weights="ab",
    )
    rows = [[validation] * len(sources) for _ in sources]
    fields: dict[str, Any] = {
        "run": run,
        "title": benchmark.title,
        "kind": catalog.find(run.method).kind,
        "status": "done" if done else "diverged",
        "metric": benchmark.metric,
        "classes": ["a", "b"],
        "sources": sources,
        "settings": {},
        "run_settings": {},
        "network": {"name": "mlp"},
        "steps": 2,
        "memory": 10,
        "rows_per_step": [1] * len(sources),
        "matrices": {"train": rows, "validation": rows}
        if done
        else {"train": [], "validation": []},
        "stages": sources,
        "target": target if done else None,
        "seconds": {"total": 60.0, "training": 30.0},
        "step_milliseconds": [2.0],
        "memory_bytes": 1,
        "memory_items": 1,
        "method_bytes": 1,
        "notes": list(notes),
        "versions": VERSIONS,
        **values,
    }
    return Result(**fields)


def write(
    runs: Path,
    result: Result,
    planned: Planned | None = None,
    experiment: str = "toy",
    **config: Any,
) -> RunFolder:
    """Write a result to the folder where a sweep would write it."""
    named = name_run(result.run.normal())
    folder = RunFolder(runs / (planned.name if planned is not None else named.name))
    folder.path.mkdir(parents=True, exist_ok=True)
    position = (
        {"experiment": experiment, "seed": planned.seed, "trial": planned.trial}
        if planned is not None
        else {}
    )
    folder.write_config(
        {
            "run": result.run.model_dump(mode="json"),
            "named_by": named.described,
            "planned": position,
            **config,
        }
    )
    folder.write(result)
    return folder


def filled(
    runs: Path,
    experiment: Experiment,
    score: Score,
    *,
    record: bool = True,
    change: Mapping[str, Any] | None = None,
) -> Plan:
    """Write all runs of an experiment with scores from `score`; NotImplemented skips a run."""
    book = make_book(EXPERIMENTS / "none.yaml")
    plan = make_plan(experiment, Store(runs), book, available_only=False)
    for planned in plan.unique().values():
        target_score = score(planned)
        if target_score is not NotImplemented:
            write(
                runs,
                result(planned.run, target_score, **(change or {})),
                planned,
                experiment.name,
                commit="c0ffee",
            )
    if record:
        record_experiment(experiment, runs, book)
    return plan


def steady(planned: Planned) -> float:
    """The score of a planned run: by its method, and a little by its seed."""
    return NUMBERS.get(planned.run.method, 0.4) + 0.01 * planned.seed


def only(report: Report) -> Table:
    """The one table of a report."""
    assert len(report.tables) == 1
    return report.tables[0]


def row(table: Table, key: str) -> Row:
    """The row of a table with this key."""
    return next(each for each in table.rows if each.row == key)
