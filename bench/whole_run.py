"""Where the time of a run goes, and what precision does to its score.

    python bench/whole_run.py [--benchmarks rotated-digits] [--methods er,cl-coral] [--seeds 3] [--ways auto/auto,eager/float32]

Runs as `holdfast run` carries them out, with the benchmark's own steps; ways and methods take turns. Shares are of the whole run:
training, evaluation (all scores on the sources and the target), closing (filling the memory, priors), and the rest. Absolute seconds
mean something on an idle GPU only; they exclude the start of the interpreter. The first run in a process compiles or loads kernels.
"""

from __future__ import annotations

import argparse
import statistics
from itertools import product

import torch

from holdfast import Run, execute
from holdfast.comparison import standard_error
from holdfast.protocol import Result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", default="rotated-digits", help="with commas")
    parser.add_argument("--methods", default="er,cl-coral")
    parser.add_argument("--ways", default="auto/auto", help="execution/precision, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=None)
    asked = parser.parse_args()
    where = torch.cuda.get_device_name() if asked.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{where}; torch {torch.__version__}\n")
    print("| benchmark | method | way | run | seconds | ms a step, by domain | training | evaluation | closing | the rest | target score |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    found: dict[tuple[str, str, str], list[float]] = {}
    asked_for = product(range(asked.seeds), asked.benchmarks.split(","), asked.methods.split(","), asked.ways.split(","))
    for seed, benchmark, method, way in asked_for:
        execution, precision = way.split("/")
        settings = {"execution": execution, "precision": precision}
        result = execute(
            Run.build(benchmark=benchmark, method=method, seed=seed, settings=settings, device=asked.device, steps=asked.steps)
        )
        taken = f"{result.execution}/{result.precision}"
        print(line(benchmark, method, taken, seed, result), flush=True)
        found.setdefault((benchmark, method, taken), []).append(100 * (result.target_score or 0.0))
    print("\n| benchmark | method | way | target score, mean ± standard error over the seeds |")
    print("|---|---|---|---|")
    for (benchmark, method, way), scores in found.items():
        print(f"| {benchmark} | {method} | {way} | {statistics.mean(scores):.2f} ± {standard_error(scores) or 0.0:.2f} |")


def line(benchmark: str, method: str, way: str, seed: int, result: Result) -> str:
    spent = result.seconds
    total = spent["total"]
    evaluation = spent["evaluation"] + spent.get("target", 0.0)
    rest = total - spent["training"] - evaluation - spent["closing"]
    shares = [f"{100 * part / total:.0f}%" for part in (spent["training"], evaluation, spent["closing"], rest)]
    steps = ", ".join(f"{step:.2f}" for step in result.step_milliseconds)
    score = 100 * (result.target_score or 0.0)
    return f"| {benchmark} | {method} | {way} | {seed} | {total:.1f} | {steps} | {' | '.join(shares)} | {score:.2f} |"


if __name__ == "__main__":
    main()
