"""Tables are read as they are written, or refused: checked on generated files."""

from __future__ import annotations

import csv
import gzip
import io
import math
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farshore.data.tables import read_table as reading
from farshore.data.tables.cells import MISSING, MISSING_NUMBER, as_texts, is_number
from farshore.data.tables.columns import check_class_labels, need_texts, need_times, plan_columns
from farshore.data.tables.read_table import TextForm, read_chunks, read_table
from farshore.errors import FarshoreError

few = settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
characters = st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"])
cells = st.one_of(
    st.text(characters, max_size=6),
    st.sampled_from(["1", "01", "1.0", " 1 ", "1_000", "1,5", "0x1F", "1e5", "-.5", "+7", "inf"]),
    st.sampled_from(["True", "TRUE", "false", "NA", "?", "None", "null", "", "nan", "2026-01-02"]),
    st.sampled_from(["31/12/2026", "12/31/2026", '"', 'a"b', "a,b", "a;b", "a\tb", "a\nb", "١٢"]),
    st.floats(allow_nan=False).map(repr),
    st.integers().map(str),
)
names = st.lists(
    st.text(characters, min_size=1, max_size=5).map(str.strip).filter(bool),
    min_size=2,
    max_size=4,
    unique=True,
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Column names and rows of text; a column often has one kind of cell."""
    header = draw(names)
    kinds = [
        draw(st.sampled_from([cells, st.integers().map(str), st.floats(allow_nan=False).map(repr)]))
        for _ in header
    ]
    rows = draw(st.lists(st.tuples(*kinds).map(list), min_size=1, max_size=6))
    return header, rows


def as_written(frame: pd.DataFrame, column: str, written: list[str]) -> bool:
    """Whether a column that was read says what was written, cell by cell."""
    if pd.api.types.is_numeric_dtype(frame[column]):
        expected = [
            float("nan") if cell.strip() in MISSING_NUMBER else float(cell) for cell in written
        ]
        return np.array_equal(frame[column].to_numpy(), expected, equal_nan=True)
    return frame[column].tolist() == [
        None if cell.strip() in MISSING else cell.strip() for cell in written
    ]


written_tables = {
    "table": tables(),
    "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    "separator": st.sampled_from([",", "\t"]),
    "ending": st.sampled_from(["\n", "\r\n"]),
    "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    "as_text": st.booleans(),
}
# Without pyarrow, in small pieces, and in chunks of a few rows, a file says the same.
ways = st.sampled_from([(None, 1 << 20), ("pyarrow", 1 << 20), (None, 16), ("pyarrow", 64)])
numbers_of_rows = st.sampled_from([math.inf, 1, 2, 3])
damaged_lines = st.lists(
    st.lists(st.one_of(cells, st.just("7")), max_size=5).map(",".join), min_size=1, max_size=6
)


def marks_outside_quotes(path: Path, encoding: str) -> list[str]:
    """The separators that stand in the header, outside quotes."""
    with path.open(encoding=encoding, newline="") as file:
        quoted, header = False, ""
        for character in file.read().lstrip("\n"):
            quoted ^= character == '"'
            if character == "\n" and not quoted and header.strip():
                break
            header += "" if quoted else character
    return [mark for mark in ",;\t|" if mark in header]


def check_written(
    folder: Path,
    table: tuple[list[str], list[list[str]]],
    quoting: Literal[0, 1],
    separator: str,
    ending: str,
    encoding: str,
    as_text: bool,
    way: tuple[str | None, int] = ("pyarrow", 1 << 20),
    at_once: float = math.inf,
) -> None:
    header, rows = table
    path = folder / ("t.csv" if separator == "," else "t.tsv")
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, quoting=quoting, delimiter=separator, lineterminator=ending).writerows(
            [header, *rows]
        )
    texts, form = header if as_text else (), None
    if separator == "," and len(marks_outside_quotes(path, encoding)) > 1:
        with pytest.raises(FarshoreError, match="several ways: say --separator"):
            read_table(path, texts)
        form = TextForm(separator=separator)
    chunks = read_by(way, path, texts, form, at_once)
    assert sum(map(len, chunks)) == len(rows)
    assert [row for frame in chunks for row in frame.index] == list(range(len(rows)))
    for frame in chunks:
        assert list(frame.columns) == header
        assert len(frame) <= at_once
        for place, column in enumerate(header):
            written = [rows[row][place] for row in frame.index]
            assert as_written(frame, column, written), column
            if as_text:
                assert frame[column].dtype == object


def read_by(
    way: tuple[str | None, int], path: Path, texts: Any, form: TextForm | None, at_once: float
) -> list[pd.DataFrame]:
    with (
        patch.object(reading, "find_spec", lambda name: way[0]),
        patch.object(reading, "PIECE", way[1]),
    ):
        return list(read_chunks(path, texts, form, at_once))


def check_damaged(
    folder: Path,
    lines: list[str],
    way: tuple[str | None, int] = ("pyarrow", 1 << 20),
    at_once: float = math.inf,
) -> None:
    path = folder / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    try:
        chunks = read_by(way, path, (), None, at_once)
    except FarshoreError:
        return
    mark = (marks_outside_quotes(path, "utf-8") or [","])[0]
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=mark, skipinitialspace=True)
    parsed = [row for row in reader if row]
    assert {len(row) for row in parsed} == {len(parsed[0])}
    assert sum(map(len, chunks)) == len(parsed) - 1
    for frame in chunks:
        for place, column in enumerate(frame.columns):
            written = [parsed[1 + row][place] for row in frame.index]
            assert as_written(frame, column, written)


@few
@given(**written_tables, way=ways, at_once=numbers_of_rows)
def test_a_table_is_read_as_written(tmp_path: Path, **drawn: Any) -> None:
    check_written(tmp_path, **drawn)


@few
@given(lines=damaged_lines, way=ways, at_once=numbers_of_rows)
def test_a_damaged_table_is_read_as_the_csv_rules_say_or_refused(
    tmp_path: Path, **drawn: Any
) -> None:
    check_damaged(tmp_path, **drawn)


@pytest.mark.soak
def test_many_tables_are_read_as_written_or_refused(tmp_path: Path) -> None:
    @settings(few, max_examples=500)
    @given(**written_tables, way=ways, at_once=numbers_of_rows)
    def written(**drawn: Any) -> None:
        check_written(tmp_path, **drawn)

    @settings(few, max_examples=500)
    @given(lines=damaged_lines, way=ways, at_once=numbers_of_rows)
    def damaged(**drawn: Any) -> None:
        check_damaged(tmp_path, **drawn)

    written()
    damaged()


@given(values=st.lists(st.floats(allow_nan=False).map(repr), min_size=1, max_size=8), extra=cells)
def test_another_row_never_changes_how_a_number_is_read(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], extra: str
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    read = []
    for cells_of_x in (values, [*values, extra]):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["x", "y"], *([cell, "a"] for cell in cells_of_x)])
        frame = read_table(path).iloc[: len(values)]
        made = plan_columns(frame, ["x"]).learn(frame)
        read.append((made.state_dict(), made.transform(frame).tolist()))
    assert read[0] == read[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b\n1,2,\n3,4,\n",
            "line 2: 3 fields, but the header has 2: the line ends with a",
        ),
        ("a,b\n1,2\n3\n", r"line 3: 1 fields, but the header has 2"),
        ("a,b\n1,2,3\n", r"put quotes around fields that contain a comma"),
        ('"a;b"\n1\n', "seems to be separated by a semicolon: say --separator ';'"),
        ("a;b,c\n1;2,3\n", "say --separator ',' or --separator ';'"),
        ('a,b\n"1,2\n', "cannot be read as a table"),
        ('a,b\n"x"y,2\n', "cannot be read as a table"),
        ("a,a\n1,2\n", "two columns called 'a'"),
        ("a,b\n", "has no rows"),
        ("", "is empty"),
        ("a,b\n1,\0\n", "zero bytes"),
    ],
)
def test_files_that_could_be_misread_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(FarshoreError, match=message):
        read_table(tmp_path / "t.csv")


FORMS = {
    "gzip": ("t.csv.gz", "utf-8", ",", {}),
    "gzip of tabs": ("t.tsv.gz", "utf-8", "\t", {}),
    "text": ("t.txt", "utf-8", "\t", {}),
    "semicolons": ("t.csv", "utf-8", ";", {}),
    "bars": ("t.CSV", "utf-8-sig", "|", {}),
    "utf-16": ("t.csv", "utf-16", ";", {}),
    "latin-1": ("t.csv", "latin-1", ";", {"encoding": "latin-1"}),
    "cp1252": ("t.csv.gz", "cp1252", "\t", {"encoding": "cp1252"}),
    "decimal comma": ("t.csv", "utf-8", ";", {"decimal": ","}),
    "explicit": ("t.tsv", "utf-8", ";", {"separator": "semicolon"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_as_people_have_them(tmp_path: Path, form: str) -> None:
    name, encoding, separator, options = FORMS[form]
    frame = pd.DataFrame(
        {"where": ["Málaga", "x; y|z", None], "dose": [1.5, -0.25, 3e6], "n": [1, None, 3]}
    )
    text = frame.to_csv(sep=separator, index=False, decimal=options.get("decimal", "."))
    data = text.encode(encoding)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    read = read_table(path, form=TextForm(**options))
    assert read["where"].tolist() == ["Málaga", "x; y|z", None]
    numbers = plan_columns(read, ["dose", "n"]).learn(read)
    assert numbers.transform(read).tolist() == (
        plan_columns(frame, ["dose", "n"]).learn(frame).transform(frame).tolist()
    )


@pytest.mark.parametrize("way", [(None, 64), ("pyarrow", 64), ("pyarrow", 1 << 20)])
@pytest.mark.parametrize(
    "last",
    ["7,a", "abc,a", "NAN,a", '7,"a"', " 7 ,a", "+7,a", "1e400,a", "7,", "0x1F,a", "7, a b "],
)
def test_what_begins_as_a_column_of_numbers(
    tmp_path: Path, last: str, way: tuple[str | None, int]
) -> None:
    """The first rows never decide what a later cell is."""
    path = tmp_path / "t.csv"
    lines = [f"{row / 4},b" for row in range(1500)]
    path.write_text("\n".join(["x,y", *lines, last, *lines, ""]))
    written = [line.split(",") for line in (*lines, last, *lines)]
    for at_once in (math.inf, 1400):
        chunks = read_by(way, path, (), None, at_once)
        assert sum(map(len, chunks)) == len(written)
        for frame in chunks:
            for place, column in enumerate("xy"):
                cells = [written[row][place].strip('"') for row in frame.index]
                assert as_written(frame, column, cells)


@pytest.mark.parametrize("way", [None, "pyarrow"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3", r"line 1502: 3 fields, but the header has 2"),
        ("1", r"line 1502: 1 fields"),
        ("1,\0", "zero bytes"),
        ('1,"a', "unexpected end of data"),
        ("1," + "a" * 140_000, "a cell has more than 131,072 characters"),
    ],
)
def test_a_fault_far_down_is_found(
    tmp_path: Path, line: str, message: str, way: str | None
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y", *["1,2"] * 1500, line, *["3,4"] * 9, ""]))
    for at_once in (math.inf, 700):
        with pytest.raises(FarshoreError, match=message):
            read_by((way, 1 << 12), path, (), None, at_once)


def test_a_parquet_file_in_chunks(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, None, 4, 5], "b": list("xyzxy")})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=2)
    chunks = list(read_chunks(tmp_path / "t.parquet", rows=3))
    assert [list(chunk.index) for chunk in chunks] == [[0, 1, 2], [3, 4]]
    assert [as_texts(chunk["a"]).tolist() for chunk in chunks] == [["1", "2", None], ["4", "5"]]
    assert [chunk["b"].tolist() for chunk in chunks] == [["x", "y", "z"], ["x", "y"]]


def test_feather_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.0], "b": ["x", None]})
    frame.to_feather(tmp_path / "t.feather")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.feather"), frame, check_dtype=False)
    with pytest.raises(FarshoreError, match="--decimal is only for text files"):
        read_table(tmp_path / "t.feather", form=TextForm(decimal=","))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a;b\n1;2\n", {"separator": ":"}, "--separator ':' is not allowed"),
        ("a;b\n1;2\n", {"encoding": "utf-9"}, "--encoding 'utf-9' is unknown"),
        ("a;b\n1;2\n", {"encoding": "hex"}, "--encoding 'hex' is unknown"),
        ("a;b\n1;2\n", {"decimal": "'"}, "--decimal"),
        ("a;b\ncafé;2\n", {"encoding": "ascii"}, "not in --encoding ascii"),
        ("a,b\n1,2\n", {"decimal": ","}, "--decimal , is ambiguous"),
        ("a;b\n1,5;2\n1.234;3\n", {"decimal": ","}, "column 'a' has '1.234'"),
    ],
)
def test_options_that_cannot_be_right_are_refused(
    tmp_path: Path, text: str, options: dict[str, str], message: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(FarshoreError, match=message):
        read_table(tmp_path / "t.csv", form=TextForm(**options))


def test_a_decimal_comma_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n3;3\n")
    frame = read_table(tmp_path / "t.csv")
    with pytest.raises(FarshoreError, match="column 'a' has numbers with a decimal comma"):
        plan_columns(frame, ["a", "b"])


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\ncafé,2\n".encode("latin-1"))
    with pytest.raises(FarshoreError, match=r"is not in UTF-8: .*--encoding cp1252"):
        read_table(tmp_path / "t.csv")


def test_a_separator_at_the_end_of_every_line_is_no_column(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,\n1,x,\n2,y,\n")
    assert list(read_table(tmp_path / "t.csv").columns) == ["a", "b"]


def test_a_column_of_row_numbers_without_a_name_is_no_input(tmp_path: Path) -> None:
    pd.DataFrame({"x": [5.0, 6.0]}).to_csv(tmp_path / "t.csv")
    frame = read_table(tmp_path / "t.csv")
    with pytest.raises(FarshoreError, match="'Unnamed: 0' has no name in the file"):
        plan_columns(frame, list(frame.columns))
    assert list(plan_columns(frame, ["x"]).numbers) == ["x"]


def test_parquet_columns_of_other_kinds_are_refused_unless_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "x": [1.0, 2.0],
            "list": [[1], [2]],
            "struct": [{"a": 1}, {"a": 2}],
            "bytes": [b"a", b"b"],
            "inf": [np.inf, 1.0],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    for column in ("list", "struct", "bytes"):
        with pytest.raises(FarshoreError, match=rf"column '{column}' contains .*--drop {column}"):
            plan_columns(read, ["x", column])
        with pytest.raises(FarshoreError, match="neither numbers nor text"):
            need_texts(read, column, "--label")
    for option in ("--label", "--domain", "--group"):
        with pytest.raises(FarshoreError, match=f"{option} inf, row 0: the value is infinite"):
            need_texts(read, "inf", option)
    with pytest.raises(FarshoreError, match="infinite"):
        need_times(read, "inf", None)
    assert list(plan_columns(read, ["x"]).numbers) == ["x"]


def test_text_of_typed_cells_does_not_depend_on_other_rows() -> None:
    assert as_texts(pd.Series([1.0, 2.5, None])).tolist() == ["1", "2.5", None]
    assert as_texts(pd.Series([1.0, 2.0])).tolist() == ["1", "2"]
    assert as_texts(pd.Series([True, 1, "1", "01"])).tolist() == ["True", "1", "1", "01"]
    assert as_texts(pd.Series([3, 1, None], dtype="Int64")).tolist() == ["3", "1", None]
    assert as_texts(pd.Series(pd.Categorical([3, 1, None]))).tolist() == ["3", "1", None]


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        (["01/02/2026", "03/04/2026"], r"--time-format '%d/%m/%Y' or '%m/%d/%Y'"),
        (["13/02/2026", "03/04/2026"], r"--time-format '%d/%m/%Y'$"),
        (["13/02/2026", "03/14/2026"], "for example %d/%m/%Y"),
        (["2026-01-01", "01/02/2026"], "for example %d/%m/%Y"),
    ],
)
def test_a_date_is_never_guessed(written: list[str], advice: str) -> None:
    with pytest.raises(FarshoreError, match=advice):
        need_times(pd.DataFrame({"day": written}), "day", None)


def test_times_are_numbers_or_dates_and_no_row_decides_for_the_others() -> None:
    years = pd.DataFrame({"day": ["2021", "20200101", "2022"]})
    assert need_times(years, "day", None).tolist() == [2021, 20200101, 2022]
    years.loc[2, "day"] = "2022-01-01"
    with pytest.raises(
        FarshoreError, match="numbers such as '2021' and dates such as '2022-01-01'"
    ):
        need_times(years, "day", None)
    years.loc[1, "day"] = "soon"
    with pytest.raises(FarshoreError, match="row 1: 'soon' is neither a number nor an ISO date"):
        need_times(years, "day", None)


def test_a_time_format_that_does_not_fit_is_refused() -> None:
    frame = pd.DataFrame({"day": ["13/02/2026", "2026-02-14"]})
    with pytest.raises(FarshoreError, match=r"row 1: '2026-02-14' does not have the form %d/%m/%Y"):
        need_times(frame, "day", "%d/%m/%Y")
    with pytest.raises(FarshoreError, match="cannot be used"):
        need_times(frame, "day", "%Q")


def test_a_declared_category_keeps_its_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("code,x\n01,1\n1,2\n1.0,3\n")
    frame = read_table(tmp_path / "t.csv", {"code"})
    made = plan_columns(frame, ["code", "x"], ["code"]).learn(frame)
    assert made.categories["code"] == ["01", "1", "1.0"]
    with pytest.raises(FarshoreError, match="unknown column in --categories 'cod'"):
        plan_columns(frame, ["code", "x"], ["cod"])


def test_dates_as_text_are_no_categories() -> None:
    frame = pd.DataFrame({"seen": ["2026-01-02", "2026-01-03 10:00"]})
    plan = plan_columns(frame, ["seen"])
    assert (plan.categories, list(plan.dates)) == ({}, ["seen"])


def test_one_class_written_in_two_ways_is_refused() -> None:
    with pytest.raises(FarshoreError, match=r"has '0' and '0.0', the same number"):
        check_class_labels(np.array(["0", "0.0", "1"], dtype=object), "y")


def test_labels_as_numbers_in_text_are_checked_too() -> None:
    labels = np.array([str(number / 7) for number in range(30)], dtype=object)
    assert all(map(is_number, labels))
    with pytest.raises(FarshoreError, match="looks like a quantity"):
        check_class_labels(labels, "y")


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_last_line_needs_no_end(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_bytes(("site,a,y\ns1,0.5,u\ns1,1.5,v" + end).encode())
    frame = read_table(tmp_path / "t.csv")
    assert frame.to_numpy().tolist() == [["s1", 0.5, "u"], ["s1", 1.5, "v"]]
