"""`farshore demo`: what the package is for, on data that it contains, in a minute or two."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import FarshoreError
from .engine_options import RUNS, WORKERS, EngineOptions, carry_out_plan, print_line
from .flags import answers, command, flag

if TYPE_CHECKING:
    import pandas as pd

    from ..runs.plan.experiment import Experiment

BENCHMARK = "rotated-digits"
# Fixed before any run: every angle is the target once, in two orders of the others.
TARGETS, ORDERS = "each", ("listed", "reversed")
METHODS = ("finetune", "er", "naive-cl-vrex", "cl-vrex", "auto")
TAILORED = "cl-vrex"
STEPS = 60
NAME = "demo"


@command
def demo(
    runs: Path = flag(RUNS, Path("runs")),
    data: Path | None = flag(
        "run nothing, but write a table to try other commands on: 920 patients of four hospitals"
    ),
    workers: int | None = flag(WORKERS),
    steps: int = flag("training steps per domain", STEPS, min=1),
) -> None:
    """Compare methods on embedded data in a minute or so.

    Digits are rotated by 0, 15, 30, 45 and 75 degrees. Each angle in turn is the one that nobody
    has seen: the methods learn the other four one after another, from the smallest to the largest
    and back, and are then scored at the fifth. The demo compares plain fine-tuning, plain replay, a
    tailored method with and without its memory, and a committee. joint, which trains on all sources
    at once, is the level to reach.

    Example: farshore demo --data patients.csv
    """
    from ..results.collect import planned_frame
    from ..runs.engines.carry_out import open_runs
    from ..runs.plan.experiment import make_book
    from ..runs.plan.plan import make_plan
    from ..runs.store.store import Store, record_experiment
    from .ranking import print_results, write_page
    from .tables import make_console, print_next

    console = make_console()
    if data is not None:
        rows = write_table(data)
        print_line(console, f"{data}: {rows} patients of four hospitals, with heart disease or not")
        name = shlex.quote(str(data))
        command = f"farshore audit {name} --domain hospital --label disease"
        answers.update(table=data, rows=rows, next=command)
        print_next(console, command, "what to expect at a hospital that nobody has seen")
        return
    experiment, store, book = plan_demo(steps), Store(runs), make_book(runs / "none.yaml")
    record_experiment(experiment, runs, book)
    plan = make_plan(experiment, store, book)
    known = len(plan.unique()) - len(open_runs(plan, store)[0])
    already = f"; {known} of them are in {runs} already" if known else ""
    print_line(
        console, f"{len(plan.unique())} runs on {BENCHMARK}, {steps} steps per domain{already}"
    )
    options = EngineOptions(workers=workers, device="cpu")
    failed = carry_out_plan(console, plan, store, options)
    frame = planned_frame(plan, runs)
    if not frame["score"].notna().any():
        raise typer.Exit(1)
    page = write_page(runs, NAME)
    print_results(console, frame, experiment, runs, more=lessons(frame), where=page)
    if failed:
        raise typer.Exit(1)


def write_table(path: Path) -> int:
    """Write the heart disease table with two classes; return its rows. Nothing is replaced."""
    from ..base.files import write_output
    from ..benchmarks.heart_hospitals import patients

    if path.suffix != ".csv":
        raise FarshoreError(f"--data {str(path)!r} is not allowed: end it in .csv")
    table = patients()
    contents = table.to_csv(index=False).encode()
    if path.exists() and not (path.is_file() and path.read_bytes() == contents):
        raise FarshoreError(f"--data {str(path)!r} exists: give the name of a new file")
    write_output(path, contents)
    return len(table)


def lessons(frame: "pd.DataFrame") -> list[str]:
    """How much fine-tuning depends on the order, and what replay adds to a naive method."""
    from ..results.select import scored
    from ..results.summary import Unit, by_unit, metric_of, paired, scores_of
    from ..results.text import interval

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


def plan_demo(steps: int = STEPS) -> "Experiment":
    """The comparison behind the demo; joint sees all sources at once, so one order is enough."""
    from ..runs.plan.comparison import make_comparison

    compared = make_comparison(
        {"benchmark": BENCHMARK}, METHODS, seeds=[0], orders=ORDERS, target=TARGETS, steps=steps
    )
    (part,) = compared.parts
    joint = part.model_copy(update={"methods": ["joint"], "orders": ["listed"]})
    about = f"{BENCHMARK}: every angle unseen in turn, two orders of the others"
    return compared.but(name=NAME, about=about, parts=[part, joint])
