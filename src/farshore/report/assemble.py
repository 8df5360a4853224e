"""From cells to a table: published numbers, best three, averages, ranks, difference to the
baseline, significance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..catalog import KINDS
from ..evaluation.ranks import places, rank_methods
from .conclusions import judge
from .names import method_group, methods_in_order
from .overlay import Overlay, PaperTable
from .table import Cell, Column, Over, Row, Significance, Table

# Cells of a table by method and variant, then by column.
Entries = Mapping[tuple[str, str], Mapping[str, Cell]]


@dataclass(frozen=True)
class Frame:
    """All of a table but its numbers."""

    name: str
    title: str
    about: str
    unit: str = "%"
    higher_is_better: bool = True
    # Whether an average over the columns means something, and ranks over them too.
    averaged: bool = True
    ranked: bool = True
    # Whether something is known to be missing that has no cell.
    partial: bool = False
    remarks: tuple[str, ...] = ()


def assemble(
    frame: Frame,
    columns: Sequence[Column],
    entries: Entries,
    overlay: Overlay,
    paper: PaperTable | None = None,
) -> Table:
    """A table of these cells. Rows and columns in which nothing has run are left out and named,
    and the table counts as partial.
    """
    kept = {key: cells for key, cells in entries.items() if any(c.ran for c in cells.values())}
    there = tuple(
        column
        for column in columns
        if any(cells[column.key].ran for cells in kept.values() if column.key in cells)
    )
    rows = [_row(key, kept[key], there, overlay, paper) for key in _ordered(kept)]
    shown = [cell for row in rows for cell in row.cells.values()]
    ranked = frame.ranked and frame.averaged
    rows = _placed(rows, there, frame.higher_is_better)
    if frame.averaged:
        rows = _averaged(rows, there, frame, overlay.baseline, paper)
    if ranked:
        rows = _ranked(rows, there, frame.higher_is_better)
    table = Table(
        name=frame.name,
        title=frame.title,
        about=frame.about,
        columns=there,
        rows=tuple(rows),
        remarks=frame.remarks,
        paper_remarks=paper.notes if paper is not None and rows else (),
        partial=frame.partial
        or len(kept) < len(entries)
        or len(there) < len(columns)
        or any(cell.lacking for cell in shown),
        diverged=any(cell.diverged for cell in shown),
        pruned=any(cell.pruned for cell in shown),
        lacking_columns=tuple(column.label for column in columns if column not in there),
        lacking_rows=tuple(_label(*key, overlay) for key in entries if key not in kept),
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
    """The title, which says so where the table is not whole."""
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
        there = [
            row
            for row in rows
            if row.kind == "continual"
            and column.key in row.cells
            and row.cells[column.key].mean is not None
        ]
        if len(there) < 2:
            continue
        cells = [row.cells[column.key] for row in there]
        by_place = places(
            [_mean(cell) for cell in cells],
            [_error(cell) for cell in cells],
            higher_is_better=higher,
        )
        marked |= {
            (row.key, column.key): place
            for row, place in zip(there, by_place, strict=True)
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
    """Averages over the columns, with the paper's over the same columns, and their difference to
    the baseline's.
    """
    averages = [_average(row, columns, paper) for row in rows]
    full = [
        number
        for number, row in enumerate(rows)
        if row.kind == "continual" and row.complete(columns)
    ]
    if len(full) > 1:
        for number, place in zip(
            full,
            places([_mean(averages[n]) for n in full], higher_is_better=frame.higher_is_better),
            strict=True,
        ):
            averages[number] = replace(averages[number], place=place)
    base = next(
        (averages[number].mean for number in full if rows[number].key == baseline),
        None,
    )
    return [
        replace(
            row,
            # The average of one column would be the column again.
            average=averages[number] if len(columns) > 1 else None,
            difference_to_baseline=_mean(averages[number]) - base
            if base is not None and row.complete(columns)
            else None,
            paper_ranks=paper.ranks.get(row.method) if paper is not None else None,
        )
        for number, row in enumerate(rows)
    ]


def _average(row: Row, columns: Sequence[Column], paper: PaperTable | None) -> Cell:
    cells = [row.cells[column.key] for column in columns if column.key in row.cells]
    there = [cell for cell in cells if cell.mean is not None]
    over = Over(len(there), len(columns))
    if not there:
        return Cell(None, over=over)
    published = [cell.paper for cell in there if cell.paper is not None]
    theirs = sum(published) / len(published) if len(published) == len(there) else None
    if theirs is not None and paper is not None and len(there) == len(paper.datasets()):
        theirs = paper.averages.get(row.method, theirs)
    return Cell(
        sum(_mean(cell) for cell in there) / len(there),
        paper=theirs,
        seeds=min(cell.seeds for cell in there),
        seeds_planned=max(cell.seeds_planned for cell in cells),
        trials=min(cell.trials for cell in there),
        trials_planned=max(cell.trials_planned for cell in cells),
        over=over,
    )


def _ranked(rows: Sequence[Row], columns: tuple[Column, ...], higher: bool) -> list[Row]:
    """Ranks of the continual rows that have a number in every column."""
    chosen = [row for row in rows if row.kind == "continual" and row.complete(columns)]
    if len(chosen) < 2 or not columns:
        return list(rows)
    ranks = rank_methods(
        [[_mean(row.cells[column.key]) for column in columns] for row in chosen],
        higher_is_better=higher,
    )
    summed = {
        row.key: (
            float(ranks.arithmetic[number]),
            float(ranks.geometric[number]),
            float(ranks.median[number]),
        )
        for number, row in enumerate(chosen)
    }
    return [
        replace(row, rank_arithmetic=of[0], rank_geometric=of[1], rank_median=of[2])
        if (of := summed.get(row.key)) is not None
        else row
        for row in rows
    ]


def _ordered(entries: Entries) -> list[tuple[str, str]]:
    """Ranked kinds first, then in the order of the catalog; variants of a method as they came."""
    methods = methods_in_order(method for method, _ in entries)
    given = list(entries)
    return sorted(
        given,
        key=lambda key: (
            KINDS.index(method_group(key[0])[1]),
            methods.index(key[0]),
            given.index(key),
        ),
    )


def _label(method: str, variant: str, overlay: Overlay) -> str:
    return f"{overlay.label(method)}, {variant}" if variant else overlay.label(method)


def _mean(cell: Cell) -> float:
    return cell.mean if cell.mean is not None else float("nan")


def _error(cell: Cell) -> float:
    return cell.error if cell.error is not None else float("nan")
