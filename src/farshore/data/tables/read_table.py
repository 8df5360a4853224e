"""Read a user's table as it is written, and refuse files that could be misread."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...base.files import TABLE_SUFFIXES, check_ends
from ...errors import FarshoreError, needs
from .cells import MISSING_NUMBER, as_texts

UNNAMED = "Unnamed: "
LONGEST_HEADER = 1000  # lines
PARQUET, ARROW = (".parquet", ".pq"), (".feather", ".arrow")
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
# How a separator is typed, where the character itself is hard to type.
_TYPED = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|"}
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DECIMAL_POINT = re.compile(r"[+-]?(\d+\.\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

# Numbers are read as Python's `float` reads them; pandas does so by itself from 3.1 on.
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT: dict[str, Any] = {} if _PANDAS >= (3, 1) else {"float_precision": "round_trip"}


class TextForm(BaseModel):
    """How a text file is written, where that is not the usual way. It belongs to one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    separator: str | None = Field(
        default=None,
        description="character between fields: , ; | or tab; by default that of the header",
    )
    encoding: str | None = Field(
        default=None, description="encoding of a text file that is not UTF-8, for example cp1252"
    )
    decimal: str | None = Field(default=None, description="decimal mark of numbers, . or a comma")

    @field_validator("separator")
    @classmethod
    def _known_separator(cls, value: str | None) -> str | None:
        typed = _TYPED.get(value or "", value)
        if typed is not None and typed not in _SEPARATORS:
            raise FarshoreError(
                f"--separator {value!r} is not allowed: give a comma, a semicolon, a bar or tab, "
                "in quotes"
            )
        return typed

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            "".encode(value)  # other codecs, such as zip, are not for text
            return codecs.lookup(value).name
        except (LookupError, UnicodeError):
            raise FarshoreError(
                f"--encoding {value!r} is unknown: give for example utf-8, cp1252 or latin-1"
            ) from None

    @field_validator("decimal")
    @classmethod
    def _known_decimal(cls, value: str | None) -> str | None:
        if value not in (None, ".", ","):
            raise FarshoreError(f"--decimal {value!r} is not allowed: give . or a comma")
        return None if value == "." else value

    @property
    def flags(self) -> list[str]:
        """The flags that set this form."""
        return [f"--{name}" for name, value in self if value is not None]


def read_table(
    path: Path, texts: Collection[str] = (), form: TextForm | None = None
) -> pd.DataFrame:
    """Read a CSV, TSV, Parquet or Feather file; a text file may be compressed with gzip.

    A column of a text file is read as numbers if every cell is a number or missing, otherwise as
    text; the columns in `texts` are always text. Text stays as it is written, except for spaces
    around it: `01` and `1.0` are not `1`. A file whose rows do not fit its header is refused.
    """
    check_ends(path)
    suffix, form = table_suffix(path), form or TextForm()
    if suffix is None:
        raise FarshoreError(
            f"{path} is not a table that can be read: use a {', '.join(TABLE_SUFFIXES)} file "
            "(text files also with .gz), or a folder of images"
        )
    if suffix in (*PARQUET, *ARROW) and form.flags:
        raise FarshoreError(
            f"{form.flags[0]} is only for text files, not for {path.name}: leave it out"
        )
    try:
        if suffix in (*PARQUET, *ARROW):
            frame = pd.read_parquet(path) if suffix in PARQUET else pd.read_feather(path)
            frame.columns = [str(column).strip() for column in frame.columns]
            _check_names(path, list(frame.columns))
        else:
            frame = _read_text_file(path, suffix, texts, form)
    except ImportError:
        raise needs("parquet", f"{path} needs pyarrow", otherwise="save it as .csv") from None
    except (OSError, EOFError, zlib.error, ValueError, pd.errors.ParserError, csv.Error) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise FarshoreError(f"{path} cannot be read as a table: {reason[0]}") from None
    if frame.empty:
        raise FarshoreError(f"{path} has no rows")
    return frame.reset_index(drop=True)


def table_suffix(path: Path) -> str | None:
    """Return the suffix that says how a table is stored, without .gz; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    last = (suffixes[:-1] if compressed else suffixes)[-1:]
    if not last or last[0] not in TABLE_SUFFIXES or (compressed and last[0] in (*PARQUET, *ARROW)):
        return None
    return last[0]


def _open(path: Path, encoding: str) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open(encoding=encoding, newline="")


def _read_text_file(
    path: Path, suffix: str, texts: Collection[str], form: TextForm
) -> pd.DataFrame:
    """Read numbers where a whole column has them, and the other columns as text."""
    encoding = _find_encoding(path, form.encoding)
    separator = form.separator or _find_separator(path, suffix, encoding)
    if separator == form.decimal:
        raise FarshoreError(
            f"{path.name} has a comma between its fields, so --decimal , is ambiguous: "
            "leave it out, or say --separator"
        )
    names, rows = _check_fields(path, separator, encoding)
    _check_names(path, names)
    if form.separator is None:
        _check_one_column(path, names, separator)

    def read(columns: list[int], **options: Any) -> pd.DataFrame:
        frame: pd.DataFrame = pd.read_csv(
            path,
            sep=separator,
            encoding=encoding,
            compression="gzip" if path.suffix.lower() == ".gz" else None,
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

    # With a decimal comma every cell is read by itself: pandas knows no column of such numbers
    # as soon as one cell of it, perhaps of the target, is text.
    given = [] if form.decimal else [place for place, name in enumerate(names) if name not in texts]
    frame = read(given, na_values=sorted(MISSING_NUMBER), **_EXACT) if given else pd.DataFrame()
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
    others = [place for place, name in enumerate(names) if name not in numeric]
    written = read(others, dtype=object, na_filter=False) if others else pd.DataFrame()
    columns: dict[str, pd.Series] = {}
    for name in names:
        if name in numeric:
            columns[name] = frame[name].astype("float64")
            continue
        cells = as_texts(written[name])
        if form.decimal and name not in texts:
            cells = _with_points(cells, name)
        columns[name] = pd.Series(cells, dtype=object)
    return _drop_empty_end(pd.DataFrame(columns))


def _with_points(cells: np.ndarray, column: str) -> np.ndarray:
    """Return cells with a decimal point for a decimal comma; refuse a point of unknown meaning."""
    place, distinct = pd.factorize(cells)
    for text in distinct:
        if _DECIMAL_POINT.fullmatch(text):
            raise FarshoreError(
                f"column {column!r} has {text!r}, but with --decimal , a point is not allowed: "
                f"remove it, declare the column as text (--categories {column}), or leave it out "
                f"(--drop {column})"
            )
    points = [
        text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text for text in distinct
    ]
    return np.array([*points, None], dtype=object)[place]


def _find_encoding(path: Path, given: str | None) -> str:
    """Return the given encoding, utf-8, or utf-16 by its byte order mark; refuse what is neither.

    Nothing is guessed: most files can be read, wrongly, in most encodings.
    """
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        start = file.read(4)
    usual = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    encoding = given if given not in (None, "utf-8") else usual
    try:
        with _open(path, encoding) as text:
            for block in iter(lambda: text.read(1 << 20), ""):
                if "\0" in block:
                    raise FarshoreError(
                        f"{path} contains zero bytes: it is not a text file in {encoding}"
                    )
    except UnicodeError:
        if given is not None:
            raise FarshoreError(
                f"{path} is not in --encoding {given}: name another encoding"
            ) from None
        raise FarshoreError(
            f"{path} is not in UTF-8: say how it is written, for example --encoding cp1252 or "
            "--encoding latin-1, or save it again (in a spreadsheet: CSV UTF-8)"
        ) from None
    return encoding


def _find_separator(path: Path, suffix: str, encoding: str) -> str:
    """Return the separator by the header alone: no row of the data may decide it."""
    if suffix == ".tsv":
        return "\t"
    lines, quotes = [], 0
    with _open(path, encoding) as file:
        for line in file:
            lines.append(line)
            quotes += line.count('"')
            if line.strip() and quotes % 2 == 0:  # a name in quotes may have several lines
                break
            if len(lines) > LONGEST_HEADER:
                break
    outside_quotes = re.sub(r'"[^"]*"', "", "".join(lines))
    present = [mark for mark in _SEPARATORS if mark in outside_quotes]
    if len(present) > 1:
        names = " and ".join(_SEPARATORS[mark] for mark in present)
        flags = " or ".join(f"--separator {_flag(mark)}" for mark in present)
        raise FarshoreError(
            f"{path}: the header has {names}, so it can be read in several ways: say {flags}"
        )
    return present[0] if present else ","


def _flag(separator: str) -> str:
    """Return how a separator is typed in a shell."""
    return "tab" if separator == "\t" else f"'{separator}'"


def _check_fields(path: Path, separator: str, encoding: str) -> tuple[list[str], int]:
    """Return the column names and the number of rows; every row must fit the header."""
    with _open(path, encoding) as file:
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
    return [name or f"{UNNAMED}{place}" for place, name in enumerate(names)], rows


def _check_one_column(path: Path, names: list[str], separator: str) -> None:
    """Refuse one column whose name has a separator in it."""
    other = next((mark for mark in _SEPARATORS if mark in names[0]), None)
    if len(names) == 1 and other is not None:
        raise FarshoreError(
            f"{path} has one column and seems to be separated by {_SEPARATORS[other]}: say "
            f"--separator {_flag(other)}, or --separator {_flag(separator)} if it has one column"
        )


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
