"""`farshore demo`: what the package is for, on data that it contains, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .engine_options import RUNS, WORKERS, EngineOptions, carry_out_plan, print_line
from .flags import command, flag

if TYPE_CHECKING:
    from ..runs.plan.experiment import Experiment

BENCHMARK, TARGETS, ORDERS = "rotated-digits", "each:75/0", "balanced:4"
METHODS = ("finetune", "er", "naive-cl-vrex", "cl-vrex", "cl-coral", "best")
STEPS = 60
NAME = "demo"


@command
def demo(
    runs: Path = flag(RUNS, Path("runs")),
    workers: int | None = flag(WORKERS),
    steps: int = flag("training steps per domain", STEPS, min=1),
) -> None:
    """Compare methods on embedded data in a minute or so.

    Digits are rotated by 0, 15, 30, 45 and 75 degrees. The methods learn four of the angles one
    after another, in four different orders, and are then scored at the angle that they have never
    seen: first 75, then 0. The demo compares plain fine-tuning, plain replay, a naive method, two
    tailored methods and the recommended one. joint, which trains on all sources at once, is the
    level to reach.

    Example: farshore demo --runs demo-runs
    """
    from ..report.build import build_report
    from ..report.closing import closing
    from ..report.overlay import NO_OVERLAY
    from ..report.verdict import judge
    from ..runs.plan.experiment import make_book
    from ..runs.plan.plan import make_plan
    from ..runs.plan.record import record_experiment
    from ..runs.store.store import Store
    from .compared_tables import write_page
    from .ranked import print_next, print_ranking
    from .tables import make_console

    experiment = plan_demo(steps)
    store, console, book = Store(runs), make_console(), make_book(runs / "none.yaml")
    record_experiment(experiment, runs, book)
    plan = make_plan(experiment, store, book)
    print_line(console, f"{len(plan.unique())} runs on {BENCHMARK}, {steps} steps per domain")
    options = EngineOptions(workers=workers, device="cpu")
    failed = carry_out_plan(console, plan, store, options)
    report = build_report(runs, NO_OVERLAY, experiment=NAME)
    contest = report.tables[0].contest if report.tables else None
    if contest is None:
        raise typer.Exit(1)
    verdict = judge(contest)
    title = f"{BENCHMARK}: accuracy on the unseen targets 75 and 0 in %, 4 orders each"
    print_ranking(console, contest, verdict, title)
    print_line(console, verdict.sentence)
    for sentence in closing(contest, verdict):
        print_line(console, f"- {sentence}")
    print_line(console, write_page(runs, NAME))
    print_next(console, report.next_command, report.next_reason)
    if failed:
        raise typer.Exit(1)


def plan_demo(steps: int = STEPS) -> Experiment:
    """The comparison behind the demo; joint sees all sources at once, so one order is enough."""
    from ..runs.plan.comparison import make_comparison

    compared = make_comparison(
        {"benchmark": BENCHMARK}, METHODS, seeds=[0], orders=[ORDERS], target=TARGETS, steps=steps
    )
    (part,) = compared.parts
    joint = part.model_copy(update={"methods": ["joint"], "orders": ["listed"]})
    return compared.model_copy(
        update={
            "name": NAME,
            "about": f"{BENCHMARK}: two unseen targets, four orders of the sources",
            "parts": [part, joint],
        }
    )
