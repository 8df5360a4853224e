"""`farshore audit`: what to expect at a new site, and which method to use."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import FarshoreError
from .data_options import BENCHMARK, DataOptions, TrainingOptions, settings_of
from .engine_options import ROOT, RUNS, EngineOptions, carry_out_plan, print_line, use_root
from .flags import Except, answers, argument, command, flag, split_names


@command
def audit(
    benchmark: str = argument(BENCHMARK),
    *,
    data: Annotated[DataOptions, Except("domain_by", "domains", "severity")],
    methods: str | None = flag(
        "candidates, comma-separated [default: finetune, er, cl-coral, cl-fishr, ridge, slda, "
        "trees and auto]; added for reference: majority, joint "
        "and, for tables, joint-linear, joint-forest and joint-trees"
    ),
    orders: str | None = flag(
        "orders of the sources, as for compare [default: listed,reversed; with --time "
        "chronological]"
    ),
    seeds: int = flag("number of run seeds, counted from 0", 1),
    minutes: float | None = flag(
        "how long it may take: the highest design that fits is carried out [default: 10]"
    ),
    design: str | None = flag(
        "exactly this design, however long it takes: glance, small, medium, large or full"
    ),
    training: Annotated[TrainingOptions, Except("set")],
    runs: Path = flag(RUNS, Path("runs")),
    out: Path | None = flag("page to write [default: RUNS/audit-NAME.html]", short="-o"),
    engine: Annotated[EngineOptions, Except("engine", "address", "runs_per_gpu")],
    root: Path | None = flag(ROOT),
) -> None:
    """Say what to expect at a new site, and which method to use.

    Every site (domain) is left out in turn and predicted by models that never saw it. The answers
    are printed and written to a page, with a JSON file next to it: first a decision (ready for a
    pilot with labels, do not deploy, or too few sites to say), then the expected score with an
    interval, the method to use and how certain that choice is, sensitivity and specificity,
    calibration, the site that is unlike the others, what forgetting and the order cost, and whether
    more sites would help. What is run follows from the time there is; the answers say what it
    leaves out. Runs that are already in the folder are not repeated: the same command resumes an
    audit that was stopped, and with more minutes it continues.

    Example: farshore audit patients.csv --domain hospital --label disease
    """
    from ..auditing.audit import carry_out_audit
    from ..base.files import check_writable
    from ..benchmarks import make_benchmark
    from ..runs.plan.select import select_methods
    from ..runs.store.store import Store
    from .method_groups import method_groups
    from .tables import make_console, print_next

    use_root(root)
    if seeds < 1:
        raise FarshoreError(f"--seeds {seeds} is not allowed: give at least 1")
    fields, console = data.fields(benchmark), make_console()
    title = make_benchmark(fields["benchmark"], fields["options"]).title
    page = out or runs / f"audit-{title}.html"
    if page.suffix != ".html":
        raise FarshoreError(f"--out {str(page)!r} is not allowed: end it in .html")
    check_writable(page.parent, "--out" if out is not None else "--runs")
    named = split_names(methods)
    candidates = None if named is None else select_methods(named, method_groups())

    done = carry_out_audit(
        fields,
        candidates,
        store=Store(runs),
        perform=lambda plan, store: carry_out_plan(console, plan, store, engine),
        say=lambda text: print_line(console, text),
        device=engine.chosen_device,
        workers=engine.workers,
        minutes=minutes,
        design=design,
        orders=split_names(orders),
        seeds=seeds,
        steps=training.steps,
        memory=training.memory,
        settings=settings_of(None, data.train),
    )
    answers.update(done.plain())
    if not done.answers:
        print_line(console, f"{done.decision} {done.verdict}")
        print_line(console, f"the reasons are in {done.report(page.with_suffix('.json'))}")
        raise typer.Exit(2)
    console.print(f"\n{done.decision}", style="bold", highlight=False)
    console.print(done.verdict, highlight=False)
    console.print(" ".join(filter(None, (done.conditions, done.design[1]))), highlight=False)
    console.print()
    for question, text in done.answers.items():
        console.print(question, style="bold", highlight=False)
        console.print(f"{text}\n", highlight=False)
    print_next(console, *done.next_step)
    numbers = done.report(page.with_suffix(".json"))
    answers["page"] = page
    print_line(console, f"the page is {done.report(page)}, the numbers are {numbers}")
