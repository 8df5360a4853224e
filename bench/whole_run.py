"""Where the time of a run goes, and what precision does to its score.

    python bench/whole_run.py [--benchmark rotated-digits] [--methods er,cl-coral] [--seeds 3] [--ways auto/auto,eager/float32]

Runs as `holdfast run` carries them out, with the benchmark's own steps; ways and methods take turns. Shares are of the whole run:
training, evaluation (all scores on the sources and the target), closing (filling the memory, priors), and the rest. Absolute seconds
mean something on an idle GPU only; they exclude the start of the interpreter. The first run in a process compiles or loads kernels.
"""

from __future__ import annotations

import argparse
import statistics

import torch

from holdfast import Run, execute
from holdfast.comparison import standard_error
from holdfast.protocol import Result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", default="rotated-digits")
    parser.add_argument("--methods", default="er,cl-coral")
    parser.add_argument("--ways", default="auto/auto", help="execution/precision, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=None)
    asked = parser.parse_args()
    where = torch.cuda.get_device_name() if asked.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{asked.benchmark}; {where}; torch {torch.__version__}\n")
    print("| method | way | run | seconds | ms a step, by domain | training | evaluation | closing | the rest | target score |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(asked.seeds):
        for method in asked.methods.split(","):
            for way in asked.ways.split(","):
                execution, precision = way.split("/")
                settings = {"execution": execution, "precision": precision}
                run = Run.build(
                    benchmark=asked.benchmark, method=method, seed=seed, settings=settings, device=asked.device, steps=asked.steps
                )
                result = execute(run)
                print(line(method, f"{result.execution}/{result.precision}", seed, result), flush=True)
                found.setdefault((method, f"{result.execution}/{result.precision}"), []).append(100 * (result.target_score or 0.0))
    print("\n| method | way | target score, mean ± standard error over the seeds |")
    print("|---|---|---|")
    for (method, way), scores in found.items():
        print(f"| {method} | {way} | {statistics.mean(scores):.2f} ± {standard_error(scores) or 0.0:.2f} |")


def line(method: str, way: str, seed: int, result: Result) -> str:
    spent = result.seconds
    total = spent["total"]
    evaluation = spent["evaluation"] + spent.get("target", 0.0)
    rest = total - spent["training"] - evaluation - spent["closing"]
    shares = [f"{100 * part / total:.0f}%" for part in (spent["training"], evaluation, spent["closing"], rest)]
    steps = ", ".join(f"{step:.2f}" for step in result.step_milliseconds)
    return f"| {method} | {way} | {seed} | {total:.1f} | {steps} | {' | '.join(shares)} | {100 * (result.target_score or 0.0):.2f} |"


if __name__ == "__main__":
    main()
