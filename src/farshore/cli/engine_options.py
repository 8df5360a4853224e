"""The engine options that commands share, and how a command carries out a plan with them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from ..errors import FarshoreError
from .flags import flag

if TYPE_CHECKING:
    from rich.console import Console

    from ..runs.engines.engine import Engine
    from ..runs.plan.plan import Plan
    from ..runs.store.store import Store

SHOWN_FAILURES = 10

# The help of what several commands have.
RUNS = "folder of runs; several commands may share it"
WORKERS = "number of runs at a time [default: one per core]"
ROOT = "data folder, as given to `farshore prepare`"
# Of commands that compute in this process.
ONE_DEVICE = "cpu, cuda, cuda:0, or auto: cuda if there is a GPU, otherwise cpu"


@dataclass(frozen=True)
class KeepOptions:
    """What runs leave behind besides their results."""

    heading: ClassVar = "What is kept"

    keep_states: bool = flag("keep the state of the learner after every domain", False)
    log: str | None = flag(
        "write losses and scores to RUNS/logs: csv, tensorboard, wandb or mlflow"
    )

    def __post_init__(self) -> None:
        """Refuse an unknown logger, and one whose package is missing."""
        from ..loggers import check_logger

        if self.log is not None:
            check_logger(self.log)

    def prepare_log(self, runs: Path) -> None:
        """Refuse a logger that cannot be used, and make what its processes share."""
        from ..loggers import logger_class
        from ..runs.engines.work import log_folder

        if self.log is not None:
            logger_class(self.log).prepare(log_folder(runs, self.log))


@dataclass(frozen=True)
class EngineOptions:
    """Where and how many at a time runs are carried out, validated."""

    heading: ClassVar = "Where it runs"

    engine: str = flag("local: processes on this machine; ray: a Ray cluster", "local")
    address: str | None = flag("address of the Ray cluster [default: start one on this machine]")
    workers: int | None = flag(WORKERS)
    device: str = flag("cpu, cuda, or auto: cuda if there is a GPU, otherwise cpu", "auto")
    runs_per_gpu: int | None = flag(
        "with --device cuda: number of runs that share a GPU [default: as many as its memory and "
        "the cores allow]"
    )

    def __post_init__(self) -> None:
        if self.engine not in ("local", "ray"):
            raise FarshoreError(f"--engine {self.engine} is not allowed: use local or ray")
        if self.address is not None and self.engine != "ray":
            raise FarshoreError("--address names a Ray cluster: it needs --engine ray")
        for option, value in (("--workers", self.workers), ("--runs-per-gpu", self.runs_per_gpu)):
            if value is not None and value < 1:
                raise FarshoreError(f"{option} {value} is not allowed: give at least 1")
        if self.device not in ("auto", "cpu", "cuda"):
            raise FarshoreError(f"--device {self.device} is not allowed: use auto, cpu or cuda")

    @property
    def chosen_device(self) -> str:
        """cpu or cuda."""
        from ..methods.optimization import choose_device

        return choose_device(self.device)

    def make(self, plan: "Plan") -> "Engine":
        """Create the engine. Its workers start with the first run."""
        gpu = self.chosen_device == "cuda"
        if self.engine == "ray":
            from ..runs.engines.ray_engine import RayEngine

            per_gpu = self.runs_per_gpu or 1
            return RayEngine(self.address, slots=self.workers, gpu=gpu, runs_per_gpu=per_gpu)

        import torch

        from ..runs.engines.local import LocalEngine
        from ..runs.engines.mps import packed

        gpus = torch.cuda.device_count() if gpu else 0
        if gpu and gpus == 0:
            raise FarshoreError("--device cuda: PyTorch finds no GPU here; use --device cpu")
        if gpus:
            at_once = self.workers or gpus * (self.runs_per_gpu or packed(gpus))
            return LocalEngine(at_once, gpus=gpus)
        return LocalEngine(self.workers or plan.runs_at_once())


def carry_out_plan(
    console: "Console",
    plan: "Plan",
    store: "Store",
    options: EngineOptions,
    keep: KeepOptions | None = None,
) -> bool:
    """Carry out the open runs of a plan and show progress; return whether any run failed.

    Ctrl-C prints how many runs are done and exits with code 130.
    """
    from ..runs.engines.carry_out import carry_out, open_runs
    from ..runs.engines.work import Keep
    from .plan_progress import PlanProgress

    keep = keep or KeepOptions()
    todo, damaged = open_runs(plan, store)
    for text in damaged:
        print_line(console, f"{text}; its run is repeated")
    print_left_out(console, plan)
    failures: list[str] = []
    if todo:
        keep.prepare_log(store.runs)
        kept = Keep(states=keep.keep_states, log=keep.log)
        try:
            with options.make(plan) as engine, PlanProgress(console, plan, store) as shown:
                done = carry_out(plan, store, engine, todo=todo, keep=kept, report=shown.report)
            failures = done.failures
        except KeyboardInterrupt:
            total = len(plan.unique())
            left = len(open_runs(plan, store)[0])
            ended = f"{total - left} of {total + plan.ahead} runs are done"
            print_line(console, f"stopped: {ended}; the same command resumes")
            raise typer.Exit(130) from None
    for text in failures[:SHOWN_FAILURES]:
        print_line(console, f"failed: {text}")
    if failures:
        print_line(console, f"{len(failures)} runs failed; the same command tries them again")
    return bool(failures)


def use_root(root: Path | None) -> None:
    """Make this process read data from `root`."""
    if root is not None:
        if not root.is_dir():
            raise FarshoreError(
                f"--root {str(root)!r} is not a folder: give the folder that you gave to "
                "`farshore prepare --root`"
            )
        os.environ["FARSHORE_DATA"] = str(root)


def print_left_out(console: "Console", plan: "Plan") -> None:
    """Print which runs of the plan cannot be carried out now, and why."""
    for benchmark, absent in plan.absent.items():
        why = f"not available here ({absent.why}); {absent.runs} runs left out"
        print_line(console, f"{benchmark}: {why}")
    for waiting in plan.waiting[:SHOWN_FAILURES]:
        print_line(console, waiting.sentence)
    if len(plan.waiting) > SHOWN_FAILURES:
        print_line(console, f"... and {len(plan.waiting) - SHOWN_FAILURES} more are waiting")


def print_line(console: "Console", text: str) -> None:
    """Print a line: unchanged in a log; in a terminal it wraps by words, and pages are links."""
    from .tables import linked

    console.print(linked(text) if console.is_terminal else text, soft_wrap=not console.is_terminal)
