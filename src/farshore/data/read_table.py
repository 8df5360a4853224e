"""Read a user's table, detect the type of each column, and refuse unusable data early."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import FarshoreError, needs, unknown
from .table import TablePreprocessing

READABLE = (".csv", ".tsv", ".parquet", ".pq")
# A column with at least this share of numbers is taken as numeric; texts in it are mistakes.
MEANT_AS_NUMBERS = 0.9
MOST_CATEGORIES = 100
MOST_CLASSES = 100
MOST_CODES = 20  # more distinct integers than this are taken for a quantity, unless all are common


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV, TSV or Parquet file; empty fields, NA and `?` are missing values."""
    suffix = path.suffix.lower()
    if suffix not in READABLE:
        raise FarshoreError(
            f"{path} is not a table that can be read: use a {', '.join(READABLE)} file, or a "
            "folder of images"
        )
    try:
        if suffix in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
        else:
            _check_header(path, "\t" if suffix == ".tsv" else ",")
            frame = pd.read_csv(
                path,
                sep="\t" if suffix == ".tsv" else ",",
                na_values=["?"],
                low_memory=False,
                skipinitialspace=True,
            )
    except ImportError:
        raise needs("parquet", f"{path} needs pyarrow", otherwise="save it as .csv") from None
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise FarshoreError(
            f"{path} cannot be read as a table: {str(error).strip().splitlines()[0]}"
        ) from None
    frame.columns = [str(column).strip() for column in frame.columns]
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise FarshoreError(f"{path} has two columns called {twice[0]!r}: rename one of them")
    if frame.empty:
        raise FarshoreError(f"{path} has no rows")
    return frame.reset_index(drop=True)


def _check_header(path: Path, separator: str) -> None:
    """Refuse duplicate column names, which pandas would silently rename."""
    header = pd.read_csv(
        path,
        sep=separator,
        header=None,
        nrows=1,
        dtype=str,
        skipinitialspace=True,
        keep_default_na=False,
    ).iloc[0]
    names = header.astype(str).str.strip()
    twice = names[names.duplicated() & (names != "")]
    if len(twice):
        raise FarshoreError(f"{path} has two columns called {twice.iloc[0]!r}: rename one of them")


def need_column(frame: pd.DataFrame, column: str, option: str) -> pd.Series:
    """Return the column that an option names; refuse unknown names and missing values."""
    if column not in frame.columns:
        raise unknown(f"column in {option}", column, frame.columns)
    missing = np.flatnonzero(frame[column].isna().to_numpy())
    if len(missing):
        raise FarshoreError(
            f"{option} {column}: {len(missing)} rows have no value there, the first is row "
            f"{missing[0]}: fill or drop them"
        )
    return frame[column]


def as_texts(values: pd.Series) -> np.ndarray:
    """Return values as strings; whole numbers have no decimal point, even if stored as floats."""
    if pd.api.types.is_float_dtype(values) and bool((values == values.round()).all()):
        values = values.astype("int64")
    return values.astype(str).str.strip().to_numpy(dtype=object)


def as_times(values: pd.Series, column: str) -> np.ndarray:
    """Return times as increasing numbers: numbers unchanged, strings parsed as dates."""
    if pd.api.types.is_numeric_dtype(values):
        return values.to_numpy(dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns when it guesses a format per value
        times = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    bad = np.flatnonzero(times.isna().to_numpy())
    if len(bad):
        raise FarshoreError(
            f"--time {column}, row {bad[0]}: {values.iloc[bad[0]]!r} is neither a number nor a "
            "date (write 2026-11-15)"
        )
    return times.astype("int64").to_numpy(dtype=float)


def as_classes(values: pd.Series, column: str) -> np.ndarray:
    """Return labels as strings; refuse what looks like a quantity, because Farshore classifies."""
    count = values.nunique()
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        numbers = values.to_numpy(dtype=float)
        fractional = bool((numbers != np.round(numbers)).any())
        if (fractional and count > 10) or (count > MOST_CODES and count > len(values) / 50):
            raise FarshoreError(
                f"--label {column} has {count} different numbers, which looks like a quantity: "
                "farshore only classifies; divide it into "
                "classes first, for example low and high, or write codes as text, for example c17"
            )
    elif count > MOST_CLASSES and count > len(values) / 2:
        raise FarshoreError(
            f"--label {column} has {count} different texts in {len(values)} rows: that is not a "
            "class label; name another column"
        )
    return as_texts(values)


def plan_columns(frame: pd.DataFrame, columns: Sequence[str]) -> TablePreprocessing:
    """Decide which columns are numbers and which are categories.

    A few texts in a column of numbers are refused, with their row.
    """
    numbers: list[str] = []
    categories: dict[str, None] = {}
    for column in columns:
        values = frame[column]
        if pd.api.types.is_datetime64_any_dtype(values):
            raise FarshoreError(
                f"column {column!r} contains dates: use it as the time (--time {column}), or leave "
                f"it out (--drop {column})"
            )
        if _is_number(values, column):
            numbers.append(column)
        else:
            categories[column] = None
    if not numbers and not categories:
        raise FarshoreError(
            "no column is left to learn from: domain, label, time, group and dropped columns are "
            "not inputs"
        )
    return TablePreprocessing(numbers, categories, most=MOST_CATEGORIES)


def _is_number(values: pd.Series, column: str) -> bool:
    if pd.api.types.is_numeric_dtype(values):
        return True
    present = values.dropna()
    parsed = pd.to_numeric(present, errors="coerce")
    share = float(parsed.notna().mean()) if len(present) else 1.0
    if share == 1.0:
        return True
    if share >= MEANT_AS_NUMBERS:
        row = int(present.index[np.flatnonzero(parsed.isna().to_numpy())[0]])
        raise FarshoreError(
            f"column {column!r}, row {row}: {values[row]!r} is not a number: fix it, or leave "
            f"the column out (--drop {column})"
        )
    count = present.astype(str).nunique()
    if count > MOST_CATEGORIES and count > len(present) / 2:
        raise FarshoreError(
            f"column {column!r} has {count} different texts in {len(present)} rows: leave it "
            f"out (--drop {column})"
        )
    return False
