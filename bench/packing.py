"""Runs per minute of one GPU that several runs share.

    python bench/packing.py [--benchmark rotated-mnist]

The five tailored methods and er in equal parts, the paper's steps, batch sizes from the paper's
range, persistent workers of the local engine. Counting starts when every worker has finished its
first run, in which it loads its kernels. It ends when the first worker has nothing left to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import torch

from farshore.runs.engines.local import LocalEngine
from farshore.runs.engines.work import Work, WorkOutcome
from farshore.runs.run import Run
from farshore.runs.store.identity import name_run

METHODS = ("er", "cl-vrex", "cl-fishr", "cl-coral", "cl-mmd", "cl-andmask")


def runs(benchmark: str, count: int, steps: int | None, way: str) -> list[Run]:
    """The methods in turn, each with a batch size from the paper's search range, 2^U(3, 8)."""
    execution, precision = way.split("/")
    rng = np.random.default_rng(0)
    sizes = np.round(2 ** rng.uniform(3, 8, size=count)).astype(int)
    return [
        Run.build(
            benchmark=benchmark,
            method=METHODS[i % len(METHODS)],
            seed=i,
            steps=steps,
            settings={"batch_size": int(sizes[i]), "execution": execution, "precision": precision},
            device="cuda",
        )
        for i in range(count)
    ]


def outcomes(engine: LocalEngine, tasks: list[Work]) -> Iterator[tuple[WorkOutcome, int]]:
    """Outcomes as tasks end, each with the number of tasks that still wait for a worker."""
    waiting, unfinished = list(tasks), len(tasks)
    while unfinished:
        while engine.free and waiting:
            engine.submit(waiting.pop(0))
        if (outcome := engine.next(1.0)) is not None:
            unfinished -= 1
            yield outcome, len(waiting)


def rate(benchmark: str, workers: int, count: int, mps: bool, steps: int | None, way: str) -> str:
    tasks = runs(benchmark, count, steps, way)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalEngine(workers, gpus=torch.cuda.device_count(), mps=mps) as engine,
    ):
        ended: list[float] = []
        start, first, idle, failed = time.perf_counter(), 0.0, 0.0, 0
        for outcome, waiting in outcomes(engine, [Work(name_run(run), folder) for run in tasks]):
            ended.append(time.perf_counter())
            print(
                f"{len(ended)} of {len(tasks)} after {ended[-1] - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
            if outcome.status != "done":
                failed += 1
                print(outcome.status, outcome.message)
            if len(ended) == workers:
                first = ended[-1]
            if not waiting and not idle:
                idle = ended[-1]
        counted = sum(first < moment <= idle for moment in ended)
        minutes = (idle - first) / 60
    return (
        f"| {benchmark} | {workers} | {'yes' if mps else 'no'} | {counted} | "
        f"{counted / minutes:.1f} | "
        f"{len(tasks)} in {ended[-1] - start:.0f} s |{f' {failed} FAILED' if failed else ''}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmark", default="rotated-mnist")
    parser.add_argument("--workers", default="8", help="numbers of runs at a time, comma-separated")
    parser.add_argument("--runs", type=int, default=0, help="runs to measure; 0: five per worker")
    parser.add_argument(
        "--steps", type=int, default=None, help="steps per domain; default: the benchmark's own"
    )
    parser.add_argument("--way", default="auto/auto", help="execution/precision")
    parser.add_argument("--mps", choices=("yes", "no", "both"), default="yes")
    args = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(
        "| benchmark | runs at a time | MPS | runs counted | runs a minute | all, with the start "
        "of the workers |"
    )
    print("|---|---|---|---|---|---|")
    for workers in (int(number) for number in args.workers.split(",")):
        for mps in {"yes": (True,), "no": (False,), "both": (True, False)}[args.mps]:
            print(
                rate(
                    args.benchmark,
                    workers,
                    args.runs or 5 * workers,
                    mps,
                    args.steps,
                    args.way,
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
