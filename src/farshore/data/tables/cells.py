"""Cells of a table as text and as numbers, each cell by itself.

How a cell is read never depends on other rows. A change in one row, for example of the target,
therefore cannot change how another row is read.
"""

import datetime
import decimal
import math
import numbers
import re
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from ...errors import FarshoreError

# What stands for a missing value in every column.
MISSING = frozenset(
    {"", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NULL", "null"}
)
# In a column of numbers these are missing values too; elsewhere `None` may be a word.
MISSING_NUMBER = MISSING | {"None", "none", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN"}
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_LONGER = re.compile(
    r"(?P<whole>-?(0|[1-9]\d*))\.0|(?P<date>\d{4}-\d\d-\d\d)[ T]00:00:00", re.ASCII
)
# Whole floats from here on are not written as integers: they are not exact.
_LARGEST_WHOLE = 2.0**53


def as_texts(values: pd.Series) -> np.ndarray:
    """Return each cell as stripped text, None where it is missing.

    Text stays as it is written. A whole number has no decimal point, even if stored as a float.
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    codes, distinct = pd.factorize(_hashable(values.astype(object).to_numpy(), values.name))
    texts = np.empty(len(distinct) + 1, dtype=object)
    texts[:-1] = [_text(cell, values.name) for cell in distinct]
    texts[-1] = None
    return texts[codes]


def as_numbers(values: pd.Series, advice: str = "fix it") -> np.ndarray:
    """Return each cell as a float, NaN where it is missing; refuse text, with its row."""
    if pd.api.types.is_complex_dtype(values):
        raise FarshoreError(f"column {values.name!r} contains complex numbers: leave it out")
    if pd.api.types.is_numeric_dtype(values):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    texts = as_texts(values)
    parsed = parse_numbers(texts)
    wrong = np.flatnonzero(np.isnan(parsed) & ~is_missing_number(texts))
    if len(wrong):
        row = int(wrong[0])
        raise FarshoreError(
            f"column {values.name!r}, row {values.index[row]}: {texts[row]!r} is not a number: "
            f"{advice}"
        )
    return parsed


def parse_numbers(texts: np.ndarray) -> np.ndarray:
    """Return texts as floats, NaN where a text is missing or not a number; -0 is 0."""
    codes, distinct = pd.factorize(texts)
    parsed = [
        float(text) + 0.0 if isinstance(text, str) and _NUMBER.fullmatch(text) else math.nan
        for text in distinct
    ]
    return np.array([*parsed, math.nan], dtype=np.float64)[codes]


def is_missing_number(texts: np.ndarray) -> np.ndarray:
    """Whether each text stands for a missing number."""
    return pd.isna(texts) | pd.Series(texts, dtype=object).isin(MISSING_NUMBER).to_numpy()


def is_number(text: str) -> bool:
    """Whether a text is written as a number."""
    return _NUMBER.fullmatch(text) is not None


def plain_name(text: str) -> str:
    """Return `1.0` as `1`, a date at midnight as the date, and every other text as it is.

    Other rows decide whether a file has the longer form: another one has a fraction, or a time.
    """
    found = _LONGER.fullmatch(text)
    return text if found is None else found["date"] or str(int(found["whole"]))


def as_known(texts: np.ndarray, known: Collection[str]) -> np.ndarray:
    """Return texts; one that is not known, but whose plain name is, becomes that name."""
    place, distinct = pd.factorize(texts)
    names = [
        name if text not in known and (name := plain_name(text)) in known else text
        for text in distinct
    ]
    return np.array([*names, None], dtype=object)[place]


def _hashable(cells: np.ndarray, column: object) -> np.ndarray:
    """Return cells that can be grouped: equal values of different types stay different."""
    kinds = set(map(type, cells))
    plain = (str, numbers.Number, np.bool_, type(None), type(pd.NA), type(pd.NaT))
    dates = (datetime.date, np.datetime64)
    for kind in kinds:
        if not issubclass(kind, plain + dates):
            raise FarshoreError(
                f"column {column!r} contains {kind.__name__} values, which are neither numbers nor "
                f"text: leave it out (--drop {column})"
            )
    if kinds <= {str, type(None), float} or len(kinds) == 1:
        return cells
    # True == 1 == 1.0 in Python: group by text instead.
    mixed = np.empty(len(cells), dtype=object)
    mixed[:] = [_text(cell, column) for cell in cells]
    return mixed


def _text(cell: Any, column: object) -> str | None:
    """Return one cell as text, None if it is missing."""
    if isinstance(cell, str):
        stripped = cell.strip()
        return None if stripped in MISSING else stripped
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    if isinstance(cell, np.datetime64):
        cell = pd.Timestamp(cell)
    if isinstance(cell, datetime.date):
        return cell.isoformat().replace("T", " ").removesuffix(" 00:00:00")
    if isinstance(cell, numbers.Integral):
        return str(int(cell))
    if isinstance(cell, decimal.Decimal):
        if cell.is_nan():
            return None
        whole = cell.is_finite() and cell == cell.to_integral_value()
        return str(int(cell)) if whole and abs(cell) < _LARGEST_WHOLE else str(cell)
    if isinstance(cell, numbers.Real):
        value = float(cell)
        if math.isnan(value):
            return None
        whole = math.isfinite(value) and value.is_integer() and abs(value) < _LARGEST_WHOLE
        return str(int(value)) if whole else repr(value)
    why = f"column {column!r} contains {type(cell).__name__} values: leave it out (--drop {column})"
    raise FarshoreError(why)
