from __future__ import annotations

import io
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farshore.data.tables.spreadsheet import as_csv_text, plain_cell


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\tx", "\rx", " =1", "\u00a0=1"]
)
def test_a_text_that_would_be_a_formula_gets_an_apostrophe(text: str) -> None:
    assert plain_cell(text) == "'" + text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a;=1+1", "a;'=1+1"),
        ("a; @x;b", "a;' @x;b"),
        ("\n=1+1", "'\n'=1+1"),
        ("a\n=1+1", "a\n'=1+1"),
        ("a\t=1+1", "a\t'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("a|=1", "a|'=1"),
    ],
)
def test_a_part_of_a_text_that_another_separator_makes_a_formula(text: str, plain: str) -> None:
    assert plain_cell(text) == plain


@pytest.mark.parametrize(
    "value", [-1, -0.5, "-0.5", "+3", "-0.5 0.25", "a=b", "a; b", "a;b=1", "", None, "-inf"]
)
def test_numbers_and_plain_texts_stay(value: object) -> None:
    assert plain_cell(value) == value


@given(st.lists(st.text(alphabet="=+-@\t\n; |ax1.,'\"", max_size=6), min_size=1))
def test_no_cell_of_a_file_is_a_formula(texts: list[str]) -> None:
    frame = pd.DataFrame({"=name": texts, "number": [-1.5] * len(texts)})
    read = pd.read_csv(io.StringIO(as_csv_text(frame)), dtype=str, keep_default_na=False)
    assert list(read.columns) == ["'=name", "number"]
    assert set(read["number"]) == {"-1.5"}
    for written, cell in zip(texts, read["'=name"], strict=True):
        assert cell.replace("'", "") == written.replace("'", "")
        parts = re.split(r"[;|\t\n]", cell)
        if any(part.strip().startswith(("=", "+", "-", "@")) for part in parts):
            assert [float(word) for word in cell.split(" ")]  # numbers, or this raises
