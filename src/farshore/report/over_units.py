"""Columns for several targets or orders: the mean, the worst one, and the paired difference.

If every domain is the target in turn, a target is one observation, and its orders and seeds only
make it more exact. Otherwise an order of the sources is one observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..results.over_units import FEWEST_UNITS, Scores, Unit, over_units, paired_difference
from ..results.ranking import choose_reference
from ..runs.search.selection import select
from .measures import Measure, column_generated, make_cell
from .overlay import Overlay
from .planned import Entries, Gathered, Group, add_cells
from .table import Cell, Column

# A data set with more orders, or more targets, than this has no column for each of them.
MOST_ORDERS, MOST_TARGETS = 4, 12


def add_unit_columns(
    read: Sequence[Gathered],
    entries: Entries,
    columns: Sequence[Column],
    measure: Measure,
    overlay: Overlay,
) -> list[Column]:
    """Add the columns of every data set with several targets, or at least three orders.

    The columns of single targets and orders stay if there are few.
    """
    by_dataset: dict[str, dict[str, Group]] = {}
    for gathered in read:
        for group in gathered.groups:
            by_dataset.setdefault(group.condition.benchmark, {}).setdefault(group.key, group)
    added: list[Column] = []
    hidden: set[str] = set()
    for dataset, groups in by_dataset.items():
        targets = any(group.condition.target for group in groups.values())
        if len(groups) < (2 if targets else FEWEST_UNITS):
            continue
        of_dataset = _of_dataset(read, dataset, measure)
        reference = choose_reference([method for method, _ in of_dataset.scores])
        reference = reference or overlay.baseline
        new = of_dataset.cells(reference)
        for row, cells in new.items():
            entries.setdefault(row, {}).update(cells)
        metric = next(column.metric for column in columns if column.key in groups)
        generated = any(column_generated(entries.values(), key) for key in groups)
        unit = "target" if targets else "order"
        label = overlay.dataset_label(dataset)
        names = {
            "mean": f"{label}, mean over {len(groups)} {unit}s",
            "worst": f"{label}, worst {unit}",
            "difference": f"{label}, paired difference from {overlay.label(reference)} "
            "± half of its 95% interval",
        }
        added += [
            Column(f"{dataset} {kind}", name, metric, generated)
            for kind, name in names.items()
            if any(f"{dataset} {kind}" in cells for cells in new.values())
        ]
        most = MOST_TARGETS if targets else MOST_ORDERS
        hidden |= set(groups) if len(groups) > most else set()
    kept = [column for column in columns if column.key not in hidden]
    return [*added, *kept]


@dataclass(frozen=True)
class _OfDataset:
    """The scores of every row on one data set by unit, and a cell that counts its runs."""

    dataset: str
    scores: dict[tuple[str, str], dict[Unit, dict[Any, float]]]
    counts: dict[tuple[str, str], Cell]

    def cells(self, reference: str) -> Entries:
        """The new cells of every row."""
        of_reference = self.scores.get((reference, ""))
        return {
            row: _of_row(self.dataset, scores, self.counts[row], of_reference)
            for row, scores in self.scores.items()
        }


def _of_dataset(read: Sequence[Gathered], dataset: str, measure: Measure) -> _OfDataset:
    whole = _OfDataset(dataset, {}, {})
    for gathered in read:
        for group in gathered.groups:
            if group.condition.benchmark != dataset:
                continue
            row, condition = (group.condition.method, group.variant), group.condition
            unit = (condition.target,) if condition.target else (condition.order,)
            values = _values(gathered, group, measure)
            whole.scores.setdefault(row, {}).setdefault(unit, {}).update(
                {(condition.order, seed): value for seed, value in values.items()}
            )
            cell = make_cell(group.seeds, gathered.experiment.selection, measure)
            whole.counts[row] = add_cells(whole.counts.get(row), cell)
    return whole


def _of_row(dataset: str, scores: Scores, whole: Cell, reference: Scores | None) -> dict[str, Cell]:
    summary = over_units(scores)
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
