"""Columns for several orders of the sources: mean over orders, worst order, paired difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..evaluation.over_orders import FEWEST_ORDERS, Scores, over_orders, paired_difference
from ..search.selection import select
from ..store.ranking import choose_reference
from .measures import Measure, column_generated, make_cell
from .overlay import Overlay
from .planned import Entries, Gathered, Group
from .table import Cell, Column

# A data set with more orders than this has no column per order.
MOST_COLUMNS = 4


def add_order_columns(
    read: Sequence[Gathered],
    entries: Entries,
    columns: Sequence[Column],
    measure: Measure,
    overlay: Overlay,
) -> list[Column]:
    """Add the columns of every data set that has at least three orders; return all columns.

    The columns of single orders stay if there are few.
    """
    by_dataset: dict[str, dict[str, None]] = {}
    for gathered in read:
        for group in gathered.groups:
            by_dataset.setdefault(group.condition.benchmark, {})[group.key] = None
    added: list[Column] = []
    hidden: set[str] = set()
    for dataset, keys in by_dataset.items():
        if len(keys) < FEWEST_ORDERS:
            continue
        methods = [
            group.condition.method
            for gathered in read
            for group in gathered.groups
            if group.condition.benchmark == dataset
        ]
        reference = choose_reference(methods) or overlay.baseline
        new = _cells(read, dataset, measure, reference)
        for row, cells in new.items():
            entries.setdefault(row, {}).update(cells)
        metric = next(column.metric for column in columns if column.key in keys)
        generated = any(column_generated(entries.values(), key) for key in keys)
        label = overlay.dataset_label(dataset)
        names = {
            "mean": f"{label}, mean over {len(keys)} orders",
            "worst": f"{label}, worst order",
            "difference": f"{label}, paired difference to {overlay.label(reference)} "
            "± half of its 95% interval",
        }
        added += [
            Column(f"{dataset} {kind}", name, metric, generated)
            for kind, name in names.items()
            if any(f"{dataset} {kind}" in cells for cells in new.values())
        ]
        hidden |= set(keys) if len(keys) > MOST_COLUMNS else set()
    return [*added, *(column for column in columns if column.key not in hidden)]


def _cells(read: Sequence[Gathered], dataset: str, measure: Measure, reference: str) -> Entries:
    scores: dict[tuple[str, str], dict[tuple[str, ...], dict[int, float]]] = {}
    whole: dict[tuple[str, str], Cell] = {}
    for gathered in read:
        for group in gathered.groups:
            if group.condition.benchmark != dataset:
                continue
            row = group.condition.method, group.variant
            values = _values(gathered, group, measure)
            scores.setdefault(row, {}).setdefault((group.condition.order,), {}).update(values)
            cell = make_cell(group.seeds, gathered.experiment.selection, measure)
            whole[row] = _added(whole.get(row), cell)
    return {
        row: _of_row(dataset, of_row, whole[row], scores.get((reference, "")))
        for row, of_row in scores.items()
    }


def _of_row(dataset: str, scores: Scores, whole: Cell, reference: Scores | None) -> dict[str, Cell]:
    summary = over_orders(scores)
    if summary is None:
        return {f"{dataset} mean": whole}
    cells = {
        f"{dataset} mean": replace(whole, mean=summary.mean, error=summary.error),
        f"{dataset} worst": replace(whole, mean=summary.worst, error=None),
    }
    if reference is not None and reference is not scores:
        difference = paired_difference(scores, reference)
        if difference is not None and difference.high is not None:
            half = difference.high - difference.mean
            cells[f"{dataset} difference"] = replace(whole, mean=difference.mean, error=half)
    return cells


def _values(gathered: Gathered, group: Group, measure: Measure) -> dict[int, float]:
    values = {}
    for number, seed in group.seeds.items():
        trial = select(seed.trials, gathered.experiment.selection) if seed.trials else None
        value = measure.read(trial.result) if trial is not None else None
        if value is not None:
            values[number] = value
    return values


def _added(sum_of: Cell | None, cell: Cell) -> Cell:
    """Counts of seeds over orders; the number itself is set later."""
    if sum_of is None:
        return cell
    return replace(
        sum_of,
        mean=sum_of.mean if sum_of.mean is not None else cell.mean,
        seeds=sum_of.seeds + cell.seeds,
        seeds_planned=sum_of.seeds_planned + cell.seeds_planned,
        trials=min(sum_of.trials, cell.trials),
        diverged=sum_of.diverged + cell.diverged,
        pruned=sum_of.pruned + cell.pruned,
        undefined=sum_of.undefined + cell.undefined,
        generated=sum_of.generated or cell.generated,
        part_of_the_data=sum_of.part_of_the_data or cell.part_of_the_data,
        values=(*sum_of.values, *cell.values),
    )
