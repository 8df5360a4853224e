"""A table as lines of text, for Markdown and LaTeX."""

from __future__ import annotations

from dataclasses import dataclass

from .table import GENERATED, SECTIONS, Cell, Row, Table

NOTHING = "—"
METRICS = {"accuracy": "", "macro_f1": "macro F1"}


@dataclass(frozen=True)
class Entry:
    """One cell as text: the number, its error, the paper's number, place and notes."""

    text: str
    error: str = ""
    paper: str = ""
    difference: str = ""
    place: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grid:
    """Column heads, and the rows by section. A row has one entry per head except the first."""

    heads: list[str]
    sections: list[tuple[str, list[tuple[Row, list[Entry]]]]]


def make_grid(table: Table) -> Grid:
    """The numbers of a table as text."""
    averaged = any(row.average is not None for row in table.rows)
    ranked = any(row.ranked for row in table.rows)
    compared = any(row.difference_to_baseline is not None for row in table.rows)
    heads = [
        "Method",
        *(_head(column.label, column.metric, column.generated) for column in table.columns),
    ]
    heads += ["Average"] if averaged else []
    heads += ["Rank, mean", "Rank, geometric mean", "Rank, median"] if ranked else []
    heads += [f"To {table.baseline_label}"] if compared else []
    sections = []
    for kind, rows in table.sections().items():
        shown = []
        for row in rows:
            entries = [
                _entry(row.cells.get(column.key), table.decimals) for column in table.columns
            ]
            entries += [_entry(row.average, table.decimals)] if averaged else []
            entries += _ranks(row) if ranked else []
            entries += (
                [Entry(number(row.difference_to_baseline, table.decimals, sign=True))]
                if compared
                else []
            )
            shown.append((row, entries))
        sections.append((SECTIONS.get(kind, kind), shown))
    return Grid(heads, sections)


def number(value: float | None, decimals: int = 1, *, sign: bool = False) -> str:
    """A number with this many decimals; a dash for None."""
    if value is None:
        return NOTHING
    shown = round(value, decimals) + 0.0  # turns -0.0 into 0.0
    return f"{shown:+.{decimals}f}" if sign else f"{shown:.{decimals}f}"


def _entry(cell: Cell | None, decimals: int) -> Entry:
    if cell is None:  # not planned
        return Entry(NOTHING)
    published = ""
    if cell.paper is not None:
        published = number(cell.paper, decimals) + (
            f" ± {number(cell.paper_error, decimals)}" if cell.paper_error is not None else ""
        )
    return Entry(
        number(cell.mean, decimals),
        number(cell.error, decimals) if cell.error is not None else "",
        published,
        number(cell.difference, decimals, sign=True) if cell.difference is not None else "",
        cell.place,
        cell.notes,
    )


def _ranks(row: Row) -> list[Entry]:
    paper_ranks = row.paper_ranks if row.paper_ranks is not None else (None, None, None)
    ranks = (row.rank_arithmetic, row.rank_geometric, row.rank_median)
    return [
        Entry(number(rank), paper=number(paper_rank) if paper_rank is not None else "")
        for rank, paper_rank in zip(ranks, paper_ranks, strict=True)
    ]


def _head(label: str, metric: str, generated: bool) -> str:
    details = list(filter(None, (METRICS.get(metric, metric), GENERATED if generated else "")))
    return f"{label} ({', '.join(details)})" if details else label
