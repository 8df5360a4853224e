"""From cells to a table: published numbers, best three, averages, ranks, gains, significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..results.ranks import places, rank_methods
from ..runs.catalog import KINDS
from .conclusions import judge
from .contest import Contest
from .names import method_group, methods_in_order
from .overlay import Overlay, PaperTable
from .table import Cell, Column, Over, Row, Significance, Table

# Cells of a table by method and variant, then by column.
Entries = Mapping[tuple[str, str], Mapping[str, Cell]]


@dataclass(frozen=True)
class Frame:
    """Everything about a table except its numbers."""

    name: str
    title: str
    about: str
    unit: str = "%"
    higher_is_better: bool = True
    # Whether an average over the columns makes sense, and whether ranks do.
    averaged: bool = True
    ranked: bool = True
    # Whether something without a cell is missing.
    partial: bool = False
    remarks: tuple[str, ...] = ()
    contest: Contest | None = None


def assemble(
    frame: Frame,
    columns: Sequence[Column],
    entries: Entries,
    overlay: Overlay,
    paper: PaperTable | None = None,
) -> Table:
    """Build a table of these cells.

    Rows and columns in which nothing has run are left out and named, and the table counts as
    partial.
    """
    with_runs = {key: cells for key, cells in entries.items() if any(c.ran for c in cells.values())}
    shown_columns = tuple(
        column
        for column in columns
        if any(cells[column.key].ran for cells in with_runs.values() if column.key in cells)
    )
    rows = [_row(key, with_runs[key], shown_columns, overlay, paper) for key in _ordered(with_runs)]
    shown = [cell for row in rows for cell in row.cells.values()]
    ranked = frame.ranked and frame.averaged
    rows = _placed(rows, shown_columns, frame.higher_is_better)
    if frame.averaged:
        rows = _averaged(rows, shown_columns, frame, overlay.baseline, paper)
    if ranked:
        rows = _ranked(rows, shown_columns, frame.higher_is_better)
    table = Table(
        name=frame.name,
        title=frame.title,
        about=frame.about,
        columns=shown_columns,
        rows=tuple(rows),
        remarks=frame.remarks,
        contest=frame.contest,
        paper_remarks=paper.notes if paper is not None and rows else (),
        partial=frame.partial
        or len(with_runs) < len(entries)
        or len(shown_columns) < len(columns)
        or any(cell.lacking for cell in shown),
        diverged=any(cell.diverged for cell in shown),
        pruned=any(cell.pruned for cell in shown),
        lacking_columns=tuple(column.label for column in columns if column not in shown_columns),
        lacking_rows=tuple(_label(*key, overlay) for key in entries if key not in with_runs),
        higher_is_better=frame.higher_is_better,
        unit=frame.unit,
        ranked=ranked,
        baseline=overlay.baseline,
        baseline_label=overlay.label(overlay.baseline),
        paper=paper.name if paper is not None else "",
        paper_title=paper.title if paper is not None else "",
    )
    return replace(
        table, title=_title(table), significance=_significance(table) if ranked else None
    )


def _title(table: Table) -> str:
    """The title, with a note in brackets if the table is incomplete."""
    endings = [
        words
        for words, applies in (
            ("partial", table.partial),
            ("with diverged runs", table.diverged),
            ("with runs stopped early", table.pruned),
        )
        if applies
    ]
    return table.title + (f" ({', '.join(endings)})" if endings else "")


def _significance(table: Table) -> Significance | None:
    """The tests on the ranked rows."""
    return judge(
        {
            row.key: [row.cells[column.key] for column in table.columns]
            for row in table.rows
            if row.ranked
        },
        [column.label for column in table.columns],
        {row.key: row.label for row in table.rows},
        baseline=table.baseline,
        higher_is_better=table.higher_is_better,
    )


def _row(
    key: tuple[str, str],
    cells: Mapping[str, Cell],
    columns: Sequence[Column],
    overlay: Overlay,
    paper: PaperTable | None,
) -> Row:
    method, variant = key
    group, kind = method_group(method)
    compared = {}
    for column in columns:
        if column.key in cells:
            number = paper.number(method, column.key, variant) if paper is not None else None
            compared[column.key] = (
                replace(cells[column.key], paper=number[0], paper_error=number[1])
                if number is not None
                else cells[column.key]
            )
    return Row(
        method,
        _label(method, variant, overlay),
        group,
        kind,
        compared,
        variant=variant,
        group_label=overlay.group_label(group),
        colour=overlay.fill(group),
    )


def _placed(rows: Sequence[Row], columns: Sequence[Column], higher: bool) -> list[Row]:
    """Mark the best three of each column among the continual rows."""
    marked: dict[tuple[str, str], int] = {}
    for column in columns:
        with_number = [
            row
            for row in rows
            if row.kind == "continual"
            and column.key in row.cells
            and row.cells[column.key].mean is not None
        ]
        if len(with_number) < 2:
            continue
        cells = [row.cells[column.key] for row in with_number]
        by_row = places(
            [_mean(cell) for cell in cells],
            [_error(cell) for cell in cells],
            higher_is_better=higher,
        )
        marked |= {
            (row.key, column.key): place
            for row, place in zip(with_number, by_row, strict=True)
            if place is not None
        }
    return [
        replace(
            row,
            cells={
                key: replace(cell, place=marked.get((row.key, key)))
                for key, cell in row.cells.items()
            },
        )
        for row in rows
    ]


def _averaged(
    rows: Sequence[Row],
    columns: tuple[Column, ...],
    frame: Frame,
    baseline: str,
    paper: PaperTable | None,
) -> list[Row]:
    """Add averages over the columns, the paper's averages, and differences to the baseline."""
    averages = [_average(row, columns, paper) for row in rows]
    complete = [
        index for index, row in enumerate(rows) if row.kind == "continual" and row.complete(columns)
    ]
    if len(complete) > 1:
        means = [_mean(averages[index]) for index in complete]
        by_row = places(means, higher_is_better=frame.higher_is_better)
        for index, place in zip(complete, by_row, strict=True):
            averages[index] = replace(averages[index], place=place)
    base = next(
        (averages[index].mean for index in complete if rows[index].key == baseline),
        None,
    )
    return [
        replace(
            row,
            # The average over one column would only repeat the column.
            average=averages[index] if len(columns) > 1 else None,
            difference_to_baseline=_mean(averages[index]) - base
            if base is not None and row.complete(columns)
            else None,
            paper_ranks=paper.ranks.get(row.method) if paper is not None else None,
        )
        for index, row in enumerate(rows)
    ]


def _average(row: Row, columns: Sequence[Column], paper: PaperTable | None) -> Cell:
    cells = [row.cells[column.key] for column in columns if column.key in row.cells]
    with_number = [cell for cell in cells if cell.mean is not None]
    over = Over(len(with_number), len(columns))
    if not with_number:
        return Cell(None, over=over)
    published = [cell.paper for cell in with_number if cell.paper is not None]
    papers = sum(published) / len(published) if len(published) == len(with_number) else None
    if papers is not None and paper is not None and len(with_number) == len(paper.datasets()):
        papers = paper.averages.get(row.method, papers)
    return Cell(
        sum(_mean(cell) for cell in with_number) / len(with_number),
        paper=papers,
        seeds=min(cell.seeds for cell in with_number),
        seeds_planned=max(cell.seeds_planned for cell in cells),
        trials=min(cell.trials for cell in with_number),
        trials_planned=max(cell.trials_planned for cell in cells),
        over=over,
    )


def _ranked(rows: Sequence[Row], columns: tuple[Column, ...], higher: bool) -> list[Row]:
    """Add the ranks of the continual rows that have a number in every column."""
    complete = [row for row in rows if row.kind == "continual" and row.complete(columns)]
    if len(complete) < 2 or not columns:
        return list(rows)
    ranks = rank_methods(
        [[_mean(row.cells[column.key]) for column in columns] for row in complete],
        higher_is_better=higher,
    )
    summaries = {
        row.key: (
            float(ranks.arithmetic[index]),
            float(ranks.geometric[index]),
            float(ranks.median[index]),
        )
        for index, row in enumerate(complete)
    }
    return [
        replace(row, rank_arithmetic=own[0], rank_geometric=own[1], rank_median=own[2])
        if (own := summaries.get(row.key)) is not None
        else row
        for row in rows
    ]


def _ordered(entries: Entries) -> list[tuple[str, str]]:
    """By kind (ranked first), then in the order of the catalog; variants keep their order."""
    methods = methods_in_order(method for method, _ in entries)
    keys = list(entries)
    return sorted(
        keys,
        key=lambda key: (
            KINDS.index(method_group(key[0])[1]),
            methods.index(key[0]),
            keys.index(key),
        ),
    )


def _label(method: str, variant: str, overlay: Overlay) -> str:
    return f"{overlay.label(method)}, {variant}" if variant else overlay.label(method)


def _mean(cell: Cell) -> float:
    return cell.mean if cell.mean is not None else float("nan")


def _error(cell: Cell) -> float:
    return cell.error if cell.error is not None else float("nan")
