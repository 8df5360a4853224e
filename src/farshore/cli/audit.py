"""`farshore audit`: what to expect at a new site, and which method to take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError
from .data_options import (
    BenchmarkArgument,
    CategoriesFlag,
    DomainFlag,
    DropFlag,
    GroupFlag,
    LabelFlag,
    NetworkFlag,
    NetworkSetFlag,
    OptionFlag,
    PreprocessFlag,
    SharedRowsFlag,
    SizeFlag,
    TimeFlag,
    TimeFormatFlag,
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

    from ..audit.findings import Findings

# Options of the other commands that an audit does not have.
NOT_GIVEN = dict.fromkeys(("domain_by", "domains", "severity", "weights"))


def audit(
    benchmark: BenchmarkArgument,
    domain: DomainFlag = None,
    label: LabelFlag = None,
    drop: DropFlag = None,
    time: TimeFlag = None,
    time_format: TimeFormatFlag = None,
    group: GroupFlag = None,
    categories: CategoriesFlag = None,
    preprocess: PreprocessFlag = None,
    shared_rows: SharedRowsFlag = None,
    size: SizeFlag = None,
    option: OptionFlag = None,
    network: NetworkFlag = None,
    network_set: NetworkSetFlag = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="candidates, comma-separated [default: finetune, er, cl-coral, cl-fishr, ridge, "
            "trees, best]; majority and joint are always added for reference"
        ),
    ] = None,
    orders: Annotated[
        str | None,
        typer.Option(
            help="orders of the sources, as for compare [default: listed,reversed; with --time "
            "the order of time]"
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="number of run seeds, counted from 0")] = 1,
    steps: Annotated[int | None, typer.Option(help="training steps per domain")] = None,
    memory: Annotated[
        int | None, typer.Option(help="rows kept of all past domains together")
    ] = None,
    runs: RunsOption = Path("runs"),
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="page to write [default: RUNS/audit-NAME.html]"),
    ] = None,
    workers: WorkersOption = None,
    device: DeviceOption = "cpu",
    root: RootOption = None,
) -> None:
    """Say what to expect at a new site, and which method to take.

    Every site (domain) is left out in turn and predicted by models that never saw it. The answers
    are printed, written as a page, and as JSON beside it: the expected score with an interval, the
    method to take and how sure that is, sensitivity and specificity, calibration, the site that is
    unlike the others, what forgetting and the order cost, and whether more sites would help. Runs
    that are already in the folder are not repeated, and the same command resumes.

    Example: farshore audit heart.csv --domain hospital --label num
    """
    arguments = locals() | NOT_GIVEN
    from ..audit.candidates import plan_audit, usual_methods
    from ..audit.findings import check_enough, find_all
    from ..audit.sites import compare_sites, read_sites
    from ..audit.words import too_few
    from ..benchmarks.source import make_benchmark
    from ..files import check_writable
    from ..plan.comparison import record_comparison
    from ..plan.experiment import make_book
    from ..plan.plan import make_plan
    from ..plan.select import select_methods
    from ..store.store import Store
    from .method_groups import method_groups
    from .run import split_names
    from .tables import make_console

    use_root(root)
    if seeds < 1:
        raise FarshoreError(f"--seeds {seeds} is not allowed: give at least 1")
    data, console = data_fields(arguments), make_console()
    chosen = make_benchmark(data["benchmark"], data["options"])
    page = out or runs / f"audit-{chosen.title}.html"
    if page.suffix != ".html":
        raise FarshoreError(f"--out {str(page)!r} is not allowed: end it in .html")
    targets = list(chosen.each_target())
    sites = read_sites(data["benchmark"], data["options"])
    few = check_enough(chosen.title, sites.counts, targets)
    if few is not None:
        for sentence in too_few(few):
            print_line(console, sentence)
        check_writable(page.parent, "--out")
        write_json(page, few.plain())
        return
    candidates = (
        select_methods(split_names(methods) or [], method_groups())
        if methods is not None
        else usual_methods(chosen)
    )
    experiment = plan_audit(
        data,
        chosen,
        candidates,
        orders=split_names(orders),
        seeds=seeds,
        steps=steps,
        memory=memory,
    )
    store = Store(runs)
    plan = make_plan(experiment, store, make_book(runs / "none.yaml"), device=device)
    for absent in plan.absent.values():
        raise FarshoreError(f"{benchmark} is not available here: {absent.why}")
    check_writable(runs, "--runs")
    plan.experiment = record_comparison(experiment, runs)
    options = EngineOptions(workers=workers, device=device)
    failed = carry_out_plan(console, plan, store, options, keep_states=False)
    results = [store.read(name) for name in plan.unique() if store.folder(name).finished()]
    if failed or len(results) < len(plan.unique()):
        raise FarshoreError(
            f"{len(plan.unique()) - len(results)} of {len(plan.unique())} runs have no result, and "
            "an audit needs all of them: the same command tries them again"
        )
    findings = find_all(results, compare_sites(sites), in_time=chosen.ordered_by_time)
    print_answers(console, findings)
    print_line(console, write_page(findings, page))


def print_answers(console: Console, findings: Findings) -> None:
    """Print the verdict, then each question with its answer."""
    from ..audit.words import answers, verdict

    console.print(f"\n{verdict(findings)}\n", highlight=False)
    for answer in answers(findings):
        console.print(f"{answer.question}", style="bold", highlight=False)
        console.print(f"  {answer.text}\n", highlight=False)


def write_page(findings: Findings, page: Path) -> str:
    """Write the page and the JSON beside it; return where they are."""
    from ..report.audit_page import audit_page

    written = [str(write_json(page, findings.plain()))]
    try:
        text = audit_page(findings)
    except FarshoreError as error:
        return f"the findings are {written[0]}; no {page.name}: {error}"
    from ..files import write_output

    write_output(page, text.encode())
    return f"the page is {page}, the findings are {written[0]}"


def write_json(page: Path, findings: dict[str, object]) -> Path:
    """Write the findings beside the page, with the same name."""
    import json

    from ..files import write_output

    path = page.with_suffix(".json")
    write_output(path, json.dumps(findings, indent=1, default=str).encode())
    return path
