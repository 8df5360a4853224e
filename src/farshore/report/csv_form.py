"""A report as CSV: one line per number, in full precision, so that it reads back unchanged."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from ..data.tables.spreadsheet import plain_cell
from .table import Cell, Column, Report, Row, Table

OURS = (
    "table",
    "title",
    "whole",
    "row",
    "method",
    "variant",
    "label",
    "group",
    "kind",
    "column",
    "column_label",
    "metric",
    "unit",
)
NUMBERS = (
    "mean",
    "error",
    "status",
    "seeds",
    "seeds_planned",
    "trials",
    "trials_planned",
    "diverged",
    "pruned",
    "undefined",
    "generated",
    "part_of_the_data",
    "place",
    "values",
    "notes",
)
PAPER = ("paper", "paper_error", "difference")
RANKS = ("rank_arithmetic", "rank_geometric", "rank_median")
AVERAGE, GAIN = "average", "difference_to_baseline"


def as_csv(report: Report) -> str:
    """All tables, one after another.

    Averages, ranks and differences to the baseline have their own lines, named in `column`. The
    paper's columns are included if it has any number.
    """
    text = io.StringIO()
    writer = csv.DictWriter(
        text,
        fieldnames=[*OURS, *NUMBERS, *(PAPER if report.has_paper else ())],
        extrasaction="ignore",
        lineterminator="\n",
    )
    writer.writeheader()
    for table in report.tables:
        writer.writerows(
            {name: plain_cell(value) for name, value in line.items()} for line in _lines(table)
        )
    return text.getvalue()


def _lines(table: Table) -> Iterator[dict[str, Any]]:
    for row in table.rows:
        for column in table.columns:
            if column.key in row.cells:
                yield _line(table, row, column, row.cells[column.key])
        if row.average is not None:
            yield _line(table, row, Column(AVERAGE, "Average", ""), row.average)
        if row.ranked:
            paper_ranks = row.paper_ranks or (None, None, None)
            for name, paper_rank in zip(RANKS, paper_ranks, strict=True):
                yield _line(
                    table,
                    row,
                    Column(name, name, ""),
                    Cell(getattr(row, name), paper=paper_rank),
                    unit="rank",
                )
        if row.difference_to_baseline is not None:
            column = Column(GAIN, f"To {table.baseline_label}", "")
            yield _line(table, row, column, Cell(row.difference_to_baseline))


def _line(
    table: Table, row: Row, column: Column, cell: Cell, unit: str | None = None
) -> dict[str, Any]:
    return {
        "table": table.name,
        "title": table.title,
        "whole": table.whole,
        "row": row.key,
        "method": row.method,
        "variant": row.variant,
        "label": row.label,
        "group": row.group,
        "kind": row.kind,
        "column": column.key,
        "column_label": column.label,
        "metric": column.metric,
        "unit": unit or table.unit,
        "mean": _exact(cell.mean),
        "error": _exact(cell.error),
        "status": cell.status.value,
        "seeds": cell.seeds or "",
        "seeds_planned": cell.seeds_planned or "",
        "trials": cell.trials or "",
        "trials_planned": cell.trials_planned or "",
        "diverged": cell.diverged or "",
        "pruned": cell.pruned or "",
        "undefined": cell.undefined or "",
        "generated": cell.generated,
        "part_of_the_data": cell.part_of_the_data,
        "place": cell.place or "",
        "values": " ".join(_exact(value) for value in cell.values),
        "notes": "; ".join(cell.notes),
        "paper": _exact(cell.paper),
        "paper_error": _exact(cell.paper_error),
        "difference": _exact(cell.difference),
    }


def _exact(value: float | None) -> str:
    """All digits of a number; an empty text for None."""
    return "" if value is None else repr(float(value))
