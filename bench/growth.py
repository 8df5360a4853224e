"""What a step costs after 4, 100 and 1,000 domains: `python bench/growth.py [--methods er,cl-coral]
[--device cuda]`.

Memory 5,000, replay budget `total` (one batch divided over the past domains), an mlp on 64 numbers.
The learners with few and with many domains take turns in one process; the ratio of their medians is
what counts. Beside it stand the bytes of the priors.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

import torch
from step_cost import medians, opened

from farshore.data.domain import Domain
from farshore.learner import Learner
from farshore.methods import METHODS

WIDTH, ROWS, CLASSES = 64, 64, 10


def numbers(seed: int) -> Domain:
    generator = torch.Generator().manual_seed(seed)
    return Domain.divided(
        str(seed), torch.randn(ROWS, WIDTH, generator=generator), torch.arange(ROWS) % CLASSES
    )


def grown(method: str, domains: int, device: str) -> Learner:
    """A learner that has so many domains behind it, one step each."""
    fields = METHODS.get(method).Settings.model_fields
    early = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    settings = {"batch_size": 64, "replay_budget": "total", **early}
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
    parser.add_argument("--steps", type=int, default=10, help="steps a turn")
    asked = parser.parse_args()
    counts, device = [int(count) for count in asked.domains.split(",")], torch.device(asked.device)
    where = (
        torch.cuda.get_device_name()
        if asked.device == "cuda"
        else f"{torch.get_num_threads()} CPU threads"
    )
    print(
        f"{where}; torch {torch.__version__}; median of {asked.turns} interleaved turns of "
        f"{asked.steps} steps\n"
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
    for method in asked.methods.split(","):
        learners = {count: grown(method, count, asked.device) for count in counts}
        with ExitStack() as stack:
            steppers = {
                count: opened(stack, learner, numbers(10**6)) for count, learner in learners.items()
            }
            taken = medians(steppers, asked.turns, asked.steps, device)
        parts = [
            f"{taken[count] / taken[counts[0]]:.2f} | {learners[count].system.method.bytes / 1000:.0f}"
            for count in counts
        ]
        print(f"| {method} | " + " | ".join(parts) + " |", flush=True)


if __name__ == "__main__":
    main()
