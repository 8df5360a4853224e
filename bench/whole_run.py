"""Where the time of a run goes, and how precision affects its score.

    python bench/whole_run.py [--benchmarks rotated-digits] [--methods er,cl-coral] [--seeds 3]
    [--ways auto/auto,eager/float32]

Runs as `farshore run` carries them out, with the benchmark's own steps; ways (execution/precision)
and methods take turns. Shares are of the whole run: training, evaluation (all scores on the sources
and the target), closing (filling the memory, priors), and the rest. The last table compares times
with the first method's, seed by seed: training and closing, and the whole run. Absolute seconds are
meaningful only on an idle GPU; they exclude the start of the interpreter. The first run in a
process compiles or loads kernels. With `--workers` several runs share the device: useful for scores
over many seeds, not for times.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from itertools import product

import torch
from packing import outcomes

from farshore import Run, execute
from farshore.runs.engines.local import LocalEngine
from farshore.runs.engines.work import Work
from farshore.runs.result import Result
from farshore.runs.store.identity import name_run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmarks", default="rotated-digits", help="comma-separated")
    parser.add_argument("--methods", default="er,cl-coral")
    parser.add_argument("--ways", default="auto/auto", help="execution/precision, comma-separated")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--steps", type=int, default=None, help="steps per domain; default: the benchmark's own"
    )
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    args = parser.parse_args()
    where = (
        torch.cuda.get_device_name()
        if args.device == "cuda"
        else f"{torch.get_num_threads()} CPU threads"
    )
    print(f"{where}; torch {torch.__version__}\n")
    print(
        "| benchmark | method | way | run | seconds | ms a step, by domain | training | "
        "evaluation | closing | the rest | target score |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    ways, runs = args.ways.split(","), []
    for seed, benchmark, method, way in product(
        range(args.seeds), args.benchmarks.split(","), args.methods.split(","), ways
    ):
        settings = dict(zip(("execution", "precision"), way.split("/"), strict=True))
        runs.append(
            Run.build(
                benchmark=benchmark,
                method=method,
                seed=seed,
                settings=settings,
                device=args.device,
                steps=args.steps,
            )
        )
    # By the requested way: `auto` may choose the same way as another entry.
    scores: dict[tuple[str, str, str], dict[int, float]] = {}
    times: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for result in (
        map(execute, runs) if args.workers == 1 else together(runs, args.workers, args.device)
    ):
        print(line(result), flush=True)
        run = result.run
        key = run.benchmark, run.method, "/".join(run.settings.values())
        scores.setdefault(key, {})[run.seed] = 100 * (result.target_score or 0.0)
        learning = result.seconds["training"] + result.seconds["closing"]
        times.setdefault(key, []).append((learning, result.seconds["total"]))
    print(
        "\n| benchmark | method | way | target score, mean ± standard error over the seeds | "
        "seed by seed against the first way |"
    )
    print("|---|---|---|---|---|")
    for (benchmark, method, way), by_seed in scores.items():
        first = scores[benchmark, method, ways[0]]
        differences = [score - first[seed] for seed, score in by_seed.items()]
        print(
            f"| {benchmark} | {method} | {way} | {spread(list(by_seed.values()))} | "
            f"{spread(differences)} |"
        )
    first_method = args.methods.split(",")[0]
    print(f"\n| benchmark | method | way | learning, x {first_method} | whole run |")
    print("|---|---|---|---|---|")
    for (benchmark, method, way), seconds in times.items():
        compared = zip(seconds, times[benchmark, first_method, way], strict=True)
        ratios = [
            statistics.median(ratio)
            for ratio in zip(
                *((own[0] / other[0], own[1] / other[1]) for own, other in compared), strict=True
            )
        ]
        print(f"| {benchmark} | {method} | {way} | {ratios[0]:.2f} | {ratios[1]:.2f} |")


def together(runs: list[Run], workers: int, device: str) -> Iterator[Result]:
    """Results of runs that share the device, as they finish."""
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    with tempfile.TemporaryDirectory() as folder, LocalEngine(workers, gpus=gpus) as engine:
        tasks = {task.name: task for run in runs for task in [Work(name_run(run), folder)]}
        for outcome, _ in outcomes(engine, list(tasks.values())):
            if outcome.status != "done":
                raise SystemExit(f"{outcome.name}: {outcome.status} {outcome.message}")
            yield tasks[outcome.name].folder.read()


def spread(values: list[float]) -> str:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} ± {error:.2f}"


def line(result: Result) -> str:
    run, seconds = result.run, result.seconds
    total = seconds["total"]
    evaluation = seconds["evaluation"] + seconds.get("target", 0.0)
    rest = total - seconds["training"] - evaluation - seconds["closing"]
    shares = [
        f"{100 * part / total:.0f}%"
        for part in (seconds["training"], evaluation, seconds["closing"], rest)
    ]
    steps = ", ".join(f"{step:.2f}" for step in result.step_milliseconds)
    score = 100 * (result.target_score or 0.0)
    label = f"| {run.benchmark} | {run.method} | {result.execution}/{result.precision} | {run.seed}"
    return f"{label} | {total:.1f} | {steps} | {' | '.join(shares)} | {score:.2f} |"


if __name__ == "__main__":
    main()
