"""The paper's tables as if they were ours, to check our averages, ranks and tests on them."""

from __future__ import annotations

from contested import of_cells

from farshore.errors import unknown
from farshore.report.assemble import Frame, assemble
from farshore.report.overlay import Overlay
from farshore.report.paper import PAPER
from farshore.report.paper.numbers import SOURCES
from farshore.report.table import Cell, Column, Table

SEEDS, TRIALS = 3, 20


def printed_table(experiment: str, overlay: Overlay = PAPER) -> Table:
    """The paper's table of an experiment, built as if its numbers were ours."""
    paper = PAPER.numbers(experiment)
    if paper is None:
        raise unknown("experiment with a table in the paper", experiment, SOURCES)
    entries: dict[tuple[str, str], dict[str, Cell]] = {}
    for (method, variant, dataset), (mean, error) in paper.numbers.items():
        cell = Cell(
            mean, error, seeds=SEEDS, seeds_planned=SEEDS, trials=TRIALS, trials_planned=TRIALS
        )
        entries.setdefault((method, variant), {})[dataset] = cell
    columns = [
        Column(name, overlay.dataset_label(name), metric_of(name))
        for name in PAPER.datasets_in_order(paper.datasets())
    ]
    score = paper.name not in ("backward_transfer", "runtime_minutes")
    unit = "%" if score else "points" if paper.name == "backward_transfer" else "minutes"
    frame = Frame(
        experiment,
        paper.title,
        "The paper's own numbers.",
        unit,
        paper.name != "runtime_minutes",
        ranked=score,
        contest=of_cells(entries, columns, overlay) if score else None,
    )
    return assemble(frame, columns, entries, overlay, overlay.numbers(experiment))


def metric_of(benchmark: str) -> str:
    """The paper scores WM811K by macro F1 and the others by accuracy."""
    return "macro_f1" if benchmark.startswith("wm811k") else "accuracy"
