"""What `farshore compare` prints: the ranking, tables by target and by order, and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FarshoreError
from .engine_options import print_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..results.ranking import Standing
    from ..runs.plan.plan import Plan
    from ..runs.result import Result

# A table with a column per order has at most this many columns.
MOST_COLUMNS = 4
IN_TIME = (
    "every target was predicted from the domains before it, in chronological order; later domains "
    "were left out"
)


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
    from .run_output import percent

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
    from .run_output import percent
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
    from .run_output import percent

    error = f" ± {percent(standing.target_error)}" if standing.target_error is not None else ""
    incomplete = "" if standing.whole else f" ({standing.runs} of {standing.planned})"
    return percent(standing.target) + error + incomplete
