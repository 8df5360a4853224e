"""What a step costs: each method against er, and the fast ways against eager float32.

    python bench/step_cost.py [--methods er,cl-coral] [--device cuda --ways
    eager/float32,compiled/bf16] [--network cnn --size 28]

One current domain and three replayed ones, `--batch` images of each. Methods and ways take turns, a
few steps at a time, in one process, so that a busy machine disturbs all of them alike; medians are
compared. Methods that do not replay see the current images
only and are marked: their ratio to er is not one of equal rows. Absolute times mean something on an
idle GPU only.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast

import torch

from farshore.data.domain import Domain
from farshore.learner import Learner
from farshore.methods import METHODS, continual
from farshore.trainer import Rehearsal, Trainer

DOMAINS, ROWS = 4, 2000


def images(shape: tuple[int, ...], seed: int) -> Domain:
    generator = torch.Generator().manual_seed(seed)
    pictures = torch.randint(0, 256, (ROWS, *shape), generator=generator).to(torch.uint8)
    return Domain.divided(str(seed), pictures, torch.arange(ROWS) % 10)


def prepared(method: str, way: str, asked: argparse.Namespace) -> Learner:
    """A learner that has three domains behind it and is ready to step on the fourth."""
    execution, precision = way.split("/")
    fields = METHODS.get(method).Settings.model_fields
    early = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    settings = {"batch_size": asked.batch, "execution": execution, "precision": precision, **early}
    network = {"weights": "none"} if asked.network == "resnet18" else {}
    learner = Learner(
        asked.network,
        method,
        memory=1000,
        settings=settings,
        network_settings=network,
        device=asked.device,
        profile="default",
    )
    for domain in range(DOMAINS - 1):
        learner.learn_domain(images(asked.shape, domain), steps=2, classes=list(range(10)))
    return learner


def measure(
    names: list[str], ways: list[str], asked: argparse.Namespace
) -> dict[tuple[str, str], float]:
    """Median seconds of a step of each method in each way; ways that a method cannot go are left
    out.
    """
    device, domain = torch.device(asked.device), images(asked.shape, DOMAINS - 1)
    steppers: dict[tuple[str, str], Callable[[], object]] = {}
    with ExitStack() as stack:
        for name in names:
            for way in ways:
                learner = prepared(name, way, asked)
                step = opened(stack, learner, domain)
                if learner.system.way.execution == way.split("/")[0]:
                    steppers[name, way] = step
        return medians(steppers, asked.turns, asked.steps, device)


def opened(stack: ExitStack, learner: Learner, domain: Domain) -> Callable[[], object]:
    """The step of a learner on one more domain, as training carries it out, while `stack` is
    open.
    """
    trainer = cast(Trainer, learner.system)
    rehearsal = Rehearsal(trainer, domain.name, domain.split("train").to(learner.device))
    trainer.method.before_domain(domain.name)
    trainer.choose_way(10_000, rehearsal.parts)
    stack.enter_context(trainer.arithmetic())
    step = trainer.carrying_out(lambda: trainer.step(rehearsal))
    return ready(trainer, stack.enter_context(step))


def medians(
    steppers: dict[Any, Callable[[], object]], turns: int, steps: int, device: torch.device
) -> dict[Any, float]:
    """Median seconds of each step; they take turns of some steps."""
    times: dict[Any, list[float]] = {key: [] for key in steppers}
    for turn in range(turns + 1):
        for key, step in steppers.items():
            wait(device)
            began = time.perf_counter()
            for _ in range(steps):
                step()
            wait(device)
            if turn:  # the first turn allocates, compiles and records
                times[key].append((time.perf_counter() - began) / steps)
    return {key: statistics.median(taken) for key, taken in times.items()}


def ready(trainer: Trainer, carry_out: Callable[[], object]) -> Callable[[], object]:
    def step() -> object:
        trainer.method.before_step(trainer.steps_done, trainer.steps_done)
        trainer.steps_done += 1
        return carry_out()

    for _ in range(5):
        step()
    return step


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def about_images(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cpu")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", default=",".join(continual()))
    parser.add_argument(
        "--ways",
        default="eager/float32",
        help="execution/precision, with commas; the first is the reference",
    )
    about_images(parser)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--steps", type=int, default=1, help="steps a turn")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    asked = parser.parse_args()
    asked.shape = (asked.channels, asked.size, asked.size)
    torch.set_num_threads(asked.threads)
    names, ways = asked.methods.split(","), asked.ways.split(",")
    names = names if "er" in names else ["er", *names]
    found = measure(names, ways, asked)
    where = (
        torch.cuda.get_device_name() if asked.device == "cuda" else f"{asked.threads} CPU threads"
    )
    print(
        f"{asked.network}, {DOMAINS} x {asked.batch} images of {asked.size} pixels; {where}; "
        f"torch {torch.__version__}"
    )
    print(f"median of {asked.turns} interleaved turns of {asked.steps} steps\n")
    print(
        "| method | "
        + " | ".join(f"{way}: ms | x er | x faster than {ways[0]}" for way in ways)
        + " |"
    )
    print("|---|" + "---|---|---|" * len(ways))
    for name in names:
        marked = name if METHODS.get(name).replay.memory is not None else f"{name} (no replay)"
        print(
            f"| {marked} | " + " | ".join(cells(found, name, way, ways[0]) for way in ways) + " |",
            flush=True,
        )


def cells(found: dict[tuple[str, str], float], name: str, way: str, reference: str) -> str:
    if (name, way) not in found:
        return "- | - | -"
    taken = found[name, way]
    against = f"{taken / found['er', way]:.2f}" if ("er", way) in found else "-"
    return f"{1000 * taken:.2f} | {against} | {found[name, reference] / taken:.1f}"


if __name__ == "__main__":
    main()
