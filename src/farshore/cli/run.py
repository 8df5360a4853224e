"""`farshore run`: one run with live progress and a table of its result."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.files import check_writable, print_output
from ..errors import FarshoreError
from .data_options import BENCHMARK, DataOptions, TrainingOptions, settings_of
from .engine_options import ONE_DEVICE, ROOT, KeepOptions, print_line, use_root
from .flags import Except, answers, argument, command, flag, split_names
from .run_output import show, show_levels

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from rich.console import Console

    from ..runs.engines.carry_out import Progress
    from ..runs.engines.work import Keep, WorkOutcome
    from ..runs.plan.plan import Plan, Planned
    from ..runs.result import Result
    from ..runs.run import Run
    from ..runs.store.store import Store


@command
def run(
    benchmark: str = argument(BENCHMARK),
    method: str = argument("name of a method; `farshore methods` lists them"),
    *,
    seed: int = flag("seed of the run: initial weights, order of rows, memory, method", 0),
    scenario_seed: int = flag("seed of the data: which rows belong to which domain and split", 0),
    target: str | None = flag("the unseen domain; the others are sources"),
    data: DataOptions,
    order: str | None = flag("order of the sources, for example 45,30,15,0"),
    training: Annotated[
        TrainingOptions, Except(set="a setting of the method or the run, name=value, repeatable")
    ],
    device: str = flag(ONE_DEVICE, "auto"),
    deterministic: bool = flag("on a GPU: identical numbers every time, but slower", False),
    out: Path | None = flag(
        "folder of runs to save to: OUT/NAME/result.json and the trained model in OUT/NAME/model"
    ),
    again: bool = flag("repeat the run even if its result is already in OUT", False),
    keep: Annotated[
        KeepOptions,
        Except(
            "keep_states",
            log="write losses and scores to OUT/logs: csv, tensorboard, wandb or mlflow; needs "
            "--out",
        ),
    ],
    root: Path | None = flag(ROOT),
) -> None:
    """Train METHOD on the sources, then score the unseen target.

    The sources of BENCHMARK are learned one after another; the target is scored once, at the end.
    BENCHMARK may be your own data: a table with a column for the domain and one for the class, or a
    folder domain/class/image. With --out, a finished run is shown and not repeated, and an
    interrupted run resumes after its last finished domain.

    Example: farshore run rotated-digits er --seed 1 --set learning_rate=0.002

    Example: farshore run heart.csv er --domain hospital --label num --target va
    """
    from ..runs.engines.work import Keep
    from ..runs.plan.plan import plan_run
    from ..runs.plan.select import in_turn
    from ..runs.run import Run
    from ..runs.store.store import Store
    from .tables import make_console

    use_root(root)
    settings = settings_of(training.set, data.train)
    fields = data.fields(benchmark)
    if in_turn(target):
        raise FarshoreError(
            f"--target {target} is one run per domain: use farshore compare --methods {method} "
            f"--target {target}"
        )
    requested = Run.build(
        method=method,
        seed=seed,
        scenario_seed=scenario_seed,
        target=target,
        order=split_names(order),
        steps=training.steps,
        memory=training.memory,
        settings=settings | ({"deterministic": True} if deterministic else {}),
        device=device,
        **fields,
    )
    if keep.log is not None and out is None:
        raise FarshoreError(f"--log {keep.log} writes into OUT/logs: give --out OUT too")
    typed = requested.model_copy(update=fields)
    plan, console = plan_run(requested), make_console()
    if out is None:
        with _temporary_folder() as folder:
            result = _carry_out(console, plan, Store(Path(folder)), Keep(resumable=False), typed)
    else:
        check_writable(out)
        store = Store(out)
        if again:
            store.folder(plan.runs[0].name).start_over()
        keep.prepare_log(out)
        result = _carry_out(console, plan, store, Keep(model=True, log=keep.log), typed)
    if result.status == "diverged":
        raise typer.Exit(1)


def _temporary_folder() -> "TemporaryDirectory[str]":
    from tempfile import TemporaryDirectory

    try:
        return TemporaryDirectory(prefix="farshore-", ignore_cleanup_errors=True)
    except OSError as error:
        raise FarshoreError(f"no temporary folder can be made: {error}") from None


def _carry_out(
    console: "Console", plan: "Plan", store: "Store", keep: "Keep", typed: "Run"
) -> "Result":
    """Carry out the plan's only run unless it is finished; show and return its result."""
    from ..runs.engines.carry_out import carry_out, open_runs
    from ..runs.engines.engine import InlineEngine
    from .progress import ProgressObserver

    folder = store.folder(plan.runs[0].name)
    todo, damaged = open_runs(plan, store)
    for text in damaged:
        print_line(console, f"{text}; the run is repeated")
    with ProgressObserver(console) as observer, InlineEngine(observer) as engine:
        reporter = _RunReporter(console)
        try:
            carry_out(plan, store, engine, todo=todo, keep=keep, report=reporter.report)
        except KeyboardInterrupt:
            if keep.resumable:
                how = "the same command resumes after the last finished domain"
                print_line(console, f"stopped: {how}")
                raise typer.Exit(130) from None
            raise
    reporter.check()
    result = folder.read()
    answers["result"] = result
    show(result, console)
    show_levels(result, console, typed)
    if keep.model:
        model = " and model" if folder.model.is_dir() else "; no model was kept"
        verb = "saved" if todo else "found"
        hint = "" if todo else "; nothing was trained (--again repeats the run)"
        print_line(console, f"{verb} in {folder.path}: result.json{model}{hint}")
        if todo and result.status == "done" and not folder.model.is_dir():
            raise FarshoreError(
                f"the model could not be saved in {folder.path}: the same command with --again "
                "repeats the run"
            )
    return result


class _RunReporter:
    """Follows the run while it is carried out."""

    def __init__(self, console: "Console") -> None:
        self.console = console
        self.waiting = False
        self.failed: WorkOutcome | None = None

    def report(
        self, planned: "Planned | None", outcome: "WorkOutcome | None", progress: "Progress"
    ) -> None:
        """Note that the run has ended or failed, or that another process carries it out."""
        if outcome is None and progress.elsewhere and not progress.running and not self.waiting:
            self.waiting = True
            print_line(self.console, "another process carries out this run: waiting for it")
        if outcome is not None and outcome.status == "failed":
            self.failed = outcome

    def check(self) -> None:
        """Raise the error that made the run fail, if any.

        A result that could not be written is printed, so that it is not lost.
        """
        if self.failed is None:
            return
        message = self.failed.message
        if self.failed.unwritten is not None:
            show(self.failed.unwritten, self.console)
            print_output(self.failed.unwritten.text() + "\n")
            message += "; the whole result is printed on the standard output instead"
        print(self.failed.trace, end="", file=sys.stderr)
        raise FarshoreError(message)
