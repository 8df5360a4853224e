"""Where and how the runs of a plan are carried out: the options that commands share, and the
engine that they describe.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError

if TYPE_CHECKING:
    from rich.console import Console

    from ..engines.engine import Engine
    from ..plan.plan import Plan
    from ..store.store import Store

SHOWN_FAILURES = 10

RunsOption = Annotated[Path, typer.Option(help="folder of the runs; several commands may share it")]
EngineOption = Annotated[str, typer.Option(help="local: processes of this machine; ray: a cluster")]
AddressOption = Annotated[
    str | None, typer.Option(help="address of a Ray cluster; without it one is started here")
]
WorkersOption = Annotated[int | None, typer.Option(help="runs at a time; one per core by default")]
DeviceOption = Annotated[str, typer.Option(help="cpu or cuda")]
RunsPerGpuOption = Annotated[
    int | None,
    typer.Option(
        help="runs that share a GPU, with --device cuda; as many as its memory and the cores "
        "bear by default"
    ),
]
KeepStatesOption = Annotated[
    bool,
    typer.Option("--keep-states", help="keep the learner's state at the end of every domain"),
]
RootOption = Annotated[
    Path | None, typer.Option(help="folder for data, as given to `farshore prepare`")
]


@dataclass(frozen=True)
class EngineOptions:
    """The options that describe an engine, checked."""

    engine: str = "local"
    address: str | None = None
    workers: int | None = None
    device: str = "cpu"
    runs_per_gpu: int | None = None

    def __post_init__(self) -> None:
        if self.engine not in ("local", "ray"):
            raise FarshoreError(f"--engine {self.engine} is not allowed: use local or ray")
        if self.address is not None and self.engine != "ray":
            raise FarshoreError("--address is that of a Ray cluster: it needs --engine ray")
        for option, value in (("--workers", self.workers), ("--runs-per-gpu", self.runs_per_gpu)):
            if value is not None and value < 1:
                raise FarshoreError(f"{option} {value} is not allowed: at least 1")
        if self.device not in ("cpu", "cuda"):
            raise FarshoreError(f"--device {self.device} is not allowed: use cpu or cuda")

    def make(self, plan: Plan) -> Engine:
        """The engine; workers start when there is something to do."""
        gpu = self.device == "cuda"
        if self.engine == "ray":
            from ..engines.ray_engine import RayEngine

            return RayEngine(
                address=self.address,
                slots=self.workers,
                gpu=gpu,
                runs_per_gpu=self.runs_per_gpu or 1,
            )

        import torch

        from ..engines.local import LocalEngine
        from ..engines.mps import packed

        gpus = torch.cuda.device_count() if gpu else 0
        if gpu and gpus == 0:
            raise FarshoreError("--device cuda: PyTorch finds no GPU here; use --device cpu")
        if gpus:
            return LocalEngine(
                self.workers or gpus * (self.runs_per_gpu or packed(gpus)), gpus=gpus
            )
        return LocalEngine(self.workers or plan.runs_at_once())


def carry_out_plan(
    console: Console, plan: Plan, store: Store, options: EngineOptions, *, keep_states: bool
) -> bool:
    """Carry out what the plan has open, with its progress; whether any run failed. Ctrl-C says
    how far it came and leaves with exit code 130.
    """
    from ..engines.carry_out import Keep, carry_out, open_runs
    from .plan_progress import PlanProgress

    todo, damaged = open_runs(plan, store)
    for text in damaged:
        say(console, f"{text}; its run is repeated")
    say_left_out(console, plan)
    failures: list[str] = []
    if todo:
        try:
            with options.make(plan) as engine, PlanProgress(console) as shown:
                failures = carry_out(
                    plan,
                    store,
                    engine,
                    todo=todo,
                    keep=Keep(states=keep_states),
                    report=shown.report,
                ).failures
        except KeyboardInterrupt:
            total = len(plan.unique())
            left = len(open_runs(plan, store)[0])
            say(
                console,
                f"stopped: {total - left} of {total + plan.ahead} runs are done; the same "
                "command goes on",
            )
            raise typer.Exit(130) from None
    for text in failures[:SHOWN_FAILURES]:
        say(console, f"failed: {text}")
    if failures:
        say(console, f"{len(failures)} runs failed; the same command tries them again")
    return bool(failures)


def say_left_out(console: Console, plan: Plan) -> None:
    """What of the plan cannot be carried out here and now."""
    for benchmark, absent in plan.absent.items():
        say(
            console,
            f"{benchmark}: not available here ({absent.why}); {absent.runs} runs left out",
        )
    for waiting in plan.waiting[:SHOWN_FAILURES]:
        say(console, waiting.sentence)
    if len(plan.waiting) > SHOWN_FAILURES:
        say(console, f"... and {len(plan.waiting) - SHOWN_FAILURES} more that wait")


def say(console: Console, text: str) -> None:
    """A line as it is: neither coloured nor broken."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
