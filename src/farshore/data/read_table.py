"""A user's table: reading CSV and Parquet, finding out what each column holds, and refusing
early what cannot be learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import FarshoreError, needs, unknown
from .table import TablePreprocessing

READABLE = (".csv", ".tsv", ".parquet", ".pq")
# A column with this share of numbers is meant as one; the texts in it are mistakes.
MEANT_AS_NUMBERS = 0.9
MOST_CATEGORIES = 100
MOST_CLASSES = 100
MOST_CODES = 20  # more whole numbers than this are taken for a quantity, unless each comes often


def read_table(path: Path) -> pd.DataFrame:
    """A CSV, TSV or Parquet file. Empty fields, NA and `?` are missing values."""
    suffix = path.suffix.lower()
    if suffix not in READABLE:
        raise FarshoreError(
            f"{path} is not a table that can be read: give a {', '.join(READABLE)} file, or a "
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
    """Refuse a column name that comes twice: pandas would give the second one another name."""
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
    """A column that an option names, without missing values; an unknown name is answered with
    the nearest.
    """
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
    """Values as texts; whole numbers without a decimal point, however they were stored."""
    if pd.api.types.is_float_dtype(values) and bool((values == values.round()).all()):
        values = values.astype("int64")
    return values.astype(str).str.strip().to_numpy(dtype=object)


def as_times(values: pd.Series, column: str) -> np.ndarray:
    """Times as numbers that grow: numbers as they are, texts read as dates."""
    if pd.api.types.is_numeric_dtype(values):
        return values.to_numpy(dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns where it guesses a format per value
        times = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    bad = np.flatnonzero(times.isna().to_numpy())
    if len(bad):
        raise FarshoreError(
            f"--time {column}, row {bad[0]}: {values.iloc[bad[0]]!r} is neither a number nor a "
            "date (write 2026-11-15)"
        )
    return times.astype("int64").to_numpy(dtype=float)


def as_classes(values: pd.Series, column: str) -> np.ndarray:
    """Labels as texts. What looks like a measurement is refused: Farshore classifies."""
    count = values.nunique()
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        numbers = values.to_numpy(dtype=float)
        broken = bool((numbers != np.round(numbers)).any())
        if (broken and count > 10) or (count > MOST_CODES and count > len(values) / 50):
            raise FarshoreError(
                f"--label {column} holds {count} different numbers, which looks like a quantity: "
                "farshore only classifies; cut it into "
                "classes first, for example low and high, or write codes as texts, for example c17"
            )
    elif count > MOST_CLASSES and count > len(values) / 2:
        raise FarshoreError(
            f"--label {column} holds {count} different texts in {len(values)} rows: that is no "
            "class label; name another column"
        )
    return as_texts(values)


def plan_columns(frame: pd.DataFrame, columns: Sequence[str]) -> TablePreprocessing:
    """Which columns are numbers and which are categories. A few texts among numbers are refused
    with their place.
    """
    numbers: list[str] = []
    categories: dict[str, None] = {}
    for column in columns:
        values = frame[column]
        if pd.api.types.is_datetime64_any_dtype(values):
            raise FarshoreError(
                f"column {column!r} holds dates: name it as the time (--time {column}), or leave "
                f"it out (--drop {column})"
            )
        if _is_number(values, column):
            numbers.append(column)
        else:
            categories[column] = None
    if not numbers and not categories:
        raise FarshoreError(
            "no column is left to learn from: domain, label, time, group and dropped columns are "
            "no inputs"
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
            f"column {column!r}, row {row}: {values[row]!r} is not a number: mend it, or leave "
            f"the column out (--drop {column})"
        )
    count = present.astype(str).nunique()
    if count > MOST_CATEGORIES and count > len(present) / 2:
        raise FarshoreError(
            f"column {column!r} holds {count} different texts in {len(present)} rows: leave it "
            f"out (--drop {column})"
        )
    return False
