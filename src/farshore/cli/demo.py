"""`farshore demo`: what the package is for, on data that it contains, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .engine_options import RUNS, WORKERS, EngineOptions, carry_out_plan, print_line
from .flags import command, flag

if TYPE_CHECKING:
    import pandas as pd

    from ..runs.plan.experiment import Experiment

BENCHMARK, TARGETS, ORDERS = "rotated-digits", "each:75/0", "balanced:4"
METHODS = ("finetune", "er", "naive-cl-vrex", "cl-vrex", "cl-coral", "best")
TAILORED = "cl-vrex"
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
    from ..results.collect import planned_frame
    from ..runs.plan.experiment import make_book
    from ..runs.plan.plan import make_plan
    from ..runs.store.store import Store, record_experiment
    from .ranking import print_results, write_page
    from .tables import make_console

    experiment = plan_demo(steps)
    store, console, book = Store(runs), make_console(), make_book(runs / "none.yaml")
    record_experiment(experiment, runs, book)
    plan = make_plan(experiment, store, book)
    print_line(console, f"{len(plan.unique())} runs on {BENCHMARK}, {steps} steps per domain")
    options = EngineOptions(workers=workers, device="cpu")
    failed = carry_out_plan(console, plan, store, options)
    frame = planned_frame(plan, runs)
    if not frame["score"].notna().any():
        raise typer.Exit(1)
    page = write_page(runs, NAME)
    print_results(console, frame, experiment, runs, more=lessons(frame), where=page)
    if failed:
        raise typer.Exit(1)


def lessons(frame: pd.DataFrame) -> list[str]:
    """How much fine-tuning depends on the order, and what replay adds to a naive method."""
    from ..results.select import scored
    from ..results.summary import Unit, by_unit, metric_of, paired, scores_of
    from ..results.verdict import interval

    runs, texts = scored(frame), []
    scores = scores_of(runs, METHODS[0])
    ranges: dict[str, tuple[float, float]] = {}
    for target in dict.fromkeys(place[1] for place in scores):
        here = {place: score for place, score in scores.items() if place[1] == target}
        by_order = by_unit(here, Unit.ORDER).values()
        ranges[target] = min(by_order), max(by_order)
    if ranges:
        widest = max(ranges, key=lambda target: ranges[target][1] - ranges[target][0])
        low, high = ranges[widest]
        texts.append(
            f"{METHODS[0]} scores between {100 * low:.0f} and {100 * high:.0f}% at target "
            f"{widest}, depending on an order that you cannot choose."
        )
    found = paired(runs, TAILORED, f"naive-{TAILORED}")
    if found is not None:
        difference = interval(found, metric_of(runs))
        texts.append(f"{TAILORED} minus its form without replay: {difference}.")
    return texts


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
