"""`farshore sweep`: all runs of an experiment; stops and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError
from .prepare import use_root

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..engines.engine import Engine
    from ..plan.experiment import Experiment
    from ..plan.plan import Plan
    from ..store.store import Store

SHOWN_FAILURES = 10


def sweep(
    file: Annotated[Path, typer.Argument(help="an experiment, for example experiments/small.yaml")],
    runs: Annotated[
        Path, typer.Option(help="folder of the runs; several sweeps may share it")
    ] = Path("runs"),
    engine: Annotated[
        str, typer.Option(help="local: processes of this machine; ray: a cluster")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="address of a Ray cluster; without it one is started here")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="runs at a time; one a core by default")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    runs_per_gpu: Annotated[
        int | None,
        typer.Option(
            help="runs that share a GPU, with --device cuda; as many as its memory and the cores "
            "bear by default"
        ),
    ] = None,
    benchmarks: Annotated[
        str | None, typer.Option(help="only these benchmarks of the experiment, with commas")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="only these methods of the experiment, with commas")
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            help="random: the paper's search; optuna: steered draws, and trials that fall behind "
            "are stopped"
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="what resnet18 starts from: imagenet (default), a file, or none"),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(help="tiny: embedded data and 2 steps a domain, to see it run through"),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="say how many runs there are, and what they would cost"),
    ] = False,
    keep_states: Annotated[
        bool,
        typer.Option("--keep-states", help="keep the learner's state at the end of every domain"),
    ] = False,
    root: Annotated[
        Path | None, typer.Option(help="folder for data, as given to `farshore prepare`")
    ] = None,
) -> None:
    """Carry out every run of the experiment in FILE that has no result yet, then show the selected
    ones.

    A sweep may be killed at any moment: the same command goes on and repeats at most the domains in
    flight.
    Example: farshore sweep experiments/small.yaml --workers 2
    """
    from ..plan.experiment import check_search, make_book, read_experiment, search_by, start_from
    from ..plan.narrow import narrow
    from ..plan.plan import make_plan
    from ..plan.record import OPTUNA, TINY, record_experiment
    from ..plan.tables import derived, save_table
    from ..plan.tiny import tiny
    from ..store.store import Store
    from .run import check_writable, split_names
    from .tables import make_console

    _check_options(engine, address, workers, device, runs_per_gpu, scale)
    use_root(root)

    def change(found: Experiment) -> Experiment:
        found = found if search is None else search_by(found, check_search(search))
        found = found if weights is None else start_from(found, weights)
        return tiny(found) if scale == "tiny" else found

    whole = change(read_experiment(file))
    ending = (OPTUNA if search == "optuna" else "") + (TINY if scale == "tiny" else "")
    experiment = narrow(whole, split_names(benchmarks), split_names(methods))
    store, book, console = Store(runs), make_book(file, change), make_console()
    if experiment.reads:
        if dry_run:
            _say(
                console,
                f"{experiment.name}: a table of the selected runs of "
                f"{' and '.join(experiment.reads)}; no runs of its own",
            )
            return
        frame = derived(experiment, store, book)
        record_experiment(whole, runs, book, ending=ending)
        _show(console, experiment, frame, save_table(frame, runs, experiment.name))
        return
    plan = make_plan(experiment, store, book, device=device)
    if dry_run:
        _dry_run(console, plan, store, workers)
        return
    check_writable(runs)
    record_experiment(whole, runs, book, ending=ending)
    failed = _carry_out(
        console,
        plan,
        store,
        lambda: _engine(engine, address, workers, device, runs_per_gpu),
        keep_states,
    )
    if failed:
        raise typer.Exit(1)


def _carry_out(
    console: Console, plan: Plan, store: Store, make_engine: Callable[[], Engine], keep_states: bool
) -> bool:
    """The sweep with its progress; whether any run failed."""
    from ..engines.sweep import open_runs
    from ..engines.sweep import sweep as carry_out
    from ..plan.tables import save_table, summary
    from .sweep_progress import SweepProgress

    todo, damaged = open_runs(plan, store)
    for text in damaged:
        _say(console, f"{text}; its run is repeated")
    _say_left_out(console, plan)
    failures: list[str] = []
    if todo:
        try:
            with make_engine() as engine, SweepProgress(console) as shown:
                failures = carry_out(
                    plan, store, engine, todo=todo, keep_states=keep_states, report=shown.report
                ).failures
        except KeyboardInterrupt:
            total = len(plan.unique())
            left = len(open_runs(plan, store)[0])
            _say(
                console,
                f"stopped: {total - left} of {total + plan.ahead} runs are done; the same "
                "command goes on",
            )
            raise typer.Exit(130) from None
    for text in failures[:SHOWN_FAILURES]:
        _say(console, f"failed: {text}")
    if failures:
        _say(console, f"{len(failures)} runs failed; the same command tries them again")
    if plan.runs:
        frame = summary(plan, store)
        _show(console, plan.experiment, frame, save_table(frame, store.runs, plan.experiment.name))
    return bool(failures)


def _dry_run(console: Console, plan: Plan, store: Store, workers: int | None) -> None:
    import os

    from ..engines.sweep import open_runs
    from ..plan.estimate import estimate

    todo, damaged = open_runs(plan, store, discard=False)
    done = len(plan.unique()) - len(todo)
    here = len(todo) + plan.ahead
    bound = "at most " if plan.studies else ""
    absent = sum(count for _, count in plan.absent.values())
    _say(
        console,
        f"{plan.experiment.name}: {bound}{done + here + absent} runs, {done} done, {here} to do "
        "here",
    )
    for text in damaged:
        _say(console, f"{text}; its run will be repeated")
    _say_left_out(console, plan)
    if todo:
        cost = estimate(plan, store, todo)
        at_once = workers or os.cpu_count() or 1
        memory = f", up to {cost.bytes * at_once / 2**30:.1f} GiB of memory" if cost.bytes else ""
        _say(
            console,
            f"about {duration(cost.seconds / at_once)} with {at_once} at a time{memory} (from "
            f"{cost.probed} probes and what is done)",
        )


def _say_left_out(console: Console, plan: Plan) -> None:
    for benchmark, (why, count) in plan.absent.items():
        _say(console, f"{benchmark}: not available here ({why}); {count} runs left out")
    for text in plan.waiting[:SHOWN_FAILURES]:
        _say(console, text)
    if len(plan.waiting) > SHOWN_FAILURES:
        _say(console, f"... and {len(plan.waiting) - SHOWN_FAILURES} more that wait")


def _engine(
    name: str, address: str | None, workers: int | None, device: str, runs_per_gpu: int | None
) -> Engine:
    if name == "ray":
        from ..engines.ray_engine import RayEngine

        return RayEngine(
            address=address, slots=workers, gpu=device == "cuda", runs_per_gpu=runs_per_gpu or 1
        )
    import os

    import torch

    from ..engines.local import LocalEngine
    from ..engines.mps import packed

    gpus = torch.cuda.device_count() if device == "cuda" else 0
    if device == "cuda" and gpus == 0:
        raise FarshoreError("--device cuda: PyTorch finds no GPU here; use --device cpu")
    if gpus:
        return LocalEngine(workers or gpus * (runs_per_gpu or packed(gpus)), gpus=gpus)
    return LocalEngine(workers or os.cpu_count() or 1)


def _check_options(
    engine: str,
    address: str | None,
    workers: int | None,
    device: str,
    runs_per_gpu: int | None,
    scale: str | None,
) -> None:
    if engine not in ("local", "ray"):
        raise FarshoreError(f"--engine {engine} is not allowed: use local or ray")
    if address is not None and engine != "ray":
        raise FarshoreError("--address is that of a Ray cluster: it needs --engine ray")
    for option, value in (("--workers", workers), ("--runs-per-gpu", runs_per_gpu)):
        if value is not None and value < 1:
            raise FarshoreError(f"{option} {value} is not allowed: at least 1")
    if device not in ("cpu", "cuda"):
        raise FarshoreError(f"--device {device} is not allowed: use cpu or cuda")
    if scale not in (None, "tiny"):
        raise FarshoreError(f"--scale {scale} is not allowed: the only scale is tiny")


def _show(console: Console, experiment: Experiment, frame: pd.DataFrame, path: Path) -> None:
    """The table, with scores in percent where the column is a score."""
    from .tables import plain_table

    hidden = {
        "experiment",
        "part",
        "selection",
        "seeds_planned",
        "trials_selected",
        "forgetting",
        "source_train_score",
    }
    columns = [
        name
        for name in frame.columns
        if name not in hidden and not (frame[name].isna() | (frame[name] == "")).all()
    ]
    rows = [[_cell(value) for value in row] for row in frame[columns].itertuples(index=False)]
    console.print(
        plain_table(
            f"{experiment.name}: {experiment.about}",
            [name.replace("_", " ") for name in columns],
            rows,
        )
    )
    _say(console, f"saved in {path}")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4g}"
    return "-" if value is None else str(value)


def duration(seconds: float) -> str:
    """A time in words."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
