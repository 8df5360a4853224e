"""`farshore compare`: compare methods on one benchmark."""

from pathlib import Path

import typer

from ..errors import FarshoreError
from .data_options import BENCHMARK, DataOptions, TrainingOptions, settings_of
from .engine_options import ROOT, RUNS, EngineOptions, KeepOptions, carry_out_plan, use_root
from .flags import argument, command, flag, split_names


@command
def compare(
    benchmark: str = argument(BENCHMARK),
    *,
    methods: str | None = flag(
        "methods and groups, comma-separated: tailored, naive, adaptation, paper, all, ... "
        "[default: all; for your own data finetune, er, cl-coral, ridge and slda; and for tables "
        "the group references]"
    ),
    seeds: int | None = flag(
        "number of run seeds, counted from 0 [default: 3; 1 if all your own domains are "
        "targets in turn]"
    ),
    orders: str = flag(
        "orders of the sources, comma-separated: listed, reversed, random1, random2, ..., all, "
        "balanced:8 (each source equally often in every position), or names: 45/30/0/15",
        "listed",
    ),
    target: str | None = flag(
        "the unseen domain; the others are sources. each:75/0: these in turn. each: every domain "
        "in turn (with --time: every domain from the third on, learned from those before it) "
        "[default: the benchmark's own; each for your own data]"
    ),
    scenario_seed: int = flag("seed of the data", 0),
    data: DataOptions,
    training: TrainingOptions,
    runs: Path = flag(RUNS, Path("runs")),
    engine: EngineOptions,
    keep: KeepOptions,
    root: Path | None = flag(ROOT),
) -> None:
    """Rank methods on BENCHMARK by their unseen-target score.

    Every method runs with every seed and every order of the sources. Runs that are already in the
    folder are not repeated, and the same command resumes a comparison that was stopped.

    With --target each, every domain is left out in turn, and every target counts once: the mean,
    its error and the paired differences are computed over targets.

    All methods see the same data and take the same number of steps. Compare only methods with equal
    rows per step. Methods that learn all sources at once, or adapt to the target's inputs, are
    listed below the others without a rank: among them a linear model, a random forest and boosted
    trees, which are what you would take if you had the rows of all sources at once.

    Example: farshore compare rotated-digits --methods finetune,er,tailored
    """
    from ..benchmarks import make_benchmark
    from ..results.collect import planned_frame
    from ..runs.plan.comparison import make_comparison, plan_comparison
    from ..runs.plan.select import USUAL_METHODS, fitting, in_turn, references, select_methods
    from ..runs.store.store import Store
    from ..tasks.metrics import several
    from .method_groups import method_groups
    from .ranking import print_results, write_page
    from .tables import make_console

    use_root(root)
    fields, words = data.fields(benchmark), split_names(methods)
    own = "path" in fields["options"]
    if seeds is None:
        seeds = 1 if own and (target is None or in_turn(target)) else 3
    if seeds < 1:
        raise FarshoreError(f"--seeds {seeds} is not allowed: give at least 1")
    if words is None:
        made = make_benchmark(fields["benchmark"], fields["options"])
        words = [*(fitting(USUAL_METHODS, made) if own else ("all",)), *references(made)]
    comparison = make_comparison(
        fields,
        select_methods(words, method_groups()),
        seeds=range(seeds),
        orders=split_names(orders) or [],
        scenario_seed=scenario_seed,
        target=target,
        steps=training.steps,
        memory=training.memory,
        settings=settings_of(training.set, data.train),
    )
    store, console = Store(runs), make_console()
    plan = plan_comparison(comparison, store, device=engine.chosen_device)
    failed = carry_out_plan(console, plan, store, engine, keep)
    frame = planned_frame(plan, runs)
    ended = int((frame["status"] != "missing").sum())
    if ended:
        where = f"{several(ended, 'run')} in {runs}; {write_page(runs, plan.name)}"
        print_results(console, frame, plan.experiment, runs, where=where)
    if failed:
        raise typer.Exit(1)
