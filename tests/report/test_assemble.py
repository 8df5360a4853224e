"""What holds for any table: ranks among whole rows alone, marks, averages, and partial tables
that say so.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from farshore import catalog
from farshore.report.assemble import Frame, assemble
from farshore.report.names import dataset_label, method_group, method_label, methods_in_order
from farshore.report.table import COLOURS, GROUP_LABELS, SECTIONS, Cell, Column, Table

METHODS = ("finetune", "ewc", "er", "cl-coral", "naive-cl-mmd", "urm", "tent", "of-another-package")
MISSING = Cell(None, seeds_planned=2, trials_planned=1, notes=("missing",))


def cell(value: float) -> Cell:
    return Cell(
        value, 0.1, seeds=2, seeds_planned=2, trials=1, trials_planned=1, values=(value, value)
    )


CELLS = some.one_of(some.just(MISSING), some.integers(0, 100).map(lambda value: cell(float(value))))
ENTRIES = some.integers(1, 4).flatmap(
    lambda width: some.dictionaries(
        some.sampled_from(METHODS).map(lambda name: (name, "")),
        some.lists(CELLS, min_size=width, max_size=width).map(
            lambda cells: {str(place): each for place, each in enumerate(cells)}
        ),
        min_size=1,
    )
)


def made(entries: dict[tuple[str, str], dict[str, Cell]], **frame: object) -> Table:
    width = len(next(iter(entries.values())))
    return assemble(
        Frame("t", "Title", "about", **frame),
        [Column(str(place), f"set {place}") for place in range(width)],
        entries,
    )


@given(ENTRIES)
def test_a_partial_table_never_looks_whole(entries: dict) -> None:
    table = made(entries)
    lacking = any(each is MISSING for cells in entries.values() for each in cells.values())
    assert table.whole == (not lacking)
    assert ("partial" in table.title) == lacking
    left_out = {
        key for key, cells in entries.items() if all(each is MISSING for each in cells.values())
    }
    assert {(row.method, row.variant) for row in table.rows} == set(entries) - left_out
    for method, _ in left_out:
        assert any(
            note.startswith("Nothing has run of") and method_label(method) in note
            for note in table.notes
        )


@given(ENTRIES)
def test_only_whole_continual_rows_rank(entries: dict) -> None:
    table = made(entries)
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
def test_the_order_in_which_rows_came_decides_nothing(entries: dict, seed: int) -> None:
    shuffled = list(entries.items())
    random.Random(seed).shuffle(shuffled)
    first, second = made(entries), made(dict(shuffled))
    assert first.rows == second.rows
    assert first.significance == second.significance


@given(ENTRIES)
def test_averages_and_marks(entries: dict) -> None:
    table = made(entries)
    for row in table.rows:
        there = [each.mean for each in row.cells.values() if each.mean is not None]
        if len(table.columns) > 1:
            assert row.average.mean == pytest.approx(sum(there) / len(there))
            assert bool(row.average.notes) == (len(there) < len(table.columns))
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


def test_fewer_is_better_where_it_is() -> None:
    table = made(
        {("finetune", ""): {"0": cell(5.0)}, ("er", ""): {"0": cell(1.0)}}, higher_is_better=False
    )
    assert {row.method: row.cells["0"].place for row in table.rows} == {"finetune": 2, "er": 1}
    assert {row.method: row.rank_arithmetic for row in table.rows} == {"finetune": 2, "er": 1}
    assert {row.method: row.difference_to_finetune for row in table.rows} == {
        "finetune": 0,
        "er": -4,
    }


def test_generated_data_and_divergence_are_not_missing() -> None:
    generated = replace(cell(5.0), notes=("generated data",))
    assert made({("er", ""): {"0": generated}}).whole
    diverged = replace(cell(5.0), seeds=1, notes=("diverged: 1 of 2 seeds",))
    table = made({("er", ""): {"0": diverged}})
    assert (table.whole, table.title) == (False, "Title (with diverged runs)")


def test_every_system_has_a_label_a_colour_and_a_section() -> None:
    names = catalog.names()
    assert methods_in_order(reversed(names)) == methods_in_order(names)
    assert len({method_label(name) for name in names}) == len(names)
    for name in names:
        group, kind = method_group(name)
        assert group in COLOURS
        assert group in GROUP_LABELS
        assert kind in SECTIONS
    assert method_label("cl-coral") == "★-CL-CORAL"
    assert method_label("naive-cl-fishr") == "Naïve-CL-Fishr"
    assert method_label("er-ace") == "ER-ACE"
    assert (method_label("theirs"), method_group("theirs")) == ("theirs", ("other", "continual"))
    assert dataset_label("theirs") == "theirs"
