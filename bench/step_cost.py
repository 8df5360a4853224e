"""Cost of a step: each method relative to er, and the fast ways relative to eager float32.

    python bench/step_cost.py [--methods er,cl-coral] [--device cuda --ways
    eager/float32,compiled/bf16] [--network cnn --size 28]

A way is execution/precision. One current domain and three replayed ones, `--batch` images of each.
Methods and ways take turns, a few steps at a time, in one process, so that a busy machine affects
all of them equally; medians are compared. Methods without replay see only the current images and
are marked: their ratio to er does not compare equal rows. Absolute times are meaningful only on an
idle GPU.
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
from farshore.learner.learner import Learner
from farshore.methods import METHODS, continual
from farshore.training.batches import Rehearsal
from farshore.training.trainer import Trainer

DOMAINS, ROWS = 4, 2000


def images(shape: tuple[int, ...], seed: int) -> Domain:
    generator = torch.Generator().manual_seed(seed)
    pictures = torch.randint(0, 256, (ROWS, *shape), generator=generator).to(torch.uint8)
    return Domain.divided(str(seed), pictures, torch.arange(ROWS) % 10)


def prepared(method: str, way: str, args: argparse.Namespace) -> Learner:
    """A learner that has learned three domains and is ready to step on the fourth."""
    execution, precision = way.split("/")
    fields = METHODS.get(method).Settings.model_fields
    no_warmup = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    settings = {
        "batch_size": args.batch,
        "execution": execution,
        "precision": precision,
        **no_warmup,
    }
    network = {"weights": "none"} if args.network == "resnet18" else {}
    learner = Learner(
        args.network,
        method,
        memory=1000,
        settings=settings,
        network_settings=network,
        device=args.device,
        profile="default",
    )
    for domain in range(DOMAINS - 1):
        learner.learn_domain(images(args.shape, domain), steps=2, classes=list(range(10)))
    return learner


def measure(
    names: list[str], ways: list[str], args: argparse.Namespace
) -> dict[tuple[str, str], float]:
    """Median seconds of a step per method and way, without the ways that a method cannot use."""
    device, domain = torch.device(args.device), images(args.shape, DOMAINS - 1)
    steppers: dict[tuple[str, str], Callable[[], object]] = {}
    with ExitStack() as stack:
        for name in names:
            for way in ways:
                learner = prepared(name, way, args)
                step = opened(stack, learner, domain)
                if learner.system.way.execution == way.split("/")[0]:
                    steppers[name, way] = step
        return medians(steppers, args.turns, args.steps, device)


def opened(stack: ExitStack, learner: Learner, domain: Domain) -> Callable[[], object]:
    """The training step of a learner on one more domain, usable while `stack` is open."""
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
    """Median seconds of each step; the steppers take turns of `steps` steps each."""
    times: dict[Any, list[float]] = {key: [] for key in steppers}
    for turn in range(turns + 1):
        for key, step in steppers.items():
            wait(device)
            start = time.perf_counter()
            for _ in range(steps):
                step()
            wait(device)
            if turn:  # the first turn allocates, compiles and records
                times[key].append((time.perf_counter() - start) / steps)
    return {key: statistics.median(seconds) for key, seconds in times.items()}


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


def add_image_arguments(parser: argparse.ArgumentParser) -> None:
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
        help="execution/precision, comma-separated; the first is the reference",
    )
    add_image_arguments(parser)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--steps", type=int, default=1, help="steps per turn")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    args.shape = (args.channels, args.size, args.size)
    torch.set_num_threads(args.threads)
    names, ways = args.methods.split(","), args.ways.split(",")
    names = names if "er" in names else ["er", *names]
    seconds = measure(names, ways, args)
    where = torch.cuda.get_device_name() if args.device == "cuda" else f"{args.threads} CPU threads"
    print(
        f"{args.network}, {DOMAINS} x {args.batch} images of {args.size} pixels; {where}; "
        f"torch {torch.__version__}"
    )
    print(f"median of {args.turns} interleaved turns of {args.steps} steps\n")
    print(
        "| method | "
        + " | ".join(f"{way}: ms | x er | x faster than {ways[0]}" for way in ways)
        + " |"
    )
    print("|---|" + "---|---|---|" * len(ways))
    for name in names:
        label = name if METHODS.get(name).replay.memory is not None else f"{name} (no replay)"
        print(
            f"| {label} | " + " | ".join(cells(seconds, name, way, ways[0]) for way in ways) + " |",
            flush=True,
        )


def cells(seconds: dict[tuple[str, str], float], name: str, way: str, reference: str) -> str:
    if (name, way) not in seconds:
        return "- | - | -"
    own = seconds[name, way]
    relative = f"{own / seconds['er', way]:.2f}" if ("er", way) in seconds else "-"
    return f"{1000 * own:.2f} | {relative} | {seconds[name, reference] / own:.1f}"


if __name__ == "__main__":
    main()
