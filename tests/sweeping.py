"""Sweeps in tests: an engine in this process, and tables without measured times."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pandas as pd

from farshore.results.experiment_table import experiment_table
from farshore.results.frame import frame_of_plan
from farshore.results.select import select
from farshore.results.tidy_table import tidy_table
from farshore.runs.engines.carry_out import Progress, carry_out, open_runs
from farshore.runs.engines.engine import Engine
from farshore.runs.engines.work import Work, WorkOutcome, carry_out_work
from farshore.runs.plan.experiment import Experiment, make_book
from farshore.runs.plan.plan import Plan, make_plan
from farshore.runs.store.store import Store

# Columns that differ when the same run is carried out again.
MEASURED = (
    *("seconds_in_all", "seconds_of_training", "milliseconds_a_step", "target_opened_at"),
    *("commit", "torch_version", "device"),
)
EXPERIMENTS = Path(__file__).resolve().parents[1] / "reproduction" / "experiments"
# Reading an experiment never runs code that it names: those with a network of their own are read
# with it in tests/reproduction.
FILES = sorted(path for path in EXPERIMENTS.glob("*.yaml") if ".py:" not in path.read_text())


class Here(Engine):
    """Carries out runs in this process, to avoid starting others; records their names."""

    slots = 1

    def __init__(self) -> None:
        self.tasks: deque[Work] = deque()
        self.carried: list[str] = []

    @property
    def free(self) -> int:
        return 1 - len(self.tasks)

    def submit(self, task: Work) -> None:
        self.tasks.append(task)

    def next(self, seconds: float) -> WorkOutcome | None:
        task = self.tasks.popleft()
        self.carried.append(task.name)
        return carry_out_work(task)

    def close(self) -> None:
        self.tasks.clear()


def experiment(**values: object) -> Experiment:
    """A small experiment: er and cl-coral on heart-hospitals, 2 trials of 2 seeds, 2 steps."""
    part = {
        "benchmarks": ["heart-hospitals"],
        "methods": ["er", "cl-coral"],
        "steps": 2,
        "at_most": {"batch_size": 16},
    }
    part |= values.pop("part", {})
    return Experiment(
        **{
            "name": "toy",
            "about": "a toy",
            "search": {"trials": 2, "seeds": 2},
            "parts": [part],
            **values,
        }
    )


def planned(requested: Experiment, runs: Path) -> Plan:
    return make_plan(requested, Store(runs), make_book(EXPERIMENTS / "none.yaml"))


def swept(
    requested: Experiment, runs: Path, engine: Engine | None = None, **options: object
) -> tuple[Plan, Progress]:
    """Carry out an experiment, in this process unless an engine is given."""
    plan = planned(requested, runs)
    store = Store(runs)
    with engine or Here() as opened:
        return plan, carry_out(plan, store, opened, todo=open_runs(plan, store)[0], **options)


def table(runs: Path) -> pd.DataFrame:
    """The tidy table without columns that differ between repeated runs."""
    return tidy_table(Store(runs)).drop(columns=list(MEASURED))


def summary(plan: Plan, store: Store) -> pd.DataFrame:
    """The table that a sweep writes to RUNS/tables."""
    return experiment_table(plan, select(frame_of_plan(plan, store), plan.selection))
