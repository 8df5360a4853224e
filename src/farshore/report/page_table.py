"""A table as the page shows it: texts, values to sort by, and its notes under letters."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .table import GROUP_LABELS, SECTIONS, Cell, Row, Table

GENERATED = "generated data"
PLACES = {1: "best", 2: "second", 3: "third"}


@dataclass
class PageCell:
    """One cell: what stands in it, what it is sorted by, the letters of its notes."""

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
    """A head: `best` is the direction that puts the best first when it is sorted."""

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
    """All that the template needs of a table."""

    table: Table
    columns: list[PageColumn]
    sections: list[tuple[str, list[PageRow]]]
    groups: list[tuple[str, str, str]]
    notes: list[tuple[str, str]] = field(default_factory=list)
    paper: bool = False


class Notes:
    """Texts by letter: a, b, ..., z, aa, ab, ..."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def letter(self, text: str) -> str:
        """The letter of a text, a new one if it is new."""
        if text not in self.letters:
            place, letters = len(self.letters), ""
            while place >= 0:
                letters = string.ascii_lowercase[place % 26] + letters
                place = place // 26 - 1
            self.letters[text] = letters
        return self.letters[text]


def number(value: float | None, *, sign: bool = False, digits: int = 1) -> str:
    """A number as a reader expects it, with a true minus; a dash where there is none."""
    if value is None or value != value:
        return "–"
    value = round(value, digits) + 0.0  # no minus before a nought
    shown = f"{value:+.{digits}f}" if sign and value else f"{value:.{digits}f}"
    return shown.replace("-", "\u2212")


def page_table(table: Table, *, paper: bool = True) -> PageTable:
    """The table with or without the paper's numbers."""
    notes = Notes()
    paper = paper and table.has_paper
    best = "descending" if table.higher_is_better else "ascending"
    columns = [
        PageColumn(column.label, column.metric.replace("_", " "), best, generated=column.generated)
        for column in table.columns
    ]
    averaged = any(row.average is not None for row in table.rows)
    ranked = any(row.ranked for row in table.rows)
    compared = any(row.difference_to_finetune is not None for row in table.rows)
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
        columns.append(PageColumn("Gain", "on Finetune", best, "average minus that of Finetune"))
    told = {
        column.key: GENERATED
        for column in table.columns
        if column.generated and _everywhere(table, column.key)
    }
    sections = []
    for kind, rows in table.sections().items():
        shown = [_row(table, row, notes, told, averaged, ranked, compared, paper) for row in rows]
        sections.append((SECTIONS.get(kind, kind), shown))
    groups = {
        row.group: (row.group, GROUP_LABELS.get(row.group, row.group), row.colour)
        for row in table.rows
    }
    return PageTable(
        table=table,
        columns=columns,
        sections=sections,
        groups=list(groups.values()),
        notes=[(letter, text) for text, letter in notes.letters.items()],
        paper=paper,
    )


def _row(
    table: Table,
    row: Row,
    notes: Notes,
    told: Mapping[str, str],
    averaged: bool,
    ranked: bool,
    compared: bool,
    paper: bool,
) -> PageRow:
    cells = [
        _cell(row.cells.get(column.key), table, notes, paper, told=told.get(column.key, ""))
        for column in table.columns
    ]
    if averaged:
        cells.append(_cell(row.average, table, notes, paper))
    if ranked:
        ranks = (row.rank_arithmetic, row.rank_geometric, row.rank_median)
        for place, value in enumerate(ranks[:1] if len(table.columns) == 1 else ranks):
            theirs = (
                row.paper_ranks[place]
                if paper and row.paper_ranks is not None and value is not None
                else None
            )
            cells.append(
                PageCell(
                    number(value),
                    value,
                    paper=number(theirs) if theirs is not None else "",
                    missing=value is None,
                )
            )
    if compared:
        value = row.difference_to_finetune
        cells.append(
            PageCell(number(value, sign=True, digits=table.decimals), value, missing=value is None)
        )
    label = (
        row.label if not row.variant or row.variant in row.label else f"{row.label} ({row.variant})"
    )
    return PageRow(row.method, label, row.group, row.colour, cells)


def _everywhere(table: Table, column: str) -> bool:
    """Whether all numbers of a column are of generated data: its head says so then, and its
    cells need not.
    """
    return all(
        GENERATED in row.cells[column].notes
        for row in table.rows
        if column in row.cells and row.cells[column].mean is not None
    )


def _cell(cell: Cell | None, table: Table, notes: Notes, paper: bool, told: str = "") -> PageCell:
    if cell is None:
        return PageCell("", missing=True, title="not planned")
    said = [text for text in cell.notes if text != told]
    shown = (
        number(cell.mean, digits=table.decimals)
        if cell.mean is not None or not said
        else said.pop(0)
    )
    difference = cell.difference if paper else None
    worth = difference is not None and round(difference, table.decimals) != 0
    return PageCell(
        text=shown,
        value=cell.mean if cell.mean is not None and math.isfinite(cell.mean) else None,
        error=number(cell.error, digits=table.decimals) if cell.error is not None else "",
        paper=_paper(cell, table.decimals) if paper else "",
        difference=number(difference, sign=True, digits=table.decimals)
        if difference is not None
        else "",
        side=("above" if (difference or 0) > 0 else "below") if worth else "",
        place=PLACES.get(cell.place or 0, ""),
        notes=tuple(notes.letter(text) for text in said),
        title=_title(cell.values, table.decimals),
        missing=cell.mean is None,
        partial=bool(cell.seeds_planned) and not cell.whole,
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
