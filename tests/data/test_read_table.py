from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farshore.data.tables.cells import as_texts
from farshore.data.tables.columns import (
    check_class_labels,
    column_notes,
    need_texts,
    need_times,
    plan_columns,
)
from farshore.data.tables.read_table import read_table
from farshore.data.tables.table import TablePreprocessing
from farshore.errors import FarshoreError


def test_question_marks_and_blanks_are_missing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a, b\n1, x\n?, \n3, NA\n")
    frame = read_table(tmp_path / "t.csv")
    assert list(frame.columns) == ["a", "b"]
    assert frame["a"].isna().tolist() == [False, True, False]
    assert frame["b"].isna().tolist() == [False, True, True]
    (tmp_path / "t.tsv").write_text("a\tb\n1\tx\n")
    assert read_table(tmp_path / "t.tsv")["b"].tolist() == ["x"]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    pd.DataFrame([[1, 2]], columns=["a", "a "]).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(FarshoreError, match="two columns called 'a'"):
        read_table(tmp_path / "t.parquet")


def test_whole_numbers_have_no_decimal_point() -> None:
    assert as_texts(pd.Series([1.0, 2.0])).tolist() == ["1", "2"]
    assert as_texts(pd.Series([1.5, 2.0])).tolist() == ["1.5", "2"]
    assert as_texts(pd.Series([" a", "b "])).tolist() == ["a", "b"]


def times(values: object, time_format: str | None = None) -> list[float]:
    return list(need_times(pd.DataFrame({"t": values}), "t", time_format))


def test_times_are_numbers_or_dates() -> None:
    assert times([3, 1]) == [3.0, 1.0]
    days = times(["2026-01-02", "2026-01-01 12:00"])
    assert days[0] - days[1] == 12 * 3600
    assert times(["02/01/2026", "01/02/2026"], "%d/%m/%Y")[0] == days[0]
    assert times(pd.to_datetime(["2026-01-02 00:00", "2026-01-01 12:00"])) == days


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        (list(range(200)) * 2, "looks like a quantity"),
        (np.linspace(0, 1, 30).tolist(), "looks like a quantity"),
        ([f"patient {n}" for n in range(150)], "not a class label"),
        (list(range(29, 79)) * 18, "looks like a quantity"),  # ages
        (list(range(10)) * 3, None),
        (list(range(100)) * 60, None),  # codes of a hundred classes
        ([0.5, 1.0, 1.5] * 5, None),
        ([True, False] * 5, None),
        ([f"class {n}" for n in range(150)] * 3, None),
    ],
)
def test_a_quantity_is_not_a_class(labels: list[object], refused: str | None) -> None:
    if refused is None:
        check_class_labels(need_texts(pd.DataFrame({"y": labels}), "y", "--label"), "y")
    else:
        with pytest.raises(FarshoreError, match=refused):
            check_class_labels(need_texts(pd.DataFrame({"y": labels}), "y", "--label"), "y")


def test_columns_are_numbers_categories_or_refused() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "text n": ["1", "2.5"],
            "flag": [True, False],
            "c": ["x", "y"],
            "empty": [None, None],
        }
    )
    plan = plan_columns(frame, list(frame.columns))
    assert list(plan.numbers) == ["n", "text n", "empty"]
    assert list(plan.categories) == ["flag", "c"]


def test_dates_become_year_month_and_weekday() -> None:
    stamps = pd.DataFrame({"when": pd.to_datetime(["2026-01-02 00:00", None, "2025-12-31 23:00"])})
    texts = pd.DataFrame({"when": ["2026-01-02", "", "2025-12-31T23:00"], "x": [1, 2, 3]})
    other = pd.DataFrame({"when": ["02.01.2026", None, "31.12.2025"], "x": [1, 2, 3]})
    plans = [
        plan_columns(stamps, ["when"]),
        plan_columns(texts, ["when", "x"]),
        plan_columns(other, ["x", "when"], time_format="%d.%m.%Y"),
    ]
    for plan, frame in zip(plans, (stamps, texts, other), strict=True):
        plan = TablePreprocessing.from_state(plan.state_dict()).learn(frame)
        assert plan.numbers["when (year)"] == (2025.5, 0.5)
        assert plan.numbers["when (month)"] == (6.5, 5.5)
        assert plan.numbers["when (weekday)"] == (3.0, 1.0)  # a Friday and a Wednesday
        place = plan.features.index("when (year)")
        assert plan.transform(frame)[:, place : place + 2].tolist() == [[1, 0], [0, 1], [-1, 0]]
        wrong = frame.assign(when=frame["when"].astype(object))
        wrong.loc[2, "when"] = "soon"
        with pytest.raises(FarshoreError, match="column 'when', row 2: 'soon' is not"):
            plan.transform(wrong)
    with pytest.raises(FarshoreError, match=r"'02.01.2026', .*--time-format '%d.%m.%Y'"):
        plan_columns(other, ["x", "when"])


def test_too_many_values_for_a_category_are_refused_by_name() -> None:
    codes = pd.DataFrame({"code": [f"c{n:x}x" for n in range(150)]})
    with pytest.raises(FarshoreError, match=r"column 'code' has 150 .*--drop code.*--text code"):
        plan_columns(codes, ["code"])


def test_identifiers_and_constants_are_named() -> None:
    rows = np.arange(20)
    frame = pd.DataFrame(
        {
            "patient_id": 7 * rows + 3,
            "sample": rows + 500,
            "patientID": [f"p{n}" for n in rows],
            "age": rows[::-1] ** 2,
            "dose": rows / 8,
            "same": 4,
            "empty": None,
            "code": rows % 3,
        }
    )
    notes = column_notes(frame, plan_columns(frame, list(frame.columns)))
    assert len(notes) == 2
    assert "in 'patient_id', 'sample', 'patientID': " in notes[0]
    assert "--drop patient_id,sample,patientID" in notes[0]
    assert "'same', 'empty'" in notes[1]
    assert column_notes(frame[["age", "dose"]], plan_columns(frame, ["age", "dose"])) == []


def test_wrong_columns_are_named_all_at_once() -> None:
    frame = pd.DataFrame({name: [1.0, 2.0] for name in ("age", "dose", "pulse", "x")})
    plan = plan_columns(frame, list(frame.columns)).learn(frame)
    given = frame.rename(columns={"age": "AGE", "dose": "dosage"}).drop(columns="x")
    with pytest.raises(FarshoreError) as refused:
        plan.transform(given.assign(extra=1))
    message = str(refused.value)
    assert "no column 'age' (is it 'AGE'?), 'dose' (is it 'dosage'?), 'x'" in message
    assert "not known: 'AGE', 'dosage', 'extra'" in message


def test_rare_categories_are_other() -> None:
    frame = pd.DataFrame({"c": ["a"] * 3 + ["b"] * 2 + ["c"] + ["d"]})
    made = TablePreprocessing([], {"c": None}, most=2).learn(frame)
    assert made.features == ["c = a", "c = b", "c = (other)", "c = (missing)"]
    assert made.transform(pd.DataFrame({"c": ["d", None, "a"]})).tolist() == [
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 0, 0, 0],
    ]


def test_a_column_empty_in_the_first_domain_is_scaled_when_first_seen() -> None:
    made = TablePreprocessing(["x"])
    made.learn(pd.DataFrame({"x": [None, None]}))
    assert made.transform(pd.DataFrame({"x": [None]})).tolist() == [[0.0, 1.0]]
    made.learn(pd.DataFrame({"x": [10.0, 20.0, 30.0]}))
    fixed = made.numbers["x"]
    assert fixed is not None
    assert fixed[0] == 20.0
    made.learn(pd.DataFrame({"x": [1000.0, 2000.0]}))
    assert made.numbers["x"] == fixed
    assert made.transform(pd.DataFrame({"x": [20.0]})).tolist() == [[0.0, 0.0]]


values = st.one_of(st.none(), st.floats(-1e9, 1e9), st.integers(-1000, 1000))
texts = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "Ä", ""]))


@given(
    st.lists(st.tuples(values, texts), min_size=1, max_size=30),
    st.lists(st.tuples(values, texts), min_size=1, max_size=10),
)
def test_features_are_finite_and_survive_a_round_trip(
    first: list[tuple[object, object]], later: list[tuple[object, object]]
) -> None:
    frame = pd.DataFrame(
        {
            "n": pd.Series([n for n, _ in first], dtype=object),
            "t": pd.Series([t for _, t in first], dtype=object),
        }
    )
    other = pd.DataFrame(
        {
            "n": pd.Series([n for n, _ in later], dtype=object),
            "t": pd.Series([t for _, t in later], dtype=object),
        }
    )
    made = TablePreprocessing(["n"], {"t": None}).learn(frame)
    features = made.transform(other)
    assert features.shape == (len(later), len(made.features))
    assert bool(features.isfinite().all())
    assert features.abs().max() <= 10
    again = TablePreprocessing.from_state(made.state_dict())
    assert bool((again.transform(other) == features).all())
