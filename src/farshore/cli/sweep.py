"""`farshore sweep`: all runs of an experiment; resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError
from .engine_options import (
    AddressOption,
    DeviceOption,
    EngineOption,
    EngineOptions,
    KeepStatesOption,
    RootOption,
    RunsOption,
    RunsPerGpuOption,
    WorkersOption,
    carry_out_plan,
    say,
    say_left_out,
)
from .prepare import use_root

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..plan.experiment import Experiment
    from ..plan.plan import Plan
    from ..store.store import Store


def sweep(
    file: Annotated[Path, typer.Argument(help="an experiment, for example experiments/small.yaml")],
    runs: RunsOption = Path("runs"),
    engine: EngineOption = "local",
    address: AddressOption = None,
    workers: WorkersOption = None,
    device: DeviceOption = "cpu",
    runs_per_gpu: RunsPerGpuOption = None,
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
    keep_states: KeepStatesOption = False,
    root: RootOption = None,
) -> None:
    """Carry out every run of the experiment in FILE that has no result yet, then show the selected
    ones.

    A sweep may be killed at any moment: the same command resumes it and repeats at most the domains
    in flight.
    Example: farshore sweep experiments/small.yaml --workers 2
    """
    from ..plan.experiment import check_search, make_book, read_experiment, search_by, start_from
    from ..plan.narrow import narrow
    from ..plan.plan import check_settings, make_plan
    from ..plan.record import OPTUNA, TINY, record_experiment
    from ..plan.tables import derived, save_table, summary
    from ..plan.tiny import tiny
    from ..store.store import Store
    from .method_groups import method_groups
    from .run import check_writable, split_names
    from .tables import make_console

    options = EngineOptions(engine, address, workers, device, runs_per_gpu)
    if scale not in (None, "tiny"):
        raise FarshoreError(f"--scale {scale} is not allowed: the only scale is tiny")
    use_root(root)

    def change(found: Experiment) -> Experiment:
        found = found if search is None else search_by(found, check_search(search))
        found = found if weights is None else start_from(found, weights)
        return tiny(found) if scale == "tiny" else found

    whole = change(read_experiment(file))
    ending = (OPTUNA if search == "optuna" else "") + (TINY if scale == "tiny" else "")
    experiment = narrow(whole, split_names(benchmarks), split_names(methods), method_groups())
    store, book, console = Store(runs), make_book(file, change), make_console()
    if experiment.reads:
        if dry_run:
            say(
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
    check_settings(plan)
    if dry_run:
        _dry_run(console, plan, store, workers)
        return
    check_writable(runs, "--runs")
    record_experiment(whole, runs, book, ending=ending)
    failed = carry_out_plan(console, plan, store, options, keep_states=keep_states)
    if plan.runs:
        frame = summary(plan, store)
        _show(console, experiment, frame, save_table(frame, runs, experiment.name))
    if failed:
        raise typer.Exit(1)


def _dry_run(console: Console, plan: Plan, store: Store, workers: int | None) -> None:

    from ..engines.carry_out import open_runs
    from ..plan.estimate import estimate
    from .plan_progress import duration

    todo, damaged = open_runs(plan, store, discard=False)
    done = len(plan.unique()) - len(todo)
    here = len(todo) + plan.ahead
    bound = "at most " if plan.studies else ""
    absent = sum(each.runs for each in plan.absent.values())
    say(
        console,
        f"{plan.name}: {bound}{done + here + absent} runs, {done} done, {here} to do here",
    )
    for text in damaged:
        say(console, f"{text}; its run will be repeated")
    say_left_out(console, plan)
    if todo:
        cost = estimate(plan, store, todo)
        at_once = workers or plan.runs_at_once()
        memory = f", up to {cost.bytes * at_once / 2**30:.1f} GiB of memory" if cost.bytes else ""
        say(
            console,
            f"about {duration(cost.seconds / at_once)} with {at_once} at a time{memory} (from "
            f"{cost.probed} probes and what is done)",
        )


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
    say(console, f"saved in {path}")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4g}"
    return "-" if value is None else str(value)
