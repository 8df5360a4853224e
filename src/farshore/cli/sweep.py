"""`farshore sweep`: carry out all runs of an experiment; resumable."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from ..errors import FarshoreError
from . import engine_options
from .flags import argument, command, flag, split_names

# Columns of the saved table that the terminal leaves out.
HIDDEN = (
    *("experiment", "part", "selection", "seeds_planned", "trials_selected", "forgetting"),
    "source_train_score",
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..runs.plan.experiment import Experiment
    from ..runs.plan.plan import Plan
    from ..runs.store.store import Store


@dataclass(frozen=True)
class ChangeOptions:
    """Which part of an experiment is carried out, and what is changed in it."""

    heading: ClassVar = "Changes to the experiment"

    benchmarks: str | None = flag("only these benchmarks of the experiment, comma-separated")
    methods: str | None = flag("only these methods of the experiment, comma-separated")
    search: str | None = flag(
        "random: the paper's search; optuna: guided search that stops unpromising trials early"
    )
    weights: str | None = flag(
        "initial weights of resnet18: imagenet, a file, or none [default: imagenet]"
    )
    scale: str | None = flag("tiny: a quick trial with embedded data and 2 steps per domain")

    def __post_init__(self) -> None:
        if self.scale not in (None, "tiny"):
            raise FarshoreError(f"--scale {self.scale} is not allowed: the only scale is tiny")

    def change(self, experiment: "Experiment") -> "Experiment":
        """The experiment with another search, other weights or at another scale."""
        from ..runs.plan.experiment import check_search, search_by, start_from, with_forms
        from ..runs.plan.narrow import tiny

        if self.search is not None:
            experiment = search_by(experiment, check_search(self.search))
        if self.weights is not None:
            experiment = start_from(experiment, self.weights)
        return with_forms(tiny(experiment) if self.scale == "tiny" else experiment)

    def narrow(self, experiment: "Experiment") -> "Experiment":
        """The part of the experiment that is carried out."""
        from ..runs.plan.narrow import narrow
        from .method_groups import method_groups

        benchmarks, methods = split_names(self.benchmarks), split_names(self.methods)
        return narrow(experiment, benchmarks, methods, method_groups())

    @property
    def ending(self) -> str:
        """What the name of the changed experiment's record ends with."""
        from ..runs.store.store import OPTUNA, TINY

        return (OPTUNA if self.search == "optuna" else "") + (TINY if self.scale else "")


@command
def sweep(
    file: Path = argument("experiment, for example reproduction/experiments/small.yaml"),
    *,
    runs: Path = flag(engine_options.RUNS, Path("runs")),
    engine: engine_options.EngineOptions,
    changes: ChangeOptions,
    network: list[str] | None = flag(
        "module.py:factory, needed if the experiment names this file of your own, repeatable: "
        "reading an experiment never runs code that it names"
    ),
    dry_run: bool = flag("print the number of runs and their estimated cost", False),
    done: Path | None = flag(
        "table of runs that are done elsewhere, as `farshore results` writes it: they are left out"
    ),
    keep: engine_options.KeepOptions,
    root: Path | None = flag(engine_options.ROOT),
) -> None:
    """Carry out all runs of the experiment in FILE; resumable.

    Runs that have a result are not repeated. At the end, a table shows the selected runs. A sweep
    may be killed at any time: the same command resumes it and repeats at most the domains that were
    in progress.

    Example: farshore sweep reproduction/experiments/small.yaml --workers 2
    """
    from ..base.files import check_writable
    from ..data.tables.read_table import read_table
    from ..results.collect import planned_frame
    from ..results.experiment_table import derived_table, experiment_table
    from ..runs.plan.experiment import make_book, read_experiment
    from ..runs.plan.plan import make_plan
    from ..runs.store.store import Store, record_experiment
    from .ranking import print_results
    from .tables import make_console

    engine_options.use_root(root)
    own = network or ()
    whole = changes.change(read_experiment(file, own))
    experiment = changes.narrow(whole)
    store, book, console = Store(runs), make_book(file, changes.change, own), make_console()
    if experiment.reads:
        if dry_run:
            what = f"a table of the selected runs of {' and '.join(experiment.reads)}"
            line = f"{experiment.name}: {what}; no runs of its own"
            engine_options.print_line(console, line)
            return
        frame = derived_table(experiment, store, book)
        record_experiment(whole, runs, book, ending=changes.ending)
        _print_frame(console, experiment, frame)
        if not _show(console, experiment, frame, runs):
            raise typer.Exit(1)
        return
    plan = make_plan(experiment, store, book, device=engine.chosen_device)
    if done is not None:
        elsewhere = read_table(done, texts=["run"])
        if "run" not in elsewhere:
            why = "has no column `run`: give a table that `farshore results` wrote"
            raise FarshoreError(f"--done {str(done)!r} {why}")
        names = set(elsewhere["run"])
        plan.runs = [planned for planned in plan.runs if planned.name not in names]
    if dry_run:
        _dry_run(console, plan, store, engine.workers)
        return
    check_writable(runs, "--runs")
    record_experiment(whole, runs, book, ending=changes.ending)
    failed = engine_options.carry_out_plan(console, plan, store, engine, keep)
    if plan.runs and done is None:  # a table without the runs that are elsewhere would mislead
        selected = planned_frame(plan, runs)
        frame = experiment_table(plan, selected)
        failed |= not _show(console, experiment, frame, runs)
        if experiment.ranked and selected["score"].notna().any():
            print_results(console, selected, experiment, runs)
        else:
            _print_frame(console, experiment, frame)
    if failed:
        raise typer.Exit(1)


def _dry_run(console: "Console", plan: "Plan", store: "Store", workers: int | None) -> None:

    from ..runs.engines.carry_out import open_runs
    from ..runs.plan.estimate import estimate
    from .plan_progress import duration

    todo, damaged = open_runs(plan, store, discard=False)
    done = len(plan.unique()) - len(todo)
    to_do = len(todo) + plan.ahead
    bound = "at most " if plan.studies else ""
    absent = sum(missing.runs for missing in plan.absent.values())
    counts = f"{bound}{done + to_do + absent} runs, {done} done, {to_do} to do here"
    engine_options.print_line(console, f"{plan.name}: {counts}")
    for text in damaged:
        engine_options.print_line(console, f"{text}; its run will be repeated")
    engine_options.print_left_out(console, plan)
    if todo:
        cost = estimate(plan, store, todo)
        at_once = workers or plan.runs_at_once()
        memory = f", up to {cost.bytes * at_once / 2**30:.1f} GiB of memory" if cost.bytes else ""
        engine_options.print_line(
            console,
            f"about {duration(cost.seconds / at_once)} with {at_once} at a time{memory} (estimated "
            f"from {cost.probed} probes and the finished runs)",
        )


def _show(console: "Console", experiment: "Experiment", frame: "pd.DataFrame", runs: Path) -> bool:
    """Save the table and print where; return whether it could be saved."""
    from ..results.experiment_table import save_table

    try:
        engine_options.print_line(console, f"saved in {save_table(frame, runs, experiment.name)}")
    except FarshoreError as error:
        engine_options.print_line(console, f"the table is not saved: {error}")
        return False
    return True


def _print_frame(console: "Console", experiment: "Experiment", frame: "pd.DataFrame") -> None:
    """Print a table of other numbers than target scores, best first."""
    from .tables import plain_table

    shown = frame.drop(columns=[name for name in HIDDEN if name in frame])
    empty = [name for name in shown if (shown[name].isna() | (shown[name] == "")).all()]
    shown = shown.drop(columns=empty)
    numbers = [name for name in shown.columns if shown[name].dtype.kind == "f"]
    if numbers:
        ascending = "seconds" in numbers[0]  # also milliseconds
        shown = shown.sort_values(["benchmark", numbers[0]], ascending=[True, ascending])
    columns = {}
    for name in shown.columns:
        if name.endswith("_standard_error") and name.removesuffix("_standard_error") in shown:
            continue
        share = "seconds" not in name and name in numbers
        errors = shown.get(f"{name}_standard_error", [None] * len(shown))
        cells = [_cell(*pair, share=share) for pair in zip(shown[name], errors, strict=True)]
        columns[name.replace("_", " ") + (", %" if share else "")] = cells
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    console.print(plain_table(f"{experiment.name}: {experiment.about}", [*columns], rows))


def _cell(value: object, error: object, *, share: bool) -> str:
    if value is None or value != value:
        return "-"
    if not isinstance(value, float):
        return str(value)
    text = f"{100 * value:.1f}" if share else f"{value:.4g}"
    if isinstance(error, float) and error == error:
        text += f" ± {100 * error:.1f}" if share else f" ± {error:.2g}"
    return text
