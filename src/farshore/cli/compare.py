"""`farshore compare`: methods side by side on one benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError
from .data_options import (
    BenchmarkArgument,
    DomainByFlag,
    DomainFlag,
    DomainsFlag,
    DropFlag,
    GroupFlag,
    LabelFlag,
    NetworkFlag,
    NetworkSetFlag,
    OptionFlag,
    PreprocessFlag,
    SeverityFlag,
    SharedRowsFlag,
    SizeFlag,
    TimeFlag,
    WeightsFlag,
    data_fields,
)

HEADER = [
    "method",
    "rank",
    "unseen target",
    "sources train",
    "sources valid.",
    "BWT",
    "s a run",
    "rows a step",
]
# What stands above the rows that do not rank.
APART = {"offline": "upper bound (offline)", "adaptation": "adapted to the target"}

if TYPE_CHECKING:
    from rich.table import Table

    from ..comparison import Comparison, Row


def compare(
    benchmark: BenchmarkArgument,
    methods: Annotated[
        str,
        typer.Option(
            help="methods and groups, with commas: tailored, naive, adaptation, paper, all, ..."
        ),
    ] = "all",
    seeds: Annotated[int, typer.Option(help="how many run seeds, from 0")] = 3,
    orders: Annotated[
        str,
        typer.Option(
            help="orders of the sources, with commas: listed, reversed, random1, random2, ..., "
            "or names: 45/30/0/15"
        ),
    ] = "listed",
    target: Annotated[
        str | None, typer.Option(help="the unseen domain; the others are sources")
    ] = None,
    scenario_seed: Annotated[int, typer.Option(help="seed of the data")] = 0,
    domain: DomainFlag = None,
    label: LabelFlag = None,
    drop: DropFlag = None,
    time: TimeFlag = None,
    group: GroupFlag = None,
    preprocess: PreprocessFlag = None,
    shared_rows: SharedRowsFlag = None,
    size: SizeFlag = None,
    domain_by: DomainByFlag = None,
    domains: DomainsFlag = None,
    severity: SeverityFlag = None,
    weights: WeightsFlag = None,
    option: OptionFlag = None,
    network: NetworkFlag = None,
    network_set: NetworkSetFlag = None,
    steps: Annotated[int | None, typer.Option(help="training steps per domain")] = None,
    memory: Annotated[
        int | None, typer.Option(help="rows kept of all past domains together")
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", help="a setting of the run, name=value, the same for all methods"),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:0")] = "cpu",
    workers: Annotated[
        int | None, typer.Option(help="runs at a time; one a core by default, one on a GPU")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="folder for comparison.json, .csv and report.html [default: "
            "runs/compare-BENCHMARK]"
        ),
    ] = None,
) -> None:
    """Run every method on BENCHMARK with every seed and order, and rank them by the score on the
    unseen target.

    What learns all sources at once or adapts to the target's inputs stands below, unranked. All
    methods see the same data and the same number of steps; the table shows the rows a step, for
    methods are comparable at equal rows only.
    Example: farshore compare rotated-digits --methods finetune,er,tailored
    """
    from ..comparison import compare as carry_out
    from ..comparison import default_workers, select_methods, select_orders
    from ..protocol import Run
    from ..settings import parse_assignments
    from .progress import RunProgress
    from .run import check_writable, split_names
    from .tables import make_console

    if seeds < 1:
        raise FarshoreError(f"--seeds {seeds} is not allowed: at least 1")
    if workers is not None and workers < 1:
        raise FarshoreError(f"--workers {workers} is not allowed: at least 1")
    chosen = select_methods(split_names(methods) or [])
    data = data_fields(
        benchmark,
        {
            "domain": domain,
            "label": label,
            "drop": drop,
            "time": time,
            "group": group,
            "preprocess": preprocess,
            "shared_rows": shared_rows,
            "size": size,
            "domain_by": domain_by,
            "domains": domains,
            "severity": severity,
            "weights": weights,
        },
        option=option,
        network=network,
        network_set=network_set,
    )
    words = split_names(orders) or []
    # A run without an order has the listed one: domains that are constructed have no other.
    arranged = (
        [None]
        if words == ["listed"]
        else select_orders(
            data["benchmark"], words, target=target, seed=scenario_seed, options=data["options"]
        )
    )
    settings = parse_assignments(set or [])
    runs = [
        Run.build(
            method=method,
            seed=seed,
            scenario_seed=scenario_seed,
            target=target,
            order=order,
            steps=steps,
            memory=memory,
            settings=settings,
            device=device,
            **data,
        )
        for method in chosen
        for order in arranged
        for seed in range(seeds)
    ]
    folder = out if out is not None else Path("runs") / f"compare-{Path(benchmark).name}"
    check_writable(folder)
    console = make_console()
    with RunProgress(console, len(runs)) as progress:
        found = carry_out(
            runs, workers=workers or default_workers(device, len(runs)), done=progress.done
        )
    found.save(folder)
    console.print(table(found, seeds=seeds, orders=len(arranged)))
    if len(arranged) > 1:
        console.print(table_by_order(found))
    page = write_page(folder)
    console.print(
        f"saved in {folder}: comparison.json, "
        f"comparison.csv{', report.html' if page is None else ''}",
        highlight=False,
    )
    if page is not None:
        console.print(page, highlight=False, markup=False, soft_wrap=True)


def write_page(folder: Path) -> str | None:
    """The page of the comparison beside it; where it cannot be made, why: the comparison stands
    without it.
    """
    from ..report.write import write_report

    try:
        write_report(folder / "comparison.json", folder / "report.html")
    except FarshoreError as error:
        return f"no report.html: {error}"
    return None


def table(found: Comparison, *, seeds: int, orders: int) -> Table:
    """The ranked table, unranked rows below and apart; a mean over fewer runs than planned is
    marked.
    """
    from .run import percent
    from .tables import plain_table

    rows: list[list[str]] = []
    kind = "continual"
    for row in found.rows:
        if row.kind != kind:
            kind = row.kind
            rows += [[""] * len(HEADER), [APART[kind], *[""] * (len(HEADER) - 1)]]
        rows.append(
            [
                row.method,
                str(row.rank or "-"),
                target_of(row),
                percent(row.source),
                percent(row.validation),
                percent(row.backward_transfer, sign=True),
                f"{row.seconds:.1f}",
                str(row.rows_per_step),
            ]
        )
    title = (
        f"{found.benchmark}: {found.metric} in %, {seeds} seeds x {orders} orders, mean ± "
        "standard error"
    )
    return plain_table(title, HEADER, rows)


def table_by_order(found: Comparison) -> Table:
    """The target score for each order of the sources, since a mean over orders hides what the
    order does.
    """
    from .tables import plain_table

    orders = found.by_order()
    rows = [
        [row.method, *(target_of(of_order[place]) for of_order in orders.values())]
        for place, row in enumerate(found.rows)
    ]
    return plain_table(
        f"{found.metric} on the unseen target by order of the sources", ["method", *orders], rows
    )


def target_of(row: Row) -> str:
    """Mean ± standard error of the target score; a mean over fewer runs than planned is marked."""
    from .run import percent

    error = f" ± {percent(row.target_error)}" if row.target_error is not None else ""
    return percent(row.target) + error + ("" if row.whole else f" ({row.runs} of {row.planned})")
