"""Properties of every table: what is missing is said, only complete rows are ranked, marks."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from framed import frame_of_runs, made_frame, made_run, over_data_sets
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats
from statuses import STATES

from farshore.report.cells import WHITE, fill
from farshore.results.frame import method_group
from farshore.results.measures import MEASURES, TARGET, Measure
from farshore.results.published import Published
from farshore.results.summary import rank
from farshore.results.tables import (
    RANKS,
    SECTIONS,
    Cell,
    CellStatus,
    Description,
    Row,
    Table,
    make_table,
)
from farshore.runs import catalog

METHODS = ("finetune", "ewc", "er", "cl-coral", "naive-cl-mmd", "urm", "tent", "of-another-package")
# Scores in percent by method; None has not run.
Scores = dict[str, list[int | None]]
SCORES = some.integers(1, 4).flatmap(
    lambda width: some.dictionaries(
        some.sampled_from(METHODS),
        some.lists(some.one_of(some.none(), some.integers(20, 99)), min_size=width, max_size=width),
        min_size=1,
    )
)


def frame_of(scores: Scores) -> pd.DataFrame:
    """Two seeds of every method on every data set; those without a score are missing."""
    runs = []
    for method, of_method in scores.items():
        for index, score in enumerate(of_method):
            place = {"benchmark": f"data {index}", "condition": f"{method} {index}"}
            for seed in range(2):
                run = made_run(method, None if score is None else score / 100, seed=seed, **place)
                runs.append(run | ({"status": "missing"} if score is None else {}))
    return frame_of_runs(runs)


def table_of(frame: pd.DataFrame, measure: Measure = TARGET, **fields: Any) -> Table:
    ranking = rank(frame) if measure is TARGET else None
    published = fields.pop("published", None)
    description = Description("t", "Title", "about", **fields)
    return make_table(frame, description, measure, ranking, published)


def row(table: Table, name: str) -> Row:
    return next(each for each in table.rows if each.row == name)


@given(SCORES)
def test_a_partial_table_never_looks_complete(scores: Scores) -> None:
    table = table_of(frame_of(scores))
    lacking = any(None in of_method for of_method in scores.values())
    assert table.whole == (not lacking)
    assert table.title == ("Title (partial)" if lacking else "Title")
    ran = [method for method, of_method in scores.items() if any(of_method)]
    assert {each.row for each in table.rows} == set(ran)
    width = len(next(iter(scores.values())))
    absent = [
        f"data {index}"
        for index in range(width)
        if all(of_method[index] is None for of_method in scores.values())
    ]
    assert list(table.absent) == absent
    for name in absent:
        assert any(text.startswith("Nothing has run on") and name in text for text in table.remarks)
    for name in set(scores) - set(ran):
        assert any(
            text.startswith("Nothing has run for") and name in text for text in table.remarks
        )
    for each in table.rows:
        for index, score in enumerate(scores[each.row]):
            if f"data {index}" not in absent:
                cell = each.cells[f"data {index}"]
                assert (cell.status is CellStatus.DONE) == (score is not None)
                assert cell.mean == (None if score is None else pytest.approx(score))


@given(SCORES)
def test_only_complete_continual_rows_are_ranked(scores: Scores) -> None:
    table = table_of(frame_of(scores))
    rows = [each for each in table.rows if each.kind == "continual"]
    wanted = {index for each in rows for index, score in enumerate(scores[each.row]) if score}
    whole = [each for each in rows if all(scores[each.row][index] for index in wanted)]
    ranked = [each for each in table.rows if {"rank", *RANKS} & set(each.cells)]
    assert {each.row for each in ranked} == {each.row for each in whole if len(whole) > 1}
    if len(whole) > 1 and len(wanted) > 1:
        ranks = [each.cells["rank mean"].mean for each in ranked]
        assert sum(ranks) == pytest.approx(len(ranked) * (len(ranked) + 1) / 2)
        assert ranks == sorted(ranks)
    placed = {each.row for each in table.rows if any(cell.place for cell in each.cells.values())}
    assert placed <= {each.row for each in whole}


@given(SCORES, some.integers(0, 5))
def test_the_order_of_runs_does_not_matter(scores: Scores, seed: int) -> None:
    frame = frame_of(scores)
    shuffled = list(range(len(frame)))
    random.Random(seed).shuffle(shuffled)
    first, second = table_of(frame), table_of(frame.iloc[shuffled].reset_index(drop=True))
    assert {each.row: plain(each) for each in first.rows} == {
        each.row: plain(each) for each in second.rows
    }
    assert (first.title, first.whole) == (second.title, second.whole)


def plain(each: Row) -> dict[str, tuple[object, ...]]:
    """The cells, except for the difference: of equal methods, the first one is the reference."""
    return {
        key: (round(cell.mean, 9) if cell.mean is not None else None, cell.place, cell.status)
        for key, cell in each.cells.items()
        if key != "difference"
    }


@given(SCORES)
def test_averages_and_marks(scores: Scores) -> None:
    table = table_of(frame_of(scores))
    width = len(next(iter(scores.values())))
    columns = [column.key for column in table.columns]
    for each in table.rows:
        of_row = [score for score in scores[each.row] if score is not None]
        if "average" in columns:
            average = each.cells["average"]
            assert average.mean == pytest.approx(np.mean(of_row))
            complete = len(of_row) == width
            assert average.status is (CellStatus.DONE if complete else CellStatus.PARTIAL)
            note = f"complete on {len(of_row)} of {width} data sets"
            assert average.notes == (() if complete else (note,))
        else:
            assert sum(key.startswith("data") for key in columns) == 1
    ranked = [each for each in table.rows if {"rank", *RANKS} & set(each.cells)]
    for key in columns:
        if key.startswith("data") or key == "average":
            means = [round(each.cells[key].mean, 9) for each in ranked]
            for each, mean in zip(ranked, means, strict=True):
                place = 1 + sum(other > mean for other in means)
                assert each.cells[key].place == (place if place <= 3 else None)


def test_worked_ranks() -> None:
    """The ranks on three data sets are 1 2 4, 2 1 2.5, 3 3 2.5 and 4 4 1."""
    scores = {"er": [90, 80, 50], "si": [80, 90, 60], "ewc": [70, 70, 60], "fdr": [60, 60, 70]}
    table = table_of(over_data_sets(scores))
    ranks = {"er": (1, 2, 4), "si": (2, 1, 2.5), "ewc": (3, 3, 2.5), "fdr": (4, 4, 1)}
    for name, values in ranks.items():
        cells = row(table, name).cells
        expected = (np.mean(values), stats.gmean(values), np.median(values))
        assert [cells[key].mean for key in RANKS] == pytest.approx(list(expected))
    assert [each.row for each in table.rows] == ["si", "er", "ewc", "fdr"]
    # er is 6.7 points better than ewc on average: 20, 10 and -10.
    difference = row(table, "ewc").cells["difference"]
    assert difference.mean == pytest.approx(-20 / 3)
    half = 4.30265 * np.std([20, 10, -10], ddof=1) / np.sqrt(3)
    assert (difference.low, difference.high) == pytest.approx((-20 / 3 - half, -20 / 3 + half))


def test_one_data_set_has_one_rank() -> None:
    table = table_of(made_frame({"finetune": {"a>b": [50]}, "er": {"a>b": [60]}}))
    assert [column.key for column in table.columns] == ["toy", "rank", "difference"]
    assert [each.cells["rank"].mean for each in table.rows] == [1, 2]
    alone = table_of(made_frame({"er": {"a>b": [60]}}))
    assert [column.key for column in alone.columns] == ["toy"]


def test_a_method_that_is_not_ranked_is_not_marked_although_it_is_best_somewhere() -> None:
    scores = {"er": [50, 60, 70], "si": [49, 59, 69], "ewc": [99, None, 99], "urm": [90, 90, 90]}
    table = table_of(frame_of(scores))
    assert [each.row for each in table.rows] == ["er", "si", "ewc", "urm"]
    assert [each.cells["data 0"].place for each in table.rows] == [1, 2, None, None]


def test_lower_can_be_better() -> None:
    times = {"finetune": 5.0, "er": 1.0, "si": 3.0, "urm": 0.5}
    runs = [
        made_run(method, 0.5, condition=method, result=SimpleNamespace(data={}, seconds=seconds))
        for method, seconds in times.items()
    ]
    measure = Measure("time", lambda result: result.seconds, "s", higher_is_better=False)
    table = table_of(frame_of_runs(runs), measure)
    assert {each.row: each.cells["toy"].mean for each in table.rows} == times
    assert {each.row: each.cells["toy"].place for each in table.rows} == {
        **{"er": 1, "si": 2, "finetune": 3},
        "urm": None,
    }
    assert [column.key for column in table.columns] == ["toy"]


def test_without_a_ranking_rows_stand_in_the_order_of_the_catalog() -> None:
    methods = ["tent", "cl-coral", "theirs", "finetune", "er", "urm"]
    runs = [
        made_run(method, 0.5, condition=method, result=SimpleNamespace(data={}, seconds=1.0))
        for method in methods
    ]
    measure = Measure("time", lambda result: result.seconds, "s")
    table = table_of(frame_of_runs(runs), measure)
    assert [each.row for each in table.rows] == [
        *("finetune", "er", "cl-coral", "theirs", "urm", "tent"),
    ]


def times(*values: float) -> Table:
    cells = [Row("er", "er", "", "g", "continual", {"a": Cell(value)}) for value in values]
    return replace(table_of(made_frame({"er": {"a>b": [60]}})), rows=tuple(cells), unit="ms")


def test_times_get_the_decimals_they_need() -> None:
    assert times(53.7, 0.15).decimals == 1
    assert times(53.7, 0.05).decimals == 2
    assert times(0.002).decimals == 3
    assert times(0.0001).decimals == 4
    assert times(0.0).decimals == 4
    assert replace(times(0.0001), unit="%").decimals == 1


@pytest.mark.parametrize(("cell", "status", "notes"), STATES)
def test_the_status_of_a_cell_follows_from_its_counts(
    cell: Cell, status: CellStatus, notes: tuple[str, ...]
) -> None:
    """What is not as planned has a sentence for readers; why there is no number comes first."""
    assert (cell.status, cell.notes) == (status, notes)


@pytest.mark.parametrize(
    ("status", "title"),
    [
        ("missing", "Title (partial)"),
        ("diverged", "Title (with diverged runs)"),
        ("pruned", "Title (with runs stopped early)"),
    ],
)
def test_a_table_is_whole_only_if_its_cells_are(status: str, title: str) -> None:
    runs = [made_run("er", 0.5, seed=seed) for seed in range(3)]
    runs.append(made_run("er", None, seed=3) | {"status": status})
    table = table_of(frame_of_runs(runs))
    assert (table.title, table.whole) == (title, False)
    assert table.rows[0].cells["toy"].status is CellStatus.PARTIAL


def test_published_numbers_stand_beside_ours_where_they_are_about_the_same() -> None:
    numbers = {
        ("er", "", "data 0"): (51.5, 2.0),
        ("er", "", "data 1"): (61.0, None),
        ("er", "", "average"): (56.3, None),
        ("si", "", "data 0"): (40.0, 1.0),
        ("si", "", "average"): (45.0, None),
        ("si", "again", "data 1"): (1.0, None),
    }
    published = Published(numbers, "Their table", ("They had another memory.",))
    frame = over_data_sets({"er": [50, 60], "si": [48, 58]})
    table = table_of(frame, published=published)
    ours = row(table, "er").cells
    assert (ours["data 0"].published, ours["data 0"].published_error) == (51.5, 2.0)
    assert ours["data 0"].difference == pytest.approx(-1.5)
    assert ours["average"].published == 56.3
    theirs = row(table, "si").cells
    assert (theirs["data 0"].published, theirs["data 1"].published) == (40.0, None)
    assert theirs["average"].published is None  # it is over other data sets
    assert (table.has_published, table.published_title) == (True, "Their table")
    assert table.remarks[-1] == "They had another memory."
    assert not table_of(frame).has_published


def test_every_system_has_a_colour_and_a_section() -> None:
    groups = {method_group(name) for name in catalog.names()}
    assert {kind for _, kind in groups} <= set(SECTIONS)
    assert all(fill(group) != WHITE for group, _ in groups)
    assert len({fill(group) for group, _ in groups}) == len({group for group, _ in groups})
    assert (method_group("theirs"), fill("other")) == (("other", "continual"), WHITE)


def test_every_measure_says_its_unit_and_direction() -> None:
    assert {name: (each.unit, each.higher_is_better) for name, each in MEASURES.items()} == {
        "backward transfer": ("points", True),
        "source performance": ("%", True),
        "run time": ("minutes", False),
        "step time": ("ms", False),
        "naive and tailored": ("%", True),
    }
