"""`farshore compare`: compare methods on one benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import FarshoreError
from .data_options import (
    BenchmarkArgument,
    CategoriesFlag,
    ClassesFlag,
    DecimalFlag,
    DomainByFlag,
    DomainFlag,
    DomainsFlag,
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
    SeverityFlag,
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
    print_line,
)
from .prepare import use_root

HEADER = [
    "method",
    "rank",
    "unseen target",
    "sources train",
    "sources valid.",
    "BWT",
    "s per run",
    "rows per step",
]
# A table with a column per order has at most this many columns.
MOST_COLUMNS = 4
ONE_ORDER = (
    "these results are for one order of the sources ({order}). Another order may rank the methods "
    "differently: compare with --orders all or --orders balanced:k"
)
IN_TIME = (
    "every target was predicted from the domains before it, in chronological order; later domains "
    "were left out"
)
# Headings above the rows that are not ranked.
UNRANKED = {
    "offline": "upper bound (offline)",
    "adaptation": "adapted to the target",
    "reference": "for reference",
}

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..evaluation.over_units import Scores
    from ..plan.plan import Plan
    from ..protocol import Result
    from ..store.ranking import Standing


def compare(
    benchmark: BenchmarkArgument,
    methods: Annotated[
        str,
        typer.Option(
            help="methods and groups, comma-separated: tailored, naive, adaptation, paper, all, ..."
        ),
    ] = "all",
    seeds: Annotated[int, typer.Option(help="number of run seeds, counted from 0")] = 3,
    orders: Annotated[
        str,
        typer.Option(
            help="orders of the sources, comma-separated: listed, reversed, random1, random2, ..., "
            "all, balanced:8 (each source equally often in every position), or names: 45/30/0/15"
        ),
    ] = "listed",
    target: Annotated[
        str | None,
        typer.Option(
            help="the unseen domain; the others are sources. each: every domain in turn (with "
            "--time: every domain from the third on, learned from those before it) [default: the "
            "benchmark's own; each for your own data]"
        ),
    ] = None,
    scenario_seed: Annotated[int, typer.Option(help="seed of the data")] = 0,
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
    domain_by: DomainByFlag = None,
    domains: DomainsFlag = None,
    severity: SeverityFlag = None,
    weights: WeightsFlag = None,
    option: OptionFlag = None,
    network: NetworkFlag = None,
    network_set: NetworkSetFlag = None,
    train: TrainFlag = None,
    steps: Annotated[int | None, typer.Option(help="training steps per domain")] = None,
    memory: Annotated[
        int | None, typer.Option(help="rows kept of all past domains together")
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", help="a setting of the run, name=value, the same for all methods"),
    ] = None,
    runs: RunsOption = Path("runs"),
    engine: EngineOption = "local",
    address: AddressOption = None,
    workers: WorkersOption = None,
    device: DeviceOption = "auto",
    runs_per_gpu: RunsPerGpuOption = None,
    keep_states: KeepStatesOption = False,
    root: RootOption = None,
) -> None:
    """Rank methods on BENCHMARK by their unseen-target score.

    Every method runs with every seed and every order of the sources. Runs that are already in the
    folder are not repeated, and the same command resumes a comparison that was stopped.

    With --target each, every domain is left out in turn, and every target counts once: the mean,
    its error and the paired differences are computed over targets.

    All methods see the same data and take the same number of steps. Compare only methods with equal
    rows per step. Methods that learn all sources at once, or adapt to the target's inputs, are
    listed below the others without a rank.

    Example: farshore compare rotated-digits --methods finetune,er,tailored
    """
    arguments = locals()
    from ..optimization import choose_device
    from ..plan.comparison import make_comparison, plan_comparison
    from ..plan.select import select_methods
    from ..settings import parse_assignments
    from ..store.store import Store
    from .method_groups import method_groups
    from .run import split_names
    from .tables import make_console

    device = choose_device(device)
    options = EngineOptions(engine, address, workers, device, runs_per_gpu)
    use_root(root)
    if seeds < 1:
        raise FarshoreError(f"--seeds {seeds} is not allowed: give at least 1")
    data = data_fields(arguments)
    comparison = make_comparison(
        data,
        select_methods(split_names(methods) or [], method_groups()),
        seeds=range(seeds),
        orders=split_names(orders) or [],
        scenario_seed=scenario_seed,
        target=target,
        steps=steps,
        memory=memory,
        settings={
            **parse_assignments(set or []),
            **({"train": train} if train is not None else {}),
        },
    )
    store, console = Store(runs), make_console()
    plan = plan_comparison(comparison, store, device=device)
    failed = carry_out_plan(console, plan, store, options, keep_states=keep_states)
    results = [store.read(name) for name in plan.unique() if store.folder(name).finished()]
    if results:
        print_tables(console, results, plan)
        count = "1 run" if len(results) == 1 else f"{len(results)} runs"
        print_line(console, f"{count} in {runs}; {write_page(runs, plan.name)}")
    if failed:
        raise typer.Exit(1)


def print_tables(console: Console, results: Sequence[Result], plan: Plan) -> None:
    """Print the ranked table, then what several targets or several orders show."""
    from collections import Counter

    from ..benchmarks.source import make_benchmark
    from ..evaluation.over_units import FEWEST_UNITS
    from ..report.names import several

    runs = [(planned.condition, planned.run) for planned in plan.unique().values()]
    targets = {condition.target for condition, _ in runs} - {""}
    # Several targets have several sources: the orders of the first one count.
    orders = {run.order for condition, run in runs if condition.target == runs[0][0].target}
    seeds = len({run.seed for _, run in runs})
    counts = [f"{several(seeds, 'seed')} x {several(len(orders), 'order')}"]
    counts += [f"{len(targets)} targets, mean ± standard error over targets"] if targets else []
    counts += [] if targets else ["mean ± standard error"]
    planned = Counter(run.method for _, run in runs)
    console.print(table(results, planned, ", ".join(counts)))
    if targets:
        console.print(table_over_units(results, "target"))
        console.print(table_by_target(results))
    elif len(orders) >= FEWEST_UNITS:
        console.print(table_over_units(results, "order"))
    if not targets and 1 < len(orders) <= MOST_COLUMNS:
        console.print(table_by_order(results))
    if len(orders) == 1:
        order = "one per target" if targets else " -> ".join(results[0].sources)
        run = results[0].run
        in_time = make_benchmark(run.benchmark, run.options).ordered_by_time
        print_line(console, IN_TIME if targets and in_time else ONE_ORDER.format(order=order))


def write_page(runs: Path, name: str) -> str:
    """Write the comparison's page to the store; return where it is, or why there is none."""
    from ..report.write import write_report

    path = runs / f"{name}.html"
    try:
        write_report(runs, path, experiment=name)
    except FarshoreError as error:
        return f"no {path.name}: {error}"
    return f"the page is {path}"


def table(results: Sequence[Result], planned: Mapping[str, int], counts: str) -> Table:
    """The ranked rows, then the unranked ones under headings of their own."""
    from ..store.ranking import rank
    from .run import percent
    from .tables import plain_table

    rows: list[list[str]] = []
    kind = "continual"
    for standing in rank(results, planned):
        if standing.kind != kind:
            kind = standing.kind
            rows += [[""] * len(HEADER), [UNRANKED[kind], *[""] * (len(HEADER) - 1)]]
        rows.append(
            [
                standing.method,
                str(standing.rank or "-"),
                target_cell(standing),
                percent(standing.source),
                percent(standing.validation),
                percent(standing.backward_transfer, sign=True),
                f"{standing.seconds:.1f}",
                str(standing.rows_per_step),
            ]
        )
    title = f"{results[0].title}: {results[0].metric} in %, {counts}"
    return plain_table(title, HEADER, rows)


def table_over_units(results: Sequence[Result], unit: Literal["target", "order"]) -> Table:
    """Mean over targets or orders, the worst one, and the paired difference from a reference."""
    from ..evaluation.over_units import over_units, paired_difference
    from ..store.ranking import choose_reference, rank, scores_by_order, scores_by_target
    from .run import percent
    from .tables import plain_table

    scores: Mapping[str, Scores] = (
        scores_by_target(results) if unit == "target" else scores_by_order(results)
    )
    methods = [standing.method for standing in rank(results) if standing.method in scores]
    reference = choose_reference(methods)
    rows = []
    for method in methods:
        summary = over_units(scores[method])
        difference = paired_difference(scores[method], scores[str(reference)])
        if summary is None:
            continue
        error = f" ± {percent(summary.error)}" if summary.error is not None else ""
        cells = [
            method,
            percent(summary.mean) + error,
            percent(summary.worst),
            " ".join(summary.worst_unit),
            percent(summary.best),
        ]
        if difference is not None and method != reference:
            interval = (
                f" [{percent(difference.low, sign=True)}, {percent(difference.high, sign=True)}]"
            )
            cells += [
                percent(difference.mean, sign=True) + (interval if difference.units > 1 else ""),
                f"{difference.won} of {difference.units}",
            ]
        rows.append([*cells, *[""] * (7 - len(cells))])
    over, where = (
        ("targets", "at the target") if unit == "target" else ("orders of the sources", "in order")
    )
    return plain_table(
        f"over the {over}: {results[0].metric} on the unseen target in %, paired difference from "
        f"{reference} with 95% interval over the {unit}s",
        ["method", "mean", "worst", where, "best", f"minus {reference}", "better in"],
        rows,
    )


def table_by_target(results: Sequence[Result]) -> Table:
    """A row per target with the scores of the best methods; a mean would hide a bad site."""
    from ..evaluation.averages import mean
    from ..store.ranking import rank, scores_by_target
    from .run import percent
    from .tables import plain_table

    scores = scores_by_target(results)
    methods = [standing.method for standing in rank(results) if standing.method in scores]
    rows_at = {
        (result.target.name,): result.target.rows for result in results if result.target is not None
    }
    shown = methods[: 2 * MOST_COLUMNS]
    rows = [
        [
            " ".join(target),
            str(rows_at[target]),
            *(percent(mean(list(scores[name].get(target, {}).values()))) for name in shown),
        ]
        for target in rows_at
    ]
    left = "" if shown == methods else f", the best {len(shown)} of {len(methods)} methods"
    return plain_table(
        f"{results[0].metric} on each unseen target in %{left}", ["target", "rows", *shown], rows
    )


def table_by_order(results: Sequence[Result]) -> Table:
    """The target score for each order of the sources; a mean would hide the order's effect."""
    from ..store.ranking import rank, rank_by_order
    from .tables import plain_table

    by_order = rank_by_order(results)
    rows = []
    for method in [standing.method for standing in rank(results)]:
        of_method = (
            next((standing for standing in standings if standing.method == method), None)
            for standings in by_order.values()
        )
        cells = ("-" if standing is None else target_cell(standing) for standing in of_method)
        rows.append([method, *cells])
    return plain_table(
        f"{results[0].metric} on the unseen target by order of the sources",
        ["method", *by_order],
        rows,
    )


def target_cell(standing: Standing) -> str:
    """Mean ± standard error of the target score; a mean over fewer runs than planned is marked."""
    from .run import percent

    error = f" ± {percent(standing.target_error)}" if standing.target_error is not None else ""
    incomplete = "" if standing.whole else f" ({standing.runs} of {standing.planned})"
    return percent(standing.target) + error + incomplete
