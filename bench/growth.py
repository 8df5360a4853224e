"""Cost of a step after 4, 100 and 1,000 domains.

    python bench/growth.py [--methods er,cl-coral] [--device cuda]

Memory 5,000, replay budget `total` (one batch divided among the past domains), an mlp with 64
inputs. The learners with few and with many domains take turns in one process; compare the ratios of
their medians. The table also shows the bytes that the method stores (its priors).
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

import torch
from step_cost import medians, opened

from farshore.data.domain import Domain
from farshore.learner.learner import Learner
from farshore.methods import METHODS

WIDTH, ROWS, CLASSES = 64, 64, 10


def numbers(seed: int) -> Domain:
    generator = torch.Generator().manual_seed(seed)
    return Domain.divided(
        str(seed), torch.randn(ROWS, WIDTH, generator=generator), torch.arange(ROWS) % CLASSES
    )


def grown(method: str, domains: int, device: str) -> Learner:
    """A learner that has learned this many domains, one step each."""
    fields = METHODS.get(method).Settings.model_fields
    no_warmup = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    settings = {"batch_size": 64, "replay_budget": "total", **no_warmup}
    learner = Learner("mlp", method, memory=5000, settings=settings, device=device)
    for domain in range(domains):
        learner.learn_domain(numbers(domain), steps=1, classes=list(range(CLASSES)))
    return learner


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--methods", default="er,er-ace,cl-vrex,cl-fishr,cl-coral,cl-mmd,cl-andmask,naive-cl-coral"
    )
    parser.add_argument("--domains", default="4,100,1000")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--steps", type=int, default=10, help="steps per turn")
    args = parser.parse_args()
    counts = [int(count) for count in args.domains.split(",")]
    device = torch.device(args.device)
    where = (
        torch.cuda.get_device_name()
        if args.device == "cuda"
        else f"{torch.get_num_threads()} CPU threads"
    )
    print(
        f"{where}; torch {torch.__version__}; median of {args.turns} interleaved turns of "
        f"{args.steps} steps\n"
    )
    print(
        "| method | "
        + " | ".join(
            f"{count} domains: step x that at {counts[0]} | kept by the method, kB"
            for count in counts
        )
        + " |"
    )
    print("|---|" + "---|---|" * len(counts))
    for method in args.methods.split(","):
        learners = {count: grown(method, count, args.device) for count in counts}
        with ExitStack() as stack:
            steppers = {
                count: opened(stack, learner, numbers(10**6)) for count, learner in learners.items()
            }
            seconds = medians(steppers, args.turns, args.steps, device)
        cells = [
            f"{seconds[count] / seconds[counts[0]]:.2f} | "
            f"{learners[count].system.method.bytes / 1000:.0f}"
            for count in counts
        ]
        print(f"| {method} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
