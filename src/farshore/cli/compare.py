"""`farshore compare`: compare methods on one benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    LogOption,
    RootOption,
    RunsOption,
    RunsPerGpuOption,
    WorkersOption,
    carry_out_plan,
    check_log,
    print_line,
)
from .prepare import use_root

# A table with a column per order has at most this many columns.
MOST_COLUMNS = 4
IN_TIME = (
    "every target was predicted from the domains before it, in chronological order; later domains "
    "were left out"
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..results.ranking import Standing
    from ..runs.plan.plan import Plan
    from ..runs.result import Result


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
            help="the unseen domain; the others are sources. each:75/0: these in turn. each: every "
            "domain in turn (with --time: every domain from the third on, learned from those "
            "before it) [default: the benchmark's own; each for your own data]"
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
        int | None, typer.Option(help="rows kept from all past domains together")
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
    log: LogOption = None,
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
    from ..methods.optimization import choose_device
    from ..runs.plan.comparison import make_comparison, plan_comparison
    from ..runs.plan.select import select_methods
    from ..runs.store.store import Store
    from ..settings import parse_assignments
    from .method_groups import method_groups
    from .run import split_names
    from .tables import make_console

    device = choose_device(device)
    options = EngineOptions(engine, address, workers, device, runs_per_gpu)
    check_log(log)
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
    failed = carry_out_plan(console, plan, store, options, keep_states=keep_states, log=log)
    results = [store.read(name) for name in plan.unique() if store.folder(name).finished()]
    if results:
        page = write_page(runs, plan.name)
        count = "1 run" if len(results) == 1 else f"{len(results)} runs"
        print_tables(console, results, plan, runs, f"{count} in {runs}; {page}")
    if failed:
        raise typer.Exit(1)


def print_tables(
    console: Console, results: Sequence[Result], plan: Plan, runs: Path, where: str
) -> None:
    """Print the ranking, what several targets or orders show, the verdict and the next command.

    where: a line that says where the runs and the page are.
    """
    from ..report.contest import Observed, make_contest
    from ..report.names import several
    from ..report.next_step import next_step
    from ..report.overlay import NO_OVERLAY
    from ..report.verdict import judge
    from .ranked import print_next, print_ranking, print_verdict

    planned = [(each.condition, each.run) for each in plan.unique().values()]
    targets = {condition.target for condition, _ in planned} - {""}
    # Several targets have several sources: the orders of the first one count.
    orders = {run.order for condition, run in planned if condition.target == planned[0][0].target}
    seeds = len({run.seed for _, run in planned})
    counts = [f"{several(seeds, 'seed')} x {several(len(orders), 'order')}"]
    counts += [f"{len(targets)} targets"] if targets else []
    contest = make_contest(
        [Observed(result.run.method, "", result.run.seed, result) for result in results],
        NO_OVERLAY,
        whole=len(results) == len(planned),
    )
    if contest is None:
        print_line(console, "no run has a score on the target: all of them diverged")
        print_line(console, where)
        return
    verdict = judge(contest)
    metric = results[0].metric
    title = f"{results[0].title}: {metric} on the unseen target in %, {', '.join(counts)}"
    print_ranking(console, contest, verdict, title, further=_further(results))
    if targets:
        console.print(table_by_target(results))
    elif 1 < len(orders) <= MOST_COLUMNS:
        console.print(table_by_order(results))
    if targets and _in_time(results[0]):
        print_line(console, IN_TIME)
    print_verdict(console, contest, verdict)
    print_line(console, where)
    print_next(console, *next_step(contest, verdict, plan.experiment, runs))


def _in_time(result: Result) -> bool:
    from ..benchmarks.source import make_benchmark

    return make_benchmark(result.run.benchmark, result.run.options).ordered_by_time


def _further(results: Sequence[Result]) -> dict[str, dict[str, str]]:
    """The columns that a narrow terminal leaves out, by method."""
    from ..results.ranking import rank
    from .run import percent

    standings = rank(results)
    return {
        "sources train": {each.method: percent(each.source) for each in standings},
        "sources valid.": {each.method: percent(each.validation) for each in standings},
        "BWT": {each.method: percent(each.backward_transfer, sign=True) for each in standings},
        "s per run": {each.method: f"{each.seconds:.1f}" for each in standings},
        "rows per step": {each.method: str(each.rows_per_step) for each in standings},
    }


def write_page(runs: Path, name: str) -> str:
    """Write the comparison's page to the store; return where it is, or why there is none."""
    from ..report.write import write_report

    path = runs / f"{name}.html"
    try:
        write_report(runs, path, experiment=name)
    except FarshoreError as error:
        return f"no {path.name}: {error}"
    return f"the page is {path}"


def table_by_target(results: Sequence[Result]) -> Table:
    """A row per target with the scores of the best methods; a mean would hide a bad site."""
    from ..results.ranking import rank, scores_by_target
    from ..runs.averages import mean
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
    from ..results.ranking import rank, rank_by_order
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
