"""Read a user's table as it is written, and refuse files that could be misread."""

import codecs
import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...base.files import TABLE_SUFFIXES, check_ends
from ...errors import FarshoreError, needs
from .cells import MISSING_NUMBER, as_texts

UNNAMED = "Unnamed: "
LONGEST_HEADER = 1000  # lines
PIECE = 1 << 20  # characters of a text file that are checked at once
HEAD = 1000  # rows that show most columns of text
PARQUET, ARROW = (".parquet", ".pq"), (".feather", ".arrow")
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
# Files of office programs, which may hold several tables and formulas.
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
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
            why = f"--encoding {value!r} is unknown: give for example utf-8, cp1252 or latin-1"
            raise FarshoreError(why) from None

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
    return next(read_chunks(path, texts, form))


def read_chunks(
    path: Path, texts: Collection[str] = (), form: TextForm | None = None, rows: float = math.inf
) -> Iterator[pd.DataFrame]:
    """Read a table as `read_table` does, at most this many rows at a time.

    The index counts the rows of the file. Each chunk has its own types of columns, but how a cell
    is read never depends on other rows. A Feather file is divided after it was read.
    """
    check_ends(path)
    suffix, form = table_suffix(path), form or TextForm()
    if path.suffix.lower() in SPREADSHEETS:
        raise FarshoreError(f"{path} is a spreadsheet: save its sheet as .csv, and give that file")
    if suffix is None:
        raise FarshoreError(
            f"{path} is not a table that can be read: use a {', '.join(TABLE_SUFFIXES)} file "
            "(text files also with .gz), or a folder of images"
        )
    if suffix in (*PARQUET, *ARROW) and form.flags:
        why = f"{form.flags[0]} is only for text files, not for {path.name}: leave it out"
        raise FarshoreError(why)
    done = 0
    try:
        if suffix in (*PARQUET, *ARROW):
            frames = _read_binary(path, suffix, rows)
        else:
            frames = _read_text_file(path, suffix, texts, form, rows)
        for frame in frames:
            frame.index = pd.RangeIndex(done, done + len(frame))
            done += len(frame)
            if done:
                yield frame
    except ImportError:
        raise needs("parquet", f"{path} needs pyarrow", otherwise="save it as .csv") from None
    except UnicodeError:
        given = f"--encoding {form.encoding}: name another encoding"
        usual = (
            "UTF-8: say how it is written, for example --encoding cp1252 or --encoding latin-1, or "
            "save it again (in a spreadsheet: CSV UTF-8)"
        )
        raise FarshoreError(f"{path} is not in {given if form.encoding else usual}") from None
    except (OSError, EOFError, zlib.error, ValueError, pd.errors.ParserError, csv.Error) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        if "field larger than field limit" in reason[0]:
            reason[0] = (
                f"a cell has more than {csv.field_size_limit():,} characters; perhaps a quote is "
                "not closed, otherwise shorten the text or save the table as .parquet"
            )
        raise FarshoreError(f"{path} cannot be read as a table: {reason[0]}") from None
    if not done:
        raise FarshoreError(f"{path} has no rows")


def table_suffix(path: Path) -> str | None:
    """Return the suffix that says how a table is stored, without .gz; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    last = (suffixes[:-1] if compressed else suffixes)[-1:]
    if not last or last[0] not in TABLE_SUFFIXES or (compressed and last[0] in (*PARQUET, *ARROW)):
        return None
    return last[0]


def _read_binary(path: Path, suffix: str, rows: float) -> Iterator[pd.DataFrame]:
    for frame in _stored_chunks(path, suffix, rows):
        frame.columns = [str(column).strip() for column in frame.columns]
        _check_names(path, list(frame.columns))
        yield frame


def _stored_chunks(path: Path, suffix: str, rows: float) -> Iterator[pd.DataFrame]:
    if suffix in PARQUET and rows < math.inf:
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path, pre_buffer=False, buffer_size=PIECE) as file:
            if file.metadata.num_rows > rows:
                for batch in file.iter_batches(int(rows)):
                    yield batch.to_pandas()
                return
    frame = pd.read_parquet(path) if suffix in PARQUET else pd.read_feather(path)
    step = int(min(rows, max(1, len(frame))))
    for start in range(0, max(1, len(frame)), step):
        yield frame.iloc[start : start + step]


def _read_text_file(
    path: Path, suffix: str, texts: Collection[str], form: TextForm, rows: float
) -> Iterator[pd.DataFrame]:
    with _open(path, _find_encoding(path, form.encoding)) as file:
        records = _Records(path, file)
        separator = form.separator or _find_separator(path, suffix, records.rest)
        if separator == form.decimal:
            raise FarshoreError(
                f"{path.name} has a comma between its fields, so --decimal , is ambiguous: "
                "leave it out, or say --separator"
            )
        names = records.header(separator)
        _check_names(path, names)
        if form.separator is None:
            _check_one_column(path, names, separator)
        head = "" if form.decimal else records.head()
        done = 0
        if head and file.encoding == "utf-8-sig" and find_spec("pyarrow") is not None:
            try:
                for frame in _read_plain(path, head.encode(), names, separator, texts, rows):
                    done += len(frame)
                    yield _drop_empty_end(frame)
                return
            except ValueError:
                records.take(done)
        while (taken := records.take(rows))[1]:
            yield _drop_empty_end(_parse(path, *taken, names, separator, texts, form.decimal))


def _read_plain(
    path: Path, head: bytes, names: list[str], separator: str, texts: Collection[str], rows: float
) -> Iterator[pd.DataFrame]:
    """Read by pyarrow, as far as there is no doubt that every cell is read as it is elsewhere.

    A ValueError ends it: at quotes, at a row that does not fit, and at a cell that is no number in
    a column whose first rows have only numbers.
    """
    import pyarrow
    from pyarrow import csv as plain

    numbers = _numeric(_parse(path, head, head.count(b"\n"), names, separator, texts, None))
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {name: pyarrow.float64() if name in numbers else text for name in names}

    def frame(batches: list[Any]) -> pd.DataFrame:
        table = pyarrow.Table.from_batches(batches)
        columns = {}
        for name in names:
            cells = table.column(name)
            if name in numbers:
                columns[name] = cells.to_numpy()
                if np.count_nonzero(np.isnan(columns[name])) != cells.null_count:
                    raise ValueError("NaN in other words")
            else:
                parts = []
                for part in cells.chunks:
                    distinct = part.dictionary.to_pylist()
                    if max(map(len, distinct)) > csv.field_size_limit():
                        raise ValueError("a long cell")
                    words = as_texts(pd.Series(distinct, dtype=object, name=name))
                    parts.append(words[part.indices.to_numpy()])
                columns[name] = pd.Series(np.concatenate(parts), dtype=object)
        return pd.DataFrame(columns, copy=False)

    with path.open("rb") as raw:
        file = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw
        reader = plain.open_csv(
            pyarrow.PythonFile(_Plain(file), mode="r"),
            plain.ReadOptions(skip_rows=1, column_names=names, block_size=4 * PIECE),
            plain.ParseOptions(delimiter=separator, quote_char=False),
            plain.ConvertOptions(column_types=kinds, null_values=sorted(MISSING_NUMBER)),
        )
        batches: list[Any] = []
        count = 0
        for batch in reader:
            while count + len(batch) > rows:
                part = int(rows) - count
                yield frame([*batches, batch.slice(0, part)])
                batches, count, batch = [], 0, batch.slice(part)
            batches.append(batch)
            count += len(batch)
        if count:
            yield frame(batches)


class _Plain(io.RawIOBase):
    """The bytes of a file; an error if a line could be more or less than one record."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        self.file, self.last = file, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        if b'"' in data or b"\0" in data:
            raise ValueError("quotes or zero bytes")
        alone = data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0
        if alone != data.endswith(b"\r") or (self.last == b"\r" and data[:1] != b"\n"):
            raise ValueError("other line ends")
        self.last = data[-1:]
        return data


class _Records:
    """The records of a text file, read once: every one must fit the header.

    They come in pieces. Where a piece has no quotes, its line ends and separators are counted;
    elsewhere, Python's csv says what a record is.
    """

    def __init__(self, path: Path, file: io.TextIOWrapper) -> None:
        self.path, self.file = path, file
        self.rest = ""  # what was read and not taken yet
        self.lines = 0  # how many were taken
        self._fill()

    def header(self, separator: str) -> list[str]:
        """Take the first record, the names of the columns."""
        self.separator, self.names = separator, []
        _, records = self._by_csv(1)
        self.names = [name.strip() for name in (records or [[]])[0]]
        if not self.names:
            raise FarshoreError(f"{self.path} cannot be read as a table: it is empty")
        return [name or f"{UNNAMED}{place}" for place, name in enumerate(self.names)]

    def head(self) -> str:
        """Rows that follow a header of one line; empty if they, or it, have quotes."""
        lines = list(islice(io.StringIO(self.rest, newline=""), HEAD))
        head = "".join(lines)
        head += "\n" if head and not head.endswith("\n") else ""
        return head if self.lines == 1 and '"' not in head else ""

    def take(self, most: float) -> tuple[bytes, int]:
        """The next records as UTF-8, at most this many, and their number; 0 at the end."""
        pieces, count = [], 0
        while count < most and self._fill():
            plain = self._plain(most - count)
            if plain is None:
                text, records = self._by_csv(most - count)
                plain = text.encode(), len(records)
            pieces.append(plain[0])
            count += plain[1]
        return b"".join(pieces), count

    def _fill(self) -> bool:
        """Read a piece of whole lines if everything was taken; whether there is any."""
        if not self.rest:
            self.rest = self.file.read(PIECE)
            if not self.rest.endswith("\n"):
                self.rest += self.file.readline()
            if "\0" in self.rest:
                raise FarshoreError(
                    f"{self.path} contains zero bytes: it is not a text file in "
                    f"{self.file.encoding}"
                )
        return self.rest != ""

    def _plain(self, most: float) -> tuple[bytes, int] | None:
        """Records of a piece with one per line; None if it has others, or a wrong one."""
        text = self.rest if self.rest.endswith("\n") else f"{self.rest}\n"
        if '"' in text or ("\r" in text and text.count("\r") != text.count("\r\n")):
            return None
        data = text.encode()
        cells = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(cells == ord("\n"))
        if cut := len(ends) > most:
            ends = ends[: int(most)]
            data, cells = data[: ends[-1] + 1], cells[: ends[-1] + 1]
        marks = np.flatnonzero(cells == ord(self.separator))
        width, lengths = len(self.names) - 1, np.diff(ends, prepend=-1)
        if lengths.max() > csv.field_size_limit() or len(marks) != width * len(ends):
            return None
        if width == 0 and lengths.min() <= 2:  # perhaps an empty line, which is no record
            return None
        if width:
            of_line = marks.reshape(len(ends), width)
            if (of_line[:, -1] > ends).any() or (of_line[1:, 0] < ends[:-1]).any():
                return None
        self.rest = text[len(data.decode()) :] if cut else ""
        self.lines += len(ends)
        return data, len(ends)

    def _by_csv(self, most: float) -> tuple[str, list[list[str]]]:
        """The text of the piece's records, and the records; the last one may end in the next."""
        taken: list[str] = []
        lines, end, self.rest = io.StringIO(self.rest, newline=""), len(self.rest), ""

        def each() -> Iterator[str]:
            nonlocal lines, end
            while True:
                for line in lines:
                    taken.append(line)
                    yield line
                if not self._fill():
                    return
                lines, end, self.rest = io.StringIO(self.rest, newline=""), len(self.rest), ""

        reader = csv.reader(each(), delimiter=self.separator, skipinitialspace=True, strict=True)
        records: list[list[str]] = []
        for row in reader:
            if row and self.names and len(row) != len(self.names):
                line = self.lines + reader.line_num
                raise _wrong_fields(self.path, line, self.names, row, self.separator)
            records += [row] if row else []
            if len(records) == most or (records and lines.tell() == end):
                break
        self.rest = lines.read()
        self.lines += reader.line_num
        return "".join(taken), records


def _parse(
    path: Path,
    data: bytes,
    rows: int,
    names: list[str],
    separator: str,
    texts: Collection[str],
    decimal: str | None,
) -> pd.DataFrame:
    """Numbers where a whole column has them, and the other columns as text."""
    cells = np.frombuffer(data, np.uint8)
    before = cells[np.flatnonzero(cells[1:] == ord(" "))]
    spaced = data[:1] == b" " or np.isin(before, [ord(mark) for mark in f"{separator}\r\n"]).any()

    def read(columns: Collection[str], **options: Any) -> pd.DataFrame:
        return pd.read_csv(
            io.BytesIO(data),
            sep=separator,
            header=None,
            names=names,
            usecols=[place for place, name in enumerate(names) if name in columns],
            index_col=False,
            keep_default_na=False,
            skipinitialspace=bool(spaced),
            low_memory=False,
            **options,
        )

    # With a decimal comma every cell is read by itself: pandas knows no column of such numbers
    # as soon as one cell of it, perhaps of the target, is text.
    given = set() if decimal else {name for name in names if name not in texts}
    missing = sorted(MISSING_NUMBER)
    # A text among the first rows is enough: the column is not read as numbers.
    numbers = _numeric(read(given, nrows=HEAD, na_values=missing)) if given else set()
    frame = read(
        names,
        na_values=dict.fromkeys(numbers, missing),
        dtype={name: object for name in names if name not in numbers},
        **_EXACT,
    )
    if len(frame) != rows:
        raise FarshoreError(
            f"{path} cannot be read reliably: two ways of reading it give {rows} and "
            f"{len(frame)} rows; check quotes and line endings, or save it again"
        )
    mistaken = numbers - _numeric(frame)
    again = read(mistaken, dtype=object, na_filter=False) if mistaken else frame
    for name in names:
        if name in numbers - mistaken:
            frame[name] = frame[name].astype("float64")
            continue
        texts_of = as_texts((again if name in mistaken else frame)[name])
        if decimal and name not in texts:
            texts_of = _with_points(texts_of, name)
        frame[name] = pd.Series(texts_of, dtype=object)
    return frame


def _numeric(frame: pd.DataFrame) -> set[str]:
    return {str(name) for name, kind in frame.dtypes.items() if kind.kind in "iuf"}


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
    """Return the given encoding, utf-8, or utf-16 by its byte order mark.

    Nothing is guessed: most files can be read, wrongly, in most encodings.
    """
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        start = file.read(4)
    usual = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return given if given not in (None, "utf-8") else usual


def _open(path: Path, encoding: str) -> io.TextIOWrapper:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open(encoding=encoding, newline="")


def _find_separator(path: Path, suffix: str, text: str) -> str:
    """Return the separator by the header alone: no row of the data may decide it."""
    if suffix == ".tsv":
        return "\t"
    lines, quotes = [], 0
    for line in io.StringIO(text, newline=""):
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
        why = f"{path}: the header has {names}, so it can be read in several ways: say {flags}"
        raise FarshoreError(why)
    return present[0] if present else ","


def _flag(separator: str) -> str:
    """Return how a separator is typed in a shell."""
    return "tab" if separator == "\t" else f"'{separator}'"


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
