"""What `farshore run` prints: the accuracy matrix, the main scores, and what they are worth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .engine_options import print_line

if TYPE_CHECKING:
    from rich.console import Console

    from ..runs.result import Result
    from ..runs.run import Run

# How much of the target a system saw.
SEEN = dict.fromkeys(("continual", "offline", "reference"), "unseen")
SEEN["adaptation"] = "inputs seen, labels not"


def show(result: "Result", console: "Console") -> None:
    """Print the accuracy matrix and the main scores."""
    from .tables import plain_table

    if result.status == "diverged":
        console.print(f"diverged: {result.message}")
        return
    show_matrix(result, console)
    assert result.target is not None
    target = f"target {result.target.name} ({SEEN[result.kind]}, {result.target.rows} rows)"
    headline = [
        [target, shown(result, result.target_score)],
        ["sources (training rows)", shown(result, result.source_score(2))],
        ["sources (validation rows)", shown(result, result.source_score(1))],
        ["BWT (validation rows)", shown(result, result.backward_transfer(), sign=True)],
    ]
    offline = " (offline)" if result.kind == "offline" else ""
    title = f"{result.run.method}{offline} on {result.title}, seed {result.run.seed}"
    console.print(plain_table(title, ["", heading(result)], headline))
    console.print(
        f"{result.steps} steps per domain, {' '.join(map(str, result.rows_per_step))} rows per "
        f"step, memory {result.memory_items} rows "
        f"({result.memory_bytes:,} bytes), {result.seconds['total']:.1f} s"
    )


def show_matrix(result: "Result", console: "Console") -> None:
    """Print the accuracy matrix, or a summary of it where the terminal is too narrow."""
    from .tables import plain_table

    stages = result.stages or result.sources
    matrix = result.matrices["validation"]
    label, comma, unit = heading(result).partition(", ")
    what = f"{label} on each source's validation rows{comma}{unit}"
    widths = [max(len(name), 6) + 2 for name in result.sources]
    if max(map(len, stages)) + 8 + sum(widths) <= console.width:
        pairs = zip(stages, matrix, strict=True)
        rows = [[f"after {name}", *(shown(result, each) for each in row)] for name, row in pairs]
        console.print(plain_table(what, ["", *result.sources], rows))
        return
    header = ["", "itself", "mean so far", "worst so far", "mean of the later ones"]
    rows = [
        [f"after {name}", *summary(result, row, index if name in result.sources else None)]
        for index, (name, row) in enumerate(zip(stages, matrix, strict=True))
    ]
    console.print(plain_table(what, header, rows))
    of = "some of" if any(None in row for row in matrix) else "all"
    what = f"the scores on {of} {len(result.sources)} sources after each of them"
    where = "in result.json, under matrices (--out FOLDER saves it)"
    print_line(console, f"{what} are {where}")


def summary(result: "Result", row: Sequence[float | None], index: int | None) -> list[str]:
    """Cells about scores after the source at `index` (None: all at once): itself, past, later."""
    from ..runs.result import measured

    end = len(row) if index is None else index + 1
    learned, later = measured(row[:end]), measured(row[end:])
    metric = result.main_metric
    worst = min if metric is None or metric.higher_is_better else max
    values = [
        row[index] if index is not None else None,
        sum(learned) / len(learned),
        worst(learned),
        sum(later) / len(later) if later else None,
    ]
    return [shown(result, value) for value in values]


def heading(result: "Result") -> str:
    """The metric and its unit."""
    metric = result.main_metric
    if metric is None:
        return f"{result.metric}, %"
    return ", ".join(filter(None, (metric.label, metric.unit.strip())))


def shown(result: "Result", value: float | None, *, sign: bool = False) -> str:
    """A score in the result's metric; a dash for None."""
    metric = result.main_metric
    if value is None or metric is None:
        return "-" if value is None else f"{value:.4g}"
    return metric.text(value, sign=sign).replace("\u2212", "-")


def percent(value: float | None, *, sign: bool = False) -> str:
    """A fraction in percent with one decimal; a dash for None."""
    return "-" if value is None else f"{100 * value:{'+' if sign else ''}.1f}"


def show_levels(result: "Result", console: "Console", typed: "Run") -> None:
    """Print what guessing scores, whether the method is above it, and what to type next.

    typed: the run with data and network as they were typed.
    """
    from ..runs.plan.commands import comparison_after
    from ..tasks.metrics import BALANCED, guess_score, guess_text, is_guessing, level_text
    from .tables import print_next

    if result.target is None:
        return
    classes = len(result.classes)
    counts, scores = [sum(row) for row in result.target.confusion], result.target.scores
    guess = guess_score(result.metric, counts, scores)
    print_line(console, guess_text(result.metric, classes, [] if guess is None else [guess]))
    level = scores.get(BALANCED, scores.get("skill"))
    if level is not None and is_guessing(level, classes):
        print_line(console, f"! {level_text(level, classes)}")
    methods, sources = [result.run.method], len(result.sources)
    print_next(console, *comparison_after(typed, methods, sources))
