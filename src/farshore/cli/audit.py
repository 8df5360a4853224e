"""`farshore audit`: what to expect at a new site, and which method to use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError
from .data_options import (
    BenchmarkArgument,
    CategoriesFlag,
    ClassesFlag,
    DecimalFlag,
    DomainFlag,
    DropFlag,
    EncodingFlag,
    GroupFlag,
    ImageFlag,
    LabelFlag,
    MetricFlag,
    NetworkFlag,
    NetworkSetFlag,
    OptionFlag,
    PreprocessFlag,
    SeparatorFlag,
    SharedRowsFlag,
    SizeFlag,
    SkipBrokenFlag,
    TimeFlag,
    TimeFormatFlag,
    TrainFlag,
    WeightFlag,
    WeightsFlag,
    data_fields,
)
from .engine_options import (
    DeviceOption,
    EngineOptions,
    RootOption,
    RunsOption,
    WorkersOption,
    carry_out_plan,
    print_line,
)
from .prepare import use_root

if TYPE_CHECKING:
    from rich.console import Console

    from ..auditing.audit import Audit

# Options of the other commands that an audit does not have.
NOT_GIVEN = dict.fromkeys(("domain_by", "domains", "severity"))


def audit(
    benchmark: BenchmarkArgument,
    domain: DomainFlag = None,
    label: LabelFlag = None,
    drop: DropFlag = None,
    time: TimeFlag = None,
    time_format: TimeFormatFlag = None,
    group: GroupFlag = None,
    categories: CategoriesFlag = None,
    weight: WeightFlag = None,
    separator: SeparatorFlag = None,
    encoding: EncodingFlag = None,
    decimal: DecimalFlag = None,
    preprocess: PreprocessFlag = None,
    metric: MetricFlag = None,
    classes: ClassesFlag = None,
    shared_rows: SharedRowsFlag = None,
    image: ImageFlag = None,
    size: SizeFlag = None,
    skip_broken: SkipBrokenFlag = False,
    weights: WeightsFlag = None,
    option: OptionFlag = None,
    network: NetworkFlag = None,
    network_set: NetworkSetFlag = None,
    train: TrainFlag = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="candidates, comma-separated [default: finetune, er, cl-coral, cl-fishr, ridge, "
            "trees, best, and slda for images on a frozen network]; majority and joint are always "
            "added for reference"
        ),
    ] = None,
    orders: Annotated[
        str | None,
        typer.Option(
            help="orders of the sources, as for compare [default: listed,reversed; with --time "
            "chronological]"
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="number of run seeds, counted from 0")] = 1,
    steps: Annotated[int | None, typer.Option(help="training steps per domain")] = None,
    memory: Annotated[
        int | None, typer.Option(help="rows kept from all past domains together")
    ] = None,
    runs: RunsOption = Path("runs"),
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="page to write [default: RUNS/audit-NAME.html]"),
    ] = None,
    workers: WorkersOption = None,
    device: DeviceOption = "auto",
    root: RootOption = None,
) -> None:
    """Say what to expect at a new site, and which method to use.

    Every site (domain) is left out in turn and predicted by models that never saw it. The answers
    are printed and written to a page, with a JSON file next to it: the expected score with an
    interval, the method to use and how certain that choice is, sensitivity and specificity,
    calibration, the site that is unlike the others, what forgetting and the order cost, and whether
    more sites would help. Runs that are already in the folder are not repeated, and the same
    command resumes an audit that was stopped.

    Example: farshore audit heart.csv --domain hospital --label num
    """
    arguments = locals() | NOT_GIVEN
    from ..auditing.audit import carry_out_audit
    from ..base.files import check_writable
    from ..benchmarks.source import make_benchmark
    from ..methods.optimization import choose_device
    from ..runs.plan.plan import Plan
    from ..runs.plan.select import select_methods
    from ..runs.store.store import Store
    from .method_groups import method_groups
    from .run import split_names
    from .tables import make_console

    use_root(root)
    device = choose_device(device)
    if seeds < 1:
        raise FarshoreError(f"--seeds {seeds} is not allowed: give at least 1")
    data, console = data_fields(arguments), make_console()
    title = make_benchmark(data["benchmark"], data["options"]).title
    page = out or runs / f"audit-{title}.html"
    if page.suffix != ".html":
        raise FarshoreError(f"--out {str(page)!r} is not allowed: end it in .html")
    check_writable(page.parent, "--out" if out is not None else "--runs")
    named = split_names(methods)
    candidates = None if named is None else select_methods(named, method_groups())
    options = EngineOptions(workers=workers, device=device)

    def perform(plan: Plan, store: Store) -> None:
        carry_out_plan(console, plan, store, options, keep_states=False)

    done = carry_out_audit(
        data,
        candidates,
        store=Store(runs),
        perform=perform,
        device=device,
        orders=split_names(orders),
        seeds=seeds,
        steps=steps,
        memory=memory,
        settings={"train": train} if train is not None else {},
    )
    print_answers(console, done)
    print_line(console, write_findings(done, page))


def print_answers(console: Console, done: Audit) -> None:
    """Print the verdict, then each question with its answer."""
    console.print(f"\n{done.verdict}\n", highlight=False)
    for question, text in done.answers.items():
        console.print(question, style="bold", highlight=False)
        console.print(f"{text}\n", highlight=False)


def write_findings(done: Audit, page: Path) -> str:
    """Write the page, and the numbers next to it; return where they are."""
    numbers = done.report(page.with_suffix(".json"))
    try:
        return f"the page is {done.report(page)}, the numbers are {numbers}"
    except FarshoreError as error:
        return f"the numbers are {numbers}; {error}"
