"""Read a user's table as it is written, and refuse files that could be misread."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import FarshoreError, needs
from .cells import MISSING_NUMBER, as_texts

READABLE = (".csv", ".tsv", ".parquet", ".pq")
UNNAMED = "Unnamed: "
_SEPARATORS = {"\t": "a tab", ";": "a semicolon", ",": "a comma", "|": "a bar"}

# Numbers are read as Python's `float` reads them; pandas does so by itself from 3.1 on.
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT: dict[str, Any] = {} if _PANDAS >= (3, 1) else {"float_precision": "round_trip"}


def read_table(path: Path, texts: Collection[str] = ()) -> pd.DataFrame:
    """Read a CSV, TSV or Parquet file.

    A column of a CSV file is read as numbers if every cell is a number or missing, otherwise as
    text; the columns in `texts` are always text. Text stays as it is written, except for spaces
    around it: `01` and `1.0` are not `1`. A file whose rows do not fit its header is refused.
    """
    suffix = path.suffix.lower()
    if suffix not in READABLE:
        raise FarshoreError(
            f"{path} is not a table that can be read: use a {', '.join(READABLE)} file, or a "
            "folder of images"
        )
    try:
        if suffix in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
            frame.columns = [str(column).strip() for column in frame.columns]
            _check_names(path, list(frame.columns))
        else:
            frame = _read_text_file(path, "\t" if suffix == ".tsv" else ",", texts)
    except ImportError:
        raise needs("parquet", f"{path} needs pyarrow", otherwise="save it as .csv") from None
    except (OSError, ValueError, pd.errors.ParserError, csv.Error) as error:
        raise FarshoreError(
            f"{path} cannot be read as a table: {str(error).strip().splitlines()[0]}"
        ) from None
    if frame.empty:
        raise FarshoreError(f"{path} has no rows")
    return frame.reset_index(drop=True)


def _read_text_file(path: Path, separator: str, texts: Collection[str]) -> pd.DataFrame:
    """Read numbers where a whole column has them, and the other columns as text."""
    encoding = _find_encoding(path)
    names, rows = _check_fields(path, separator, encoding)
    _check_names(path, names)

    def read(columns: list[int], **options: Any) -> pd.DataFrame:
        frame: pd.DataFrame = pd.read_csv(
            path,
            sep=separator,
            encoding=encoding,
            header=0,
            names=names,
            usecols=columns,
            index_col=False,
            keep_default_na=False,
            skipinitialspace=True,
            low_memory=False,
            **options,
        )
        if len(frame) != rows:
            raise FarshoreError(
                f"{path} cannot be read reliably: two ways of reading it give {rows} and "
                f"{len(frame)} rows; check quotes and line endings, or save it again"
            )
        return frame

    given = [place for place, name in enumerate(names) if name not in texts]
    frame = read(given, na_values=sorted(MISSING_NUMBER), **_EXACT) if given else pd.DataFrame()
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
    others = [place for place, name in enumerate(names) if name not in numeric]
    written = read(others, dtype=object, na_filter=False) if others else pd.DataFrame()
    columns = {
        name: frame[name].astype("float64")
        if name in numeric
        else pd.Series(as_texts(written[name]), dtype=object)
        for name in names
    }
    return _drop_empty_end(pd.DataFrame(columns))


def _find_encoding(path: Path) -> str:
    """Return utf-8, or utf-16 by its byte order mark; refuse a file in neither."""
    with path.open("rb") as file:
        start = file.read(4)
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        with path.open(encoding=encoding) as text:
            for block in iter(lambda: text.read(1 << 20), ""):
                if "\0" in block:
                    raise FarshoreError(f"{path} contains zero bytes: it is not a text file")
    except UnicodeError:
        raise FarshoreError(
            f"{path} is not in UTF-8: save it with that encoding (in a spreadsheet: CSV UTF-8)"
        ) from None
    return encoding


def _check_fields(path: Path, separator: str, encoding: str) -> tuple[list[str], int]:
    """Return the column names and the number of rows; every row must fit the header."""
    with path.open(encoding=encoding, newline="") as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
        names = [name.strip() for name in next((row for row in reader if row), [])]
        if not names:
            raise FarshoreError(f"{path} cannot be read as a table: it is empty")
        rows = 0
        for row in reader:
            if not row:
                continue
            rows += 1
            if len(row) != len(names):
                raise _wrong_fields(path, reader.line_num, names, row, separator)
    other = next((mark for mark in _SEPARATORS if mark in names[0]), None)
    if len(names) == 1 and other is not None:
        raise FarshoreError(
            f"{path} has one column and seems to be separated by {_SEPARATORS[other]}: save it "
            f"with {_SEPARATORS[separator]} between the fields"
        )
    return [name or f"{UNNAMED}{place}" for place, name in enumerate(names)], rows


def _wrong_fields(
    path: Path, line: int, names: list[str], row: list[str], separator: str
) -> FarshoreError:
    mark = _SEPARATORS[separator]
    reason = (
        f"the line ends with {mark}, but the header does not: remove it, or add one to the header"
        if len(row) == len(names) + 1 and row[-1].strip() == ""
        else f"put quotes around fields that contain {mark}, and keep separators of empty fields"
    )
    return FarshoreError(
        f"{path}, line {line}: {len(row)} fields, but the header has {len(names)}: {reason}"
    )


def _check_names(path: Path, names: list[str]) -> None:
    """Refuse duplicate column names, which pandas would silently rename."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise FarshoreError(f"{path} has two columns called {name!r}: rename one of them")
        seen.add(name)


def _drop_empty_end(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop a last column with neither a name nor a value: a separator ends every line."""
    last = frame.columns[-1]
    empty = len(frame.columns) > 1 and last.startswith(UNNAMED) and frame[last].isna().all()
    return frame.drop(columns=last) if empty else frame
