"""A table as the page shows it: texts, values to sort by, and notes by letter."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from .table import SECTIONS, Cell, Row, Table

PLACES = {1: "best", 2: "second", 3: "third"}


@dataclass
class PageCell:
    """One cell: its text, the value to sort by, the letters of its notes."""

    text: str
    value: float | None = None
    error: str = ""
    paper: str = ""
    difference: str = ""
    side: str = ""
    place: str = ""
    notes: tuple[str, ...] = ()
    title: str = ""
    missing: bool = False
    partial: bool = False


@dataclass
class PageColumn:
    """A column's head: `best` is the direction of sorting that puts the best first."""

    label: str
    below: str = ""
    best: str = "descending"
    title: str = ""
    generated: bool = False


@dataclass
class PageRow:
    """A method and its cells."""

    method: str
    label: str
    group: str
    colour: str
    cells: list[PageCell]


@dataclass
class PageTable:
    """Everything that the template needs for a table."""

    table: Table
    columns: list[PageColumn]
    sections: list[tuple[str, list[PageRow]]]
    groups: list[tuple[str, str, str]]
    notes: list[tuple[str, str]] = field(default_factory=list)
    paper: bool = False


class Notes:
    """Letters for the texts of notes: a, b, ..., z, aa, ab, ..."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def letter(self, text: str) -> str:
        """The letter of a text; a new text gets the next one."""
        if text not in self.letters:
            index, letters = len(self.letters), ""
            while index >= 0:
                letters = string.ascii_lowercase[index % 26] + letters
                index = index // 26 - 1
            self.letters[text] = letters
        return self.letters[text]


def number(value: float | None, *, sign: bool = False, digits: int = 1) -> str:
    """A number with a typographic minus; a dash for None and NaN."""
    if value is None or value != value:
        return "–"
    value = round(value, digits) + 0.0  # turns -0.0 into 0.0
    shown = f"{value:+.{digits}f}" if sign and value else f"{value:.{digits}f}"
    return shown.replace("-", "\u2212")


def page_table(table: Table) -> PageTable:
    """The table as the template needs it."""
    notes = Notes()
    best = "descending" if table.higher_is_better else "ascending"
    columns = [
        PageColumn(column.label, column.metric.replace("_", " "), best, generated=column.generated)
        for column in table.columns
    ]
    averaged = any(row.average is not None for row in table.rows)
    ranked = any(row.ranked for row in table.rows)
    compared = any(row.difference_to_baseline is not None for row in table.rows)
    if averaged:
        columns.append(PageColumn("Average", "", best, "mean over the data sets"))
    if ranked and len(table.columns) == 1:
        columns.append(PageColumn("Rank", "", "ascending"))
    elif ranked:
        columns += [
            PageColumn(
                "Rank", "mean", "ascending", "mean of the ranks on the data sets, ties averaged"
            ),
            PageColumn(
                "Rank", "geometric", "ascending", "geometric mean of the ranks on the data sets"
            ),
            PageColumn("Rank", "median", "ascending", "median of the ranks on the data sets"),
        ]
    if compared:
        base = table.baseline_label
        columns.append(
            PageColumn("Gain", f"over {base}", best, f"average minus the average of {base}")
        )
    # If all numbers of a column come from generated data, its head says so instead of each cell.
    noted_in_head = {
        column.key
        for column in table.columns
        if column.generated and _all_generated(table, column.key)
    }
    sections = []
    for kind, rows in table.sections().items():
        shown = [_row(table, row, notes, noted_in_head, averaged, ranked, compared) for row in rows]
        sections.append((SECTIONS.get(kind, kind), shown))
    groups = {
        row.group: (row.group, row.group_label or row.group, row.colour) for row in table.rows
    }
    return PageTable(
        table=table,
        columns=columns,
        sections=sections,
        groups=list(groups.values()),
        notes=[(letter, text) for text, letter in notes.letters.items()],
        paper=table.has_paper,
    )


def _row(
    table: Table,
    row: Row,
    notes: Notes,
    noted_in_head: Set[str],
    averaged: bool,
    ranked: bool,
    compared: bool,
) -> PageRow:
    cells = []
    for column in table.columns:
        cell = row.cells.get(column.key)
        if cell is not None and column.key in noted_in_head:
            cell = replace(cell, generated=False)
        cells.append(_cell(cell, table, notes))
    if averaged:
        cells.append(_cell(row.average, table, notes))
    if ranked:
        ranks = (row.rank_arithmetic, row.rank_geometric, row.rank_median)
        for index, value in enumerate(ranks[:1] if len(table.columns) == 1 else ranks):
            paper_rank = (
                row.paper_ranks[index]
                if row.paper_ranks is not None and value is not None
                else None
            )
            cells.append(
                PageCell(
                    number(value),
                    value,
                    paper=number(paper_rank) if paper_rank is not None else "",
                    missing=value is None,
                )
            )
    if compared:
        value = row.difference_to_baseline
        cells.append(
            PageCell(number(value, sign=True, digits=table.decimals), value, missing=value is None)
        )
    label = (
        row.label if not row.variant or row.variant in row.label else f"{row.label} ({row.variant})"
    )
    return PageRow(row.method, label, row.group, row.colour, cells)


def _all_generated(table: Table, column: str) -> bool:
    return all(
        row.cells[column].generated
        for row in table.rows
        if column in row.cells and row.cells[column].mean is not None
    )


def _cell(cell: Cell | None, table: Table, notes: Notes) -> PageCell:
    if cell is None:
        return PageCell("", missing=True, title="not planned")
    texts = list(cell.notes)
    # Without a number, the cell says why.
    shown = number(cell.mean, digits=table.decimals) if cell.mean is not None else texts.pop(0)
    difference = cell.difference
    visible = difference is not None and round(difference, table.decimals) != 0
    return PageCell(
        text=shown,
        value=cell.mean if cell.mean is not None and math.isfinite(cell.mean) else None,
        error=number(cell.error, digits=table.decimals) if cell.error is not None else "",
        paper=_paper(cell, table.decimals),
        difference=number(difference, sign=True, digits=table.decimals)
        if difference is not None
        else "",
        side=("above" if (difference or 0) > 0 else "below") if visible else "",
        place=PLACES.get(cell.place or 0, ""),
        notes=tuple(notes.letter(text) for text in texts),
        title=_title(cell.values, table.decimals),
        missing=cell.mean is None,
        partial=cell.seeds < cell.seeds_planned or cell.trials < cell.trials_planned,
    )


def _paper(cell: Cell, digits: int) -> str:
    if cell.paper is None:
        return ""
    return number(cell.paper, digits=digits) + (
        f" ± {number(cell.paper_error, digits=digits)}" if cell.paper_error is not None else ""
    )


def _title(values: Sequence[float], digits: int) -> str:
    return (
        f"seeds: {', '.join(number(value, digits=digits) for value in values)}"
        if len(values) > 1
        else ""
    )
