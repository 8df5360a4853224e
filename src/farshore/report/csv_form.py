"""A report as CSV: one line per number, in full precision, so that it reads back unchanged.

The scores at the units of a mean are a JSON object, by the names of the units.
"""

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from ..data.tables.spreadsheet import plain_cell
from ..results.tables import Cell, Column, Row, Table

if TYPE_CHECKING:
    from .build import Report

COLUMNS = (
    *("table", "title", "whole", "row", "method", "variant", "group", "kind", "column"),
    *("column_label", "column_kind", "metric", "unit", "mean", "error", "low", "high", "over"),
    *("at", "status", "runs", "planned", "diverged", "pruned", "undefined", "trials"),
    *("trials_planned", "generated", "part_of_the_data", "place", "values", "notes"),
)
COUNTS = ("planned", "diverged", "pruned", "undefined", "trials", "trials_planned")
PUBLISHED = ("published", "published_error", "difference")


def as_csv(report: "Report") -> str:
    """All tables, one after another; published numbers are included if there are any."""
    text = io.StringIO()
    names = [*COLUMNS, *(PUBLISHED if report.has_published else ())]
    writer = csv.DictWriter(text, fieldnames=names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for table in report.tables:
        for row in table.rows:
            for column in table.columns:
                if column.key in row.cells:
                    line = _line(table, row, column, row.cells[column.key])
                    writer.writerow({name: plain_cell(value) for name, value in line.items()})
    return text.getvalue()


def _line(table: Table, row: Row, column: Column, cell: Cell) -> dict[str, Any]:
    counts = cell.counts
    return {
        "table": table.name,
        "title": table.title,
        "whole": table.whole,
        **{name: getattr(row, name) for name in ("row", "method", "variant", "group", "kind")},
        "column": column.key,
        "column_label": column.label,
        "column_kind": column.kind,
        "metric": column.metric,
        "unit": "rank" if column.kind == "rank" else table.unit,
        **{
            name: "" if getattr(cell, name) is None else repr(float(getattr(cell, name)))
            for name in ("mean", "error", "low", "high", *PUBLISHED)
        },
        "over": cell.unit,
        "at": cell.at,
        "status": cell.status.value,
        "runs": counts.done or "",
        **{name: getattr(counts, name) or "" for name in COUNTS},
        "generated": cell.generated,
        "part_of_the_data": cell.part,
        "place": cell.place or "",
        "values": json.dumps(dict(cell.values), ensure_ascii=False) if cell.values else "",
        "notes": "; ".join(cell.notes),
    }
