"""A table as lines of texts, for the forms that are plain text."""

from __future__ import annotations

from dataclasses import dataclass

from .table import SECTIONS, Cell, Row, Table

NOTHING = "—"
METRICS = {"accuracy": "", "macro_f1": "macro F1"}


@dataclass(frozen=True)
class Entry:
    """What stands in one place: the number, its error, the paper's, marks and notes."""

    text: str
    error: str = ""
    paper: str = ""
    difference: str = ""
    place: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grid:
    """Heads, and the rows by section; every row has an entry a head but the first."""

    heads: list[str]
    sections: list[tuple[str, list[tuple[Row, list[Entry]]]]]


def make_grid(table: Table, *, paper: bool = True) -> Grid:
    """The numbers of a table as they are shown, with or without the paper's beside them."""
    averaged = any(row.average is not None for row in table.rows)
    ranked = any(row.ranked for row in table.rows)
    compared = any(row.difference_to_finetune is not None for row in table.rows)
    heads = [
        "Method",
        *(_head(column.label, column.metric, column.generated) for column in table.columns),
    ]
    heads += ["Average"] if averaged else []
    heads += ["Rank, mean", "Rank, geometric mean", "Rank, median"] if ranked else []
    heads += ["To Finetune"] if compared else []
    sections = []
    for kind, rows in table.sections().items():
        shown = []
        for row in rows:
            entries = [
                _entry(row.cells.get(column.key), table.decimals, paper) for column in table.columns
            ]
            entries += [_entry(row.average, table.decimals, paper)] if averaged else []
            entries += _ranks(row, paper) if ranked else []
            entries += (
                [Entry(number(row.difference_to_finetune, table.decimals, sign=True))]
                if compared
                else []
            )
            shown.append((row, entries))
        sections.append((SECTIONS.get(kind, kind), shown))
    return Grid(heads, sections)


def number(value: float | None, decimals: int = 1, *, sign: bool = False) -> str:
    """A number with so many decimals; a dash where there is none."""
    if value is None:
        return NOTHING
    shown = round(value, decimals) + 0.0  # no minus before a nought
    return f"{shown:+.{decimals}f}" if sign else f"{shown:.{decimals}f}"


def _entry(cell: Cell | None, decimals: int, paper: bool) -> Entry:
    if cell is None:  # never planned
        return Entry(NOTHING)
    beside = ""
    if paper and cell.paper is not None:
        beside = number(cell.paper, decimals) + (
            f" ± {number(cell.paper_error, decimals)}" if cell.paper_error is not None else ""
        )
    return Entry(
        number(cell.mean, decimals),
        number(cell.error, decimals) if cell.error is not None else "",
        beside,
        number(cell.difference, decimals, sign=True)
        if beside and cell.difference is not None
        else "",
        cell.place,
        cell.notes,
    )


def _ranks(row: Row, paper: bool) -> list[Entry]:
    theirs = row.paper_ranks if paper and row.paper_ranks is not None else (None, None, None)
    ours = (row.rank_arithmetic, row.rank_geometric, row.rank_median)
    return [
        Entry(number(mine), paper=number(other) if other is not None else "")
        for mine, other in zip(ours, theirs, strict=True)
    ]


def _head(label: str, metric: str, generated: bool) -> str:
    told = [
        text
        for text in (METRICS.get(metric, metric), "generated data" if generated else "")
        if text
    ]
    return f"{label} ({', '.join(told)})" if told else label
