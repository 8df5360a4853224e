"""`farshore compare`: compare methods on one benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import FarshoreError
from .compared_tables import print_tables, write_page
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
)
from .prepare import use_root


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
