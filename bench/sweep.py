"""Overhead of the local engine over 1,000 tiny runs, and the driver's memory.

    python bench/sweep.py [runs] [workers]

A run is timed from the moment a worker receives it until the driver has its outcome, minus the time
inside `execute`. The rest is the engine: claim, config, progress lines, the state after each
domain, result, release of the claim.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from farshore.runs.engines.carry_out import carry_out, open_runs
from farshore.runs.engines.local import LocalEngine
from farshore.runs.plan.experiment import Experiment
from farshore.runs.plan.plan import Condition, Plan, Planned
from farshore.runs.run import Run
from farshore.runs.store.identity import name_run
from farshore.runs.store.store import Store

LIMIT_MILLISECONDS = 20.0


def resident() -> float:
    """Resident memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(count: int = 1000, workers: int = 2) -> None:
    experiment = Experiment(
        name="bench",
        about="tiny runs",
        parts=[{"benchmarks": ["heart-hospitals"], "methods": ["finetune"]}],
    )
    runs = [
        Run.build(benchmark="heart-hospitals", method="finetune", steps=1, seed=seed)
        for seed in range(count)
    ]
    plan = Plan(
        experiment,
        [
            Planned(name_run(run), Condition(0, run.benchmark, run.method), run.seed, 0)
            for run in runs
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        todo, _ = open_runs(plan, store)
        memory: list[float] = []
        spent = 0.0

        def report(planned: object, outcome: object, progress: object) -> None:
            nonlocal spent
            if outcome is not None:
                spent += outcome.seconds
                memory.append(resident())

        with LocalEngine(workers) as engine:
            # The time in which the workers import PyTorch is not counted.
            start = time.perf_counter()
            carry_out(plan, store, engine, todo=todo, report=report)
            wall = time.perf_counter() - start
        inside = sum(store.read(name).seconds["total"] for name in todo)
    overhead = 1000 * (spent - inside) / count
    tenth = max(1, count // 10)
    print(
        f"{count} runs with {workers} workers in {wall:.1f} s: {1000 * inside / count:.1f} ms per "
        f"run in execute, {overhead:.1f} ms around it"
    )
    print(f"driver: {memory[tenth]:.1f} MiB after {tenth} runs, {memory[-1]:.1f} MiB after all")
    print(
        f"engine overhead {overhead:.1f} ms per run: "
        f"{'under' if overhead < LIMIT_MILLISECONDS else 'OVER'} {LIMIT_MILLISECONDS:.0f} ms"
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
