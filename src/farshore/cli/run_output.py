"""What `farshore run` prints: the accuracy matrix, the main scores, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .engine_options import print_line

if TYPE_CHECKING:
    from rich.console import Console

    from ..runs.result import Result
    from ..runs.run import Run

# How much of the target a system saw.
SEEN = {
    "continual": "unseen",
    "offline": "unseen",
    "adaptation": "inputs seen, labels not",
    "reference": "unseen",
}


def show(result: Result, console: Console) -> None:
    """Print the accuracy matrix and the main scores."""
    from ..tasks.metrics import label_of
    from .tables import plain_table

    if result.status == "diverged":
        console.print(f"diverged: {result.message}")
        return
    show_matrix(result, console)
    assert result.target is not None
    headline = [
        [
            f"target {result.target.name} ({SEEN[result.kind]}, {result.target.rows} rows)",
            percent(result.target_score),
        ],
        ["sources (training rows)", percent(result.source_score(2))],
        ["sources (validation rows)", percent(result.source_score(1))],
        ["BWT (validation rows)", percent(result.backward_transfer(), sign=True)],
    ]
    title = (
        f"{result.run.method}{' (offline)' if result.kind == 'offline' else ''} on "
        f"{result.title}, seed {result.run.seed}"
    )
    console.print(plain_table(title, ["", f"{label_of(result.metric)}, %"], headline))
    console.print(
        f"{result.steps} steps per domain, {' '.join(map(str, result.rows_per_step))} rows per "
        f"step, memory {result.memory_items} rows "
        f"({result.memory_bytes:,} bytes), {result.seconds['total']:.1f} s"
    )


def show_matrix(result: Result, console: Console) -> None:
    """Print the accuracy matrix, or a summary of it where the terminal is too narrow."""
    from ..tasks.metrics import label_of
    from .tables import plain_table

    stages = result.stages or result.sources
    matrix = result.matrices["validation"]
    what = f"{label_of(result.metric)} on each source's validation rows, %"
    widths = [max(len(name), 6) + 2 for name in result.sources]
    if max(map(len, stages)) + 8 + sum(widths) <= console.width:
        rows = [
            [f"after {name}", *(percent(value) for value in row)]
            for name, row in zip(stages, matrix, strict=True)
        ]
        console.print(plain_table(what, ["", *result.sources], rows))
        return
    header = ["", "itself", "mean so far", "worst so far", "mean of the later ones"]
    rows = [
        [f"after {name}", *summary(row, index if name in result.sources else None)]
        for index, (name, row) in enumerate(zip(stages, matrix, strict=True))
    ]
    console.print(plain_table(what, header, rows))
    of = "some of" if any(None in row for row in matrix) else "all"
    print_line(
        console,
        f"the scores on {of} {len(result.sources)} sources after each of them are in result.json, "
        "under matrices (--out FOLDER saves it)",
    )


def summary(row: Sequence[float | None], index: int | None) -> list[str]:
    """Cells about scores after the source at `index` (None: all at once): itself, past, later."""
    from ..runs.result import measured

    end = len(row) if index is None else index + 1
    learned, later = measured(row[:end]), measured(row[end:])
    return [
        percent(row[index] if index is not None else None),
        percent(sum(learned) / len(learned)),
        percent(min(learned)),
        percent(sum(later) / len(later) if later else None),
    ]


def percent(value: float | None, *, sign: bool = False) -> str:
    """A fraction in percent with one decimal; a dash for None."""
    return "-" if value is None else f"{100 * value:{'+' if sign else ''}.1f}"


def show_levels(result: Result, console: Console, typed: Run) -> None:
    """Print what guessing scores, whether the method is above it, and what to type next.

    typed: the run with data and network as they were typed.
    """
    from ..runs.plan.commands import comparison_after
    from ..tasks.metrics import BALANCED, guess_score, guess_text, is_guessing
    from .tables import print_next

    if result.target is None:
        return
    classes = len(result.classes)
    guess = guess_score(result.metric, [sum(row) for row in result.target.confusion])
    print_line(console, guess_text(result.metric, classes, [] if guess is None else [guess]))
    balanced = result.target.scores.get(BALANCED)
    if balanced is not None and is_guessing(balanced, classes):
        print_line(console, "! balanced accuracy at the level of chance: no better than guessing")
    methods, sources = [result.run.method], len(result.sources)
    print_next(console, *comparison_after(typed, methods, sources))
