"""From cells to a table: the paper's numbers beside them, best three, averages, ranks,
difference to Finetune, significance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..catalog import KINDS
from ..evaluation.ranks import places, rank_methods
from .conclusions import judge
from .names import method_group, method_label, methods_in_order
from .paper import PaperTable
from .table import Cell, Column, Row, Table

# Cells of a table by method and variant, then by column.
Entries = Mapping[tuple[str, str], Mapping[str, Cell]]


@dataclass(frozen=True)
class Frame:
    """What is said about a table, apart from its numbers."""

    name: str
    title: str
    about: str
    unit: str = "%"
    higher_is_better: bool = True
    # Whether the columns are data sets, so that an average and ranks over them mean something.
    averaged: bool = True
    ranked: bool = True
    # Whether something is known to be missing that has no cell.
    partial: bool = False
    notes: tuple[str, ...] = ()


def assemble(
    frame: Frame, columns: Sequence[Column], entries: Entries, paper: PaperTable | None = None
) -> Table:
    """A table of these cells. Rows and columns in which nothing has run go into the notes, and
    the table counts as partial.
    """
    lacking_rows = [
        key for key, cells in entries.items() if not any(ran(cell) for cell in cells.values())
    ]
    kept = {key: cells for key, cells in entries.items() if key not in lacking_rows}
    lacking_columns = [
        column
        for column in columns
        if not any(ran(cells[column.key]) for cells in kept.values() if column.key in cells)
    ]
    there = [column for column in columns if column not in lacking_columns]
    notes = [
        *(
            [f"Nothing has run on {_listing([column.label for column in lacking_columns])}."]
            if lacking_columns
            else []
        ),
        *(
            [f"Nothing has run of {_listing([_label(*key) for key in lacking_rows])}."]
            if lacking_rows
            else []
        ),
        *frame.notes,
    ]
    rows = [_row(key, kept[key], there, paper) for key in _ordered(kept)]
    partial = (
        frame.partial
        or bool(lacking_rows or lacking_columns)
        or any(_missing(cell) for row in rows for cell in row.cells.values())
    )
    diverged = any(
        note.startswith("diverged")
        for row in rows
        for cell in row.cells.values()
        for note in cell.notes
    )
    ranked = frame.ranked and frame.averaged
    rows = _placed(rows, there, frame.higher_is_better)
    if frame.averaged:
        rows = _averaged(rows, there, frame, paper)
    if ranked:
        rows = _ranked(rows, there, frame.higher_is_better)
        without = [row.label for row in rows if row.kind == "continual" and not row.ranked]
        if without:
            notes.append(f"Without rank, for a number is missing: {_listing(without)}.")
    chosen = {row.key: [row.cells[column.key] for column in there] for row in rows if row.ranked}
    endings = [
        word for word, true in (("partial", partial), ("with diverged runs", diverged)) if true
    ]
    return Table(
        name=frame.name,
        title=frame.title + (f" ({', '.join(endings)})" if endings else ""),
        about=frame.about,
        columns=tuple(there),
        rows=tuple(rows),
        notes=(*notes, *(paper.notes if paper is not None and rows else ())),
        whole=not endings,
        higher_is_better=frame.higher_is_better,
        unit=frame.unit,
        significance=judge(
            chosen,
            [column.label for column in there],
            {row.key: row.label for row in rows},
            higher_is_better=frame.higher_is_better,
        )
        if ranked
        else None,
        ranked=ranked,
        paper=paper.name if paper is not None else "",
        paper_title=paper.title if paper is not None else "",
    )


def ran(cell: Cell) -> bool:
    """Whether any run of a cell has ended, be it by diverging."""
    return cell.mean is not None or any(
        note == "not defined" or note.startswith("diverged") for note in cell.notes
    )


def _missing(cell: Cell) -> bool:
    """Whether something planned has not run; a diverged seed has."""
    return "missing" in cell.notes or any(
        " seeds" in note or " trials" in note
        for note in cell.notes
        if not note.startswith("diverged")
    )


def _row(
    key: tuple[str, str],
    cells: Mapping[str, Cell],
    columns: Sequence[Column],
    paper: PaperTable | None,
) -> Row:
    method, variant = key
    group, kind = method_group(method)
    beside = {}
    for column in columns:
        if column.key in cells:
            number = paper.number(method, column.key, variant) if paper is not None else None
            beside[column.key] = (
                replace(cells[column.key], paper=number[0], paper_error=number[1])
                if number is not None
                else cells[column.key]
            )
    return Row(method, _label(method, variant), group, kind, beside, variant=variant)


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
        found = [row.cells[column.key] for row in there]
        by_place = places(
            [_mean(cell) for cell in found],
            [_error(cell) for cell in found],
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
    rows: Sequence[Row], columns: Sequence[Column], frame: Frame, paper: PaperTable | None
) -> list[Row]:
    """Averages over the columns, each beside the paper's over the same ones; and the difference
    to Finetune's.
    """
    averages = [_average(row, columns, paper) for row in rows]
    full = [
        number
        for number, row in enumerate(rows)
        if row.kind == "continual" and _complete(row, columns)
    ]
    if len(full) > 1:
        for number, place in zip(
            full,
            places([_mean(averages[n]) for n in full], higher_is_better=frame.higher_is_better),
            strict=True,
        ):
            averages[number] = replace(averages[number], place=place)
    base = next(
        (
            averages[number].mean
            for number in full
            if rows[number].method == "finetune" and not rows[number].variant
        ),
        None,
    )
    return [
        replace(
            row,
            average=averages[number]
            if len(columns) > 1
            else None,  # of one column it would be the column again
            difference_to_finetune=_mean(averages[number]) - base
            if base is not None and _complete(row, columns)
            else None,
            paper_ranks=paper.ranks.get(row.method) if paper is not None else None,
        )
        for number, row in enumerate(rows)
    ]


def _average(row: Row, columns: Sequence[Column], paper: PaperTable | None) -> Cell:
    cells = [row.cells[column.key] for column in columns if column.key in row.cells]
    there = [cell for cell in cells if cell.mean is not None]
    if not there:
        return Cell(None, notes=("missing",))
    mean = sum(cell.mean for cell in there if cell.mean is not None) / len(there)
    theirs = [cell.paper for cell in there if cell.paper is not None]
    beside = sum(theirs) / len(theirs) if len(theirs) == len(there) else None
    if beside is not None and paper is not None and len(there) == len(paper.datasets()):
        beside = paper.averages.get(row.method, beside)
    return Cell(
        mean,
        paper=beside,
        seeds=min(cell.seeds for cell in there),
        seeds_planned=max(cell.seeds_planned for cell in cells),
        trials=min(cell.trials for cell in there),
        trials_planned=max(cell.trials_planned for cell in cells),
        notes=()
        if len(there) == len(columns)
        else (f"over {len(there)} of {len(columns)} data sets",),
    )


def _ranked(rows: Sequence[Row], columns: Sequence[Column], higher: bool) -> list[Row]:
    """Ranks of the continual rows that have a number in every column."""
    chosen = [row for row in rows if row.kind == "continual" and _complete(row, columns)]
    if len(chosen) < 2 or not columns:
        return list(rows)
    found = rank_methods(
        [[_mean(row.cells[column.key]) for column in columns] for row in chosen],
        higher_is_better=higher,
    )
    summed = {
        row.key: (
            float(found.arithmetic[place]),
            float(found.geometric[place]),
            float(found.median[place]),
        )
        for place, row in enumerate(chosen)
    }
    return [
        replace(row, rank_arithmetic=of[0], rank_geometric=of[1], rank_median=of[2])
        if (of := summed.get(row.key)) is not None
        else row
        for row in rows
    ]


def _complete(row: Row, columns: Sequence[Column]) -> bool:
    return all(
        column.key in row.cells and row.cells[column.key].mean is not None for column in columns
    )


def _ordered(entries: Entries) -> list[tuple[str, str]]:
    """Ranked kinds first; then as in the paper, variants of a method as they came."""
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


def _label(method: str, variant: str) -> str:
    return f"{method_label(method)}, {variant}" if variant else method_label(method)


def _mean(cell: Cell) -> float:
    return cell.mean if cell.mean is not None else float("nan")


def _error(cell: Cell) -> float:
    return cell.error if cell.error is not None else float("nan")


def _listing(names: Sequence[str]) -> str:
    return ", ".join(names)
