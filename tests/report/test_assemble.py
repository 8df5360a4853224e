"""Properties of every table: only complete rows are ranked, marks, averages, statuses."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from farshore.report.assemble import Frame, assemble
from farshore.report.names import method_group, methods_in_order
from farshore.report.overlay import NO_OVERLAY, Overlay
from farshore.report.paper import PAPER
from farshore.report.table import SECTIONS, Cell, Column, Over, Status, Table
from hypothesis import given
from hypothesis import strategies as some
from statuses import PLAN, STATES

from farshore.report.colours import WHITE
from farshore.runs import catalog

METHODS = ("finetune", "ewc", "er", "cl-coral", "naive-cl-mmd", "urm", "tent", "of-another-package")
MISSING = Cell(None, seeds_planned=2, trials_planned=1)


def cell(value: float) -> Cell:
    return Cell(
        value, 0.1, seeds=2, seeds_planned=2, trials=1, trials_planned=1, values=(value, value)
    )


CELLS = some.one_of(some.just(MISSING), some.integers(0, 100).map(lambda value: cell(float(value))))
ENTRIES = some.integers(1, 4).flatmap(
    lambda width: some.dictionaries(
        some.sampled_from(METHODS).map(lambda name: (name, "")),
        some.lists(CELLS, min_size=width, max_size=width).map(
            lambda cells: {str(index): each for index, each in enumerate(cells)}
        ),
        min_size=1,
    )
)


def make_table(entries: dict[tuple[str, str], dict[str, Cell]], **frame: object) -> Table:
    width = len(next(iter(entries.values())))
    return assemble(
        Frame("t", "Title", "about", **frame),
        [Column(str(index), f"set {index}") for index in range(width)],
        entries,
        PAPER,
    )


@given(ENTRIES)
def test_a_partial_table_never_looks_complete(entries: dict) -> None:
    table = make_table(entries)
    lacking = any(each is MISSING for cells in entries.values() for each in cells.values())
    assert table.partial == lacking
    assert table.whole == (not lacking)
    assert ("partial" in table.title) == lacking
    left_out = {
        key for key, cells in entries.items() if all(each is MISSING for each in cells.values())
    }
    assert {(row.method, row.variant) for row in table.rows} == set(entries) - left_out
    assert set(table.lacking_rows) == {PAPER.label(method) for method, _ in left_out}
    width = len(next(iter(entries.values())))
    empty = [
        f"set {index}"
        for index in range(width)
        if all(cells[str(index)] is MISSING for cells in entries.values())
    ]
    assert list(table.lacking_columns) == empty


@given(ENTRIES)
def test_only_complete_continual_rows_are_ranked(entries: dict) -> None:
    table = make_table(entries)
    whole = [
        row
        for row in table.rows
        if row.kind == "continual" and all(each.mean is not None for each in row.cells.values())
    ]
    ranked = [row for row in table.rows if row.ranked]
    assert ranked == (whole if len(whole) > 1 else [])
    if ranked:
        assert sum(row.rank_arithmetic for row in ranked) == pytest.approx(
            len(ranked) * (len(ranked) + 1) / 2
        )
    for row in table.rows:
        if row.kind != "continual":
            assert not any(each.place for each in row.cells.values())
            assert row.average is None or row.average.place is None
    if table.significance is not None:
        assert set(table.significance.methods) == {row.key for row in ranked}


@given(ENTRIES, some.integers(0, 5))
def test_the_order_of_rows_does_not_matter(entries: dict, seed: int) -> None:
    shuffled = list(entries.items())
    random.Random(seed).shuffle(shuffled)
    first, second = make_table(entries), make_table(dict(shuffled))
    assert first.rows == second.rows
    assert first.significance == second.significance


@given(ENTRIES)
def test_averages_and_marks(entries: dict) -> None:
    table = make_table(entries)
    for row in table.rows:
        means = [each.mean for each in row.cells.values() if each.mean is not None]
        if len(table.columns) > 1:
            assert row.average.mean == pytest.approx(sum(means) / len(means))
            assert row.average.over == Over(len(means), len(table.columns))
            assert row.average.status is (
                Status.DONE if len(means) == len(table.columns) else Status.PARTIAL
            )
        else:
            assert row.average is None
    for column in table.columns:
        marked = {
            row.key: row.cells[column.key]
            for row in table.rows
            if row.kind == "continual" and row.cells[column.key].mean is not None
        }
        best = max((each.mean for each in marked.values()), default=None)
        for each in marked.values():
            assert (each.place == 1) == (each.mean == best and len(marked) > 1)


def test_lower_can_be_better() -> None:
    table = make_table(
        {("finetune", ""): {"0": cell(5.0)}, ("er", ""): {"0": cell(1.0)}}, higher_is_better=False
    )
    assert {row.method: row.cells["0"].place for row in table.rows} == {"finetune": 2, "er": 1}
    assert {row.method: row.rank_arithmetic for row in table.rows} == {"finetune": 2, "er": 1}
    assert {row.method: row.difference_to_baseline for row in table.rows} == {
        "finetune": 0,
        "er": -4,
    }


@pytest.mark.parametrize(("cell", "status"), STATES)
def test_the_status_of_a_cell_follows_from_its_counts(cell: Cell, status: Status) -> None:
    assert cell.status is status
    assert cell.ran == (status is not Status.MISSING)
    assert cell.whole <= (status is Status.DONE)
    # Whatever is not as planned has a sentence for readers, and why there is no number is first.
    assert bool(cell.notes) == (status is not Status.DONE)
    if cell.mean is None:
        first = {
            Status.DIVERGED: "diverged",
            Status.PRUNED: "stopped early",
            Status.UNDEFINED: "not defined",
            Status.MISSING: "missing",
        }[status]
        assert cell.notes[0].startswith(first)


@pytest.mark.parametrize(("cell", "status"), STATES)
def test_a_table_is_whole_only_if_its_cells_are(cell: Cell, status: Status) -> None:
    other = Cell(1.0, seeds=2, trials=3, **PLAN)
    table = make_table({("er", ""): {"0": cell}, ("finetune", ""): {"0": other}})
    assert table.partial == cell.lacking
    assert table.diverged == (cell.diverged > 0)
    assert table.pruned == (cell.pruned > 0)
    assert table.whole == (status in (Status.DONE, Status.UNDEFINED))
    assert (table.title == "Title") == table.whole


def test_facts_about_the_data_are_not_defects() -> None:
    generated = replace(cell(5.0), generated=True, part_of_the_data=True)
    assert generated.status is Status.DONE
    assert generated.notes == ("generated data", "part of the data")
    assert make_table({("er", ""): {"0": generated}}).whole


def test_every_system_has_a_label_a_colour_and_a_section() -> None:
    names = catalog.names()
    assert methods_in_order(reversed(names)) == methods_in_order(names)
    assert {method_group(name)[1] for name in names} <= set(SECTIONS)
    assert method_group("theirs") == ("other", "continual")


@pytest.mark.parametrize("overlay", [PAPER, NO_OVERLAY])
def test_every_overlay_labels_and_colours_every_system(overlay: Overlay) -> None:
    names = catalog.names()
    groups = {method_group(name)[0] for name in names}
    assert len({overlay.label(name) for name in names}) == len(names)
    assert len({overlay.group_label(group) for group in groups}) == len(groups)
    for group in groups:
        assert overlay.fill(group) != WHITE or (overlay is PAPER and group == "upper-bound")
    assert len({overlay.line(group) for group in groups}) == len(groups)
    assert (overlay.label("theirs"), overlay.dataset_label("theirs")) == ("theirs", "theirs")
    assert overlay.fill("other") == WHITE
