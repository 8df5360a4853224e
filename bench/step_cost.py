"""Cost of a step: each method relative to er, and the fast ways relative to eager float32.

    python bench/step_cost.py [--methods er,cl-coral] [--device cuda --ways
    eager/float32,compiled/bf16] [--network cnn --size 28] [--network mlp
    --columns 54]

A way is execution/precision. One current domain and three replayed ones, `--batch` rows of each;
the table says how many rows a step of each method has: methods without replay see only the current
ones, and some draw more. Methods and ways take turns, a few steps at a time, in one process, so
that a busy machine affects all of them equally; medians are compared. On a CPU, the time is that of
the process, not of the clock. Absolute times are meaningful only on an idle GPU.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, cast

import record
import torch

from farshore.data.domain import Domain
from farshore.learner.learner import Learner
from farshore.methods import METHODS, continual
from farshore.training.batches import Rehearsal
from farshore.training.trainer import Trainer

DOMAINS, ROWS = 4, 2000


def made(shape: tuple[int, ...], seed: int) -> Domain:
    """A domain of random images, or of rows of random numbers."""
    generator = torch.Generator().manual_seed(seed)
    inputs = (
        torch.randn(ROWS, *shape, generator=generator)
        if len(shape) == 1
        else torch.randint(0, 256, (ROWS, *shape), generator=generator).to(torch.uint8)
    )
    return Domain.divided(str(seed), inputs, torch.arange(ROWS) % 10)


def prepared(
    method: str, way: str, args: argparse.Namespace, chosen: Mapping[str, Any] | None = None
) -> Learner:
    """A learner that has learned three domains and is ready to step on the fourth.

    `chosen` are settings of the method.
    """
    execution, precision = way.split("/")
    fields = METHODS.get(method).Settings.model_fields
    no_warmup = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    settings = {
        "batch_size": args.batch,
        "execution": execution,
        "precision": precision,
        "replay_budget": "per-domain",
        **no_warmup,
        **(chosen or {}),
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
        learner.learn_domain(made(args.shape, domain), steps=2, classes=list(range(10)))
    return learner


def measure(
    names: list[str], ways: list[str], args: argparse.Namespace
) -> tuple[dict[tuple[str, str], float], dict[str, int]]:
    """Median seconds of a step per method and way that it can use, and the rows of its step."""
    device, domain = torch.device(args.device), made(args.shape, DOMAINS - 1)
    steppers: dict[tuple[str, str], Callable[[], object]] = {}
    rows: dict[str, int] = {}
    with ExitStack() as stack:
        for name in names:
            for way in ways:
                learner = prepared(name, way, args)
                step = opened(stack, learner, domain)
                rows[name] = learner.system.rows_per_step
                if learner.system.way.execution == way.split("/")[0]:
                    steppers[name, way] = step
        return medians(steppers, args.turns, args.steps, device), rows


def opened(stack: ExitStack, learner: Learner, domain: Domain) -> Callable[[], object]:
    """The training step of a learner on one more domain, usable while `stack` is open."""
    trainer = cast(Trainer, learner.system)
    rehearsal = Rehearsal(trainer, domain.name, domain.split("train").to(learner.device))
    trainer.rows_per_step = rehearsal.rows_per_step
    trainer.method.before_domain(domain.name)
    trainer.choose_way(10_000, rehearsal.parts)
    stack.enter_context(trainer.arithmetic())
    step = trainer.carrying_out(lambda: trainer.step(rehearsal))
    return ready(trainer, stack.enter_context(step))


def medians(
    steppers: Mapping[Any, Callable[[], object]], turns: int, steps: int, device: torch.device
) -> dict[Any, float]:
    """Median seconds of each step over the turns."""
    seconds = in_turn(steppers, turns, steps, device)
    return {key: statistics.median(each) for key, each in seconds.items()}


def in_turn(
    steppers: Mapping[Any, Callable[[], object]], turns: int, steps: int, device: torch.device
) -> dict[Any, list[float]]:
    """Seconds of each step in every turn, in which each stepper takes `steps` steps."""
    now = time.process_time if device.type == "cpu" else time.perf_counter
    times: dict[Any, list[float]] = {key: [] for key in steppers}
    for turn in range(turns + 1):
        for key, step in steppers.items():
            wait(device)
            start = now()
            for _ in range(steps):
                step()
            wait(device)
            if turn:  # the first turn allocates, compiles and records
                times[key].append((now() - start) / steps)
    return times


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


def add_shape_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--columns", type=int, help="rows with so many numbers instead of images")
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cpu")


def shape_of(args: argparse.Namespace) -> tuple[int, ...]:
    """The shape of one input."""
    return (args.columns,) if args.columns else (args.channels, args.size, args.size)


def described(args: argparse.Namespace) -> str:
    """What is measured."""
    return (
        f"{args.network} on inputs of {' x '.join(map(str, args.shape))}, {DOMAINS} domains with "
        f"{args.batch} rows of each in a step; medians of {args.turns} interleaved turns of "
        f"{args.steps} steps"
    )


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
    add_shape_arguments(parser)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--steps", type=int, default=1, help="steps per turn")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    record.add_save(parser)
    args = parser.parse_args()
    args.shape = shape_of(args)
    torch.set_num_threads(args.threads)
    names, ways = args.methods.split(","), args.ways.split(",")
    names = names if "er" in names else ["er", *names]
    seconds, rows = measure(names, ways, args)
    columns = ["method", "rows per step"]
    for way in ways:
        columns += [f"{way}: ms", "x er"]
        columns += [f"x faster than {ways[0]}"] if way != ways[0] else []
    record.show(
        args,
        described(args),
        columns,
        ([name, rows[name], *cells(seconds, name, ways)] for name in names),
    )


def cells(seconds: dict[tuple[str, str], float], name: str, ways: list[str]) -> Iterator[str]:
    """The cells of a method: what a way that it cannot use would show is a dash."""
    for way in ways:
        own = seconds.get((name, way))
        of_er = seconds.get(("er", way))
        yield f"{1000 * own:.2f}" if own else "-"
        yield f"{own / of_er:.2f}" if own and of_er else "-"
        if way != ways[0]:
            yield f"{seconds[name, ways[0]] / own:.1f}" if own else "-"


if __name__ == "__main__":
    main()
