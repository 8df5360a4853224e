"""The roles and types of a table's columns: a class, a time, a number, a category or a text."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import FarshoreError, unknown
from ..text.columns import TextColumns, divide_names, is_text
from .cells import as_numbers, as_texts, is_missing_number, is_number, parse_numbers
from .convert import MOST_FRACTIONS
from .dates import ISO, date_form, parse, part_names, seconds
from .read_table import UNNAMED, read_table, table_suffix
from .table import TablePreprocessing, listed

# A column with at least this share of numbers is taken as numeric; texts in it are mistakes.
MEANT_AS_NUMBERS = 0.9
MOST_CATEGORIES = 100
MOST_CLASSES = 100
MOST_CODES = 20  # more distinct integers than this are taken for a quantity, unless all are common
FEWEST_ROWS = 10  # fewer rows say nothing about a column
_ID_NAME = re.compile(
    r"(.*[ _.-])?(id|ids|uid|uuid|guid|identifier|index|idx|row|nr|no|number|key|code|mrn)"
    r"|.*[a-z](Id|ID)"
)
# The parts of a date that can be a domain.
PARTS: dict[str, Callable[[pd.Timestamp], str]] = {
    "year": lambda date: f"{date.year}",
    "quarter": lambda date: f"{date.year}-Q{date.quarter}",
    "month": lambda date: f"{date.year}-{date.month:02}",
}
_KNOWN_FORMATS = tuple(
    date + time
    for date in ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d %b %Y")
    for time in ("", " %H:%M", " %H:%M:%S")
)


def names_with_commas(text: str) -> list[str]:
    """The names in `a,b,c`."""
    return [name.strip() for name in text.split(",") if name.strip()]


def label_names(label: str, given: Collection[object] = ()) -> list[str]:
    """The columns that a --label names: one of those given, or several with commas."""
    return [label] if label in given or "," not in label else names_with_commas(label)


def need_texts(
    frame: pd.DataFrame, column: str, option: str, *, missing: bool = False
) -> np.ndarray:
    """Return the column that an option names as text, None for a value that may be `missing`.

    Infinite values are refused.
    """
    texts = as_texts(_need(frame, column, option))
    absent = np.flatnonzero(pd.isna(texts))
    if len(absent) and not missing:
        raise FarshoreError(
            f"{option} {column}: {len(absent)} rows have no value there, the first is row "
            f"{frame.index[absent[0]]}: fill or drop them"
        )
    if pd.api.types.is_numeric_dtype(frame[column]):
        infinite = np.flatnonzero(np.isin(texts, ["inf", "-inf"]))
        if len(infinite):
            raise FarshoreError(
                f"{option} {column}, row {frame.index[infinite[0]]}: the value is infinite: fix or "
                "drop the row"
            )
    return texts


def need_times(
    frame: pd.DataFrame, column: str, time_format: str | None, option: str = "--time"
) -> np.ndarray:
    """Return the times of a column as increasing numbers.

    The whole column has one form: numbers, ISO dates, or `time_format`. Nothing is guessed, and a
    column with two forms is refused: no row, perhaps of the target, decides how others are read.
    """
    values = _need(frame, column, option)
    texts = need_texts(frame, column, option)
    if pd.api.types.is_datetime64_any_dtype(values):
        return _as_seconds(values, ISO, texts, column)
    if time_format is not None:
        return _as_seconds(_series(texts), time_format, texts, column)
    numeric = np.array([is_number(text) for text in texts])
    if not numeric.any():
        return _as_seconds(_series(texts), ISO, texts, column)
    if not numeric.all():
        _as_seconds(_series(texts).mask(numeric, "2000-01-01"), ISO, texts, column)
        number, date = texts[numeric.argmax()], texts[numeric.argmin()]
        raise FarshoreError(
            f"{option} {column} has numbers such as {number!r} and dates such as {date!r}: write "
            "all of them in one way"
        )
    times = parse_numbers(texts)
    if not np.isfinite(times).all():
        raise FarshoreError(f"{option} {column} has an infinite time: fix or drop that row")
    return times


def need_parts(frame: pd.DataFrame, column: str, part: str, time_format: str | None) -> np.ndarray:
    """Return a part of the dates of a column as texts that sort by time: 2026, 2026-11, 2026-Q4."""
    if column in frame.columns and all(map(is_number, need_texts(frame, column, "--domain"))):
        raise FarshoreError(
            f"--domain {column}:{part} needs a column of dates, and {column} has numbers: name the "
            "column itself"
        )
    found = pd.to_datetime(need_times(frame, column, time_format, "--domain"), unit="s")
    return np.array([PARTS[part](each) for each in found], dtype=object)


def need_weights(frame: pd.DataFrame, column: str) -> np.ndarray:
    """Return the weights of all rows: numbers of 0 or more, none missing."""
    weights = as_numbers(_need(frame, column, "--weight"), "a weight must be a number, 0 or more")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise FarshoreError(
            f"--weight {column}, row {frame.index[wrong[0]]}: a weight must be 0 or more: fix or "
            "drop the row"
        )
    return weights


def _series(texts: np.ndarray) -> pd.Series:
    return pd.Series(texts, dtype=object)


def _as_seconds(values: pd.Series, form: str, texts: np.ndarray, column: str) -> np.ndarray:
    times = seconds(values, form)
    bad = np.flatnonzero(np.isnan(times))
    if not len(bad):
        return times
    row = int(bad[0])
    start = f"--time {column}, row {row}: {texts[row]!r}"
    if form != ISO:
        raise FarshoreError(f"{start} does not have the form {form}: fix or drop that row")
    cells = _series(texts)
    fitting = [form for form in _KNOWN_FORMATS if parse(cells, form).notna().all()]
    if fitting:
        raise FarshoreError(
            f"{start} is neither a number nor an ISO date (2026-11-15): say how dates are "
            f"written, --time-format {' or '.join(map(repr, fitting))}"
        )
    raise FarshoreError(
        f"{start} is neither a number nor an ISO date: write 2026-11-15, or give --time-format, "
        "for example %d/%m/%Y"
    )


def named_classes(text: str, label: str | None, option: str) -> list[str]:
    """Return the classes in a text: `a,b,c`, or the path of a file that lists them.

    A text file has one class per line; of a table, the label column is read.
    """
    path = Path(text).expanduser()
    if not path.is_file():
        return [name.strip() for name in text.split(",") if name.strip()]
    if path.suffix.lower() != ".txt" and table_suffix(path) is not None:
        if label is None:
            raise FarshoreError(f"{option} is a table: name its column with the class (--label)")
        return sort_classes(set(need_texts(read_table(path, {label}), label, "--label")))
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        raise FarshoreError(f"{option} cannot be read as a text file: {error}") from None
    return list(dict.fromkeys(line.strip() for line in lines if line.strip()))


def sort_classes(classes: Iterable[str]) -> list[str]:
    """Return classes in order; whole numbers by their value."""
    distinct = set(classes)
    integers = all(text.lstrip("-").isdigit() for text in distinct)
    return sorted(distinct, key=int) if integers else sorted(distinct)


def check_class_labels(labels: np.ndarray, column: str) -> None:
    """Refuse labels that look like a quantity or a name, because Farshore classifies."""
    distinct = sorted(set(labels))
    count = len(distinct)
    if all(map(is_number, distinct)):
        numbers = parse_numbers(np.array(distinct, dtype=object))
        count = len(np.unique(numbers))
        if is_quantity(numbers, len(labels)):
            raise FarshoreError(
                f"--label {column} has {count} different numbers, which looks like a quantity: "
                "say that it is a number (--task regression), or if these are codes of classes, "
                "write them as text, for example c17"
            )
        written: dict[float, str] = {}
        for number, text in zip(numbers.tolist(), distinct, strict=True):
            other = written.setdefault(number, text)
            if other != text:
                raise FarshoreError(
                    f"--label {column} has {other!r} and {text!r}, the same number written in two "
                    "ways: write it in one way, because classes are compared as text"
                )
    elif count > MOST_CLASSES and count > len(labels) / 2:
        raise FarshoreError(
            f"--label {column} has {count} different texts in {len(labels)} rows: that is not a "
            "class label; name another column"
        )


def is_quantity(numbers: np.ndarray, rows: int) -> bool:
    """Whether so many rows with these different numbers have a quantity, not the codes of classes.

    Fractions are one if there are more than MOST_FRACTIONS, or in most rows another; whole numbers
    if there are more than MOST_CODES, unless each is common and hardly any between them is unused.
    """
    distinct = np.unique(numbers)
    count = len(distinct)
    if (distinct != np.round(distinct)).any():
        return count > MOST_FRACTIONS or (count > 2 and count > rows / 2)
    dense = distinct[-1] - distinct[0] < 2 * count if count else True
    return count > MOST_CODES and not (dense and count <= rows / 50)


def plan_columns(
    frame: pd.DataFrame,
    columns: Sequence[str],
    categories: Collection[str] = (),
    time_format: str | None = None,
    texts: Collection[str] = (),
) -> TablePreprocessing:
    """Decide which columns are numbers, categories, dates and texts, by these rows alone.

    `categories` and `texts` are columns declared as such; `texts` may name an encoder. A few texts
    in a column of numbers are refused, with their row. Dates are ISO dates, or have the
    `time_format`.
    """
    texts, encoder = divide_names(texts)
    for flag, declared in (("categories", categories), ("text", texts)):
        for column in declared:
            if column not in columns:
                raise unknown(f"column in --{flag}", column, columns)
    both = [column for column in texts if column in categories]
    if both:
        raise FarshoreError(
            f"column {both[0]!r} is in --text and in --categories: a text is divided into words, a "
            "category is one of a few values; name it in one of the two"
        )
    numbers: list[str] = []
    named: dict[str, None] = {}
    read: list[str] = []
    dates: dict[str, str] = {}
    for column in columns:
        if column.startswith(UNNAMED):
            raise FarshoreError(
                f"column {column!r} has no name in the file (perhaps it contains row numbers): "
                f"leave it out (--drop {column!r}), or name it in the header"
            )
        is_declared = column in categories or column in texts
        form = None if is_declared else _date_form(frame[column], time_format)
        if form is not None:
            dates[column] = form
            numbers += part_names(column)
        elif not is_declared and _is_number(frame[column], column):
            numbers.append(column)
        elif column in texts or (not is_declared and _is_text(frame[column], column)):
            read.append(column)
        else:
            named[column] = None
    if not numbers and not named and not read:
        raise FarshoreError(
            "no column is left to learn from: domain, label, time, group and dropped columns are "
            "not inputs"
        )
    return TablePreprocessing(
        numbers,
        named,
        most=MOST_CATEGORIES,
        columns=columns,
        dates=dates,
        texts=TextColumns.new(read, encoder),
    )


def column_notes(frame: pd.DataFrame, plan: TablePreprocessing) -> list[str]:
    """Return notes on columns of the first domain that are probably no use as inputs."""
    cells = {column: _cells(frame[column]) for column in plan.columns if len(frame) > 1}
    constant = [column for column, values in cells.items() if len(pd.unique(values)) == 1]
    identifiers = [
        column
        for column in plan.columns
        if column not in constant and column not in plan.dates and _is_identifier(frame, column)
    ]
    notes = []
    if plan.texts is not None:
        notes.append(
            f"text: {listed(map(repr, plan.texts.columns))}, read as {plan.texts.features.title} "
            "(--text names the columns of text, --drop leaves one out)"
        )
    if identifiers:
        notes.append(
            f"note: every row has another value in {listed(map(repr, identifiers))}: if that is an "
            f"identifier, nothing can be learned from it: leave it out (--drop "
            f"{','.join(identifiers[:5])})"
        )
    if constant:
        notes.append(
            f"note: the first domain has one value only, or none, in "
            f"{listed(map(repr, constant))}: nothing can be learned from that there"
        )
    if plan.dates:
        notes.append(f"note: dates become year, month and weekday: {listed(map(repr, plan.dates))}")
    return notes


def _cells(values: pd.Series) -> np.ndarray:
    """Return cells that can be compared: numbers where the column has only numbers, or texts."""
    plain = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return as_numbers(values) if plain else as_texts(values)


def _is_identifier(frame: pd.DataFrame, column: str) -> bool:
    """Whether a column numbers its rows, or has a name and values like an identifier."""
    cells = _cells(frame[column])
    if len(cells) < FEWEST_ROWS or pd.isna(cells).any() or len(pd.unique(cells)) < len(cells):
        return False
    named = _ID_NAME.fullmatch(column) is not None or _ID_NAME.fullmatch(column.lower()) is not None
    if cells.dtype == object and not all(map(is_number, cells)):
        return named
    numbers = as_numbers(frame[column])
    if not np.isfinite(numbers).all() or (numbers != np.round(numbers)).any():
        return False
    return named or bool((np.diff(numbers) == 1).all())


def _date_form(values: pd.Series, time_format: str | None) -> str | None:
    """Return how the dates of a column are written; None if it is no column of dates."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return ISO
    if pd.api.types.is_numeric_dtype(values) or isinstance(values.dtype, pd.CategoricalDtype):
        return None
    texts = as_texts(values)
    present = set(texts[~is_missing_number(texts)])
    return None if all(map(is_number, present)) else date_form(present, time_format)


def _need(frame: pd.DataFrame, column: str, option: str) -> pd.Series:
    if column not in frame.columns:
        raise unknown(f"column in {option}", column, frame.columns)
    return frame[column]


def _is_number(values: pd.Series, column: str) -> bool:
    if isinstance(values.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(values):
        return False
    if pd.api.types.is_numeric_dtype(values):
        return True
    texts = as_texts(values)
    present = np.flatnonzero(~is_missing_number(texts))
    numeric = ~np.isnan(parse_numbers(texts[present]))
    share = float(numeric.mean()) if len(present) else 1.0
    if share == 1.0:
        return True
    if share >= MEANT_AS_NUMBERS:
        row = int(present[np.flatnonzero(~numeric)[0]])
        raise FarshoreError(
            f"column {column!r}, row {values.index[row]}: {texts[row]!r} is not a number: fix it, "
            f"leave the column out (--drop {column}), or declare it as text (--categories {column})"
        )
    distinct = set(texts[present])
    if _share_of_decimal_commas(texts[present]) >= MEANT_AS_NUMBERS:
        raise FarshoreError(
            f"column {column!r} has numbers with a decimal comma, such as {texts[present][0]!r}: "
            f"give --decimal , (or declare it as text, --categories {column})"
        )
    written = next((form for form in _KNOWN_FORMATS if date_form(distinct, form)), None)
    if written is not None:
        raise FarshoreError(
            f"column {column!r} contains dates such as {texts[present][0]!r}, which are not ISO "
            f"dates (2026-11-15): say how they are written (--time-format {written!r}, or another "
            f"order), or leave the column out (--drop {column})"
        )
    return False


def _share_of_decimal_commas(texts: np.ndarray) -> float:
    """Return the share of cells that are numbers if a comma is a decimal mark; 0 without commas."""
    with_points = np.array([text.replace(",", ".") for text in texts], dtype=object)
    share = float((~np.isnan(parse_numbers(with_points))).mean())
    return share if any("," in text for text in texts) else 0.0


def _is_text(values: pd.Series, column: str) -> bool:
    """Whether a column of words has texts; refuse more values than a category can have."""
    texts = as_texts(values)
    present = texts[~pd.isna(texts)]
    if is_text(present):
        return True
    distinct = set(present)
    if len(distinct) > MOST_CATEGORIES and len(distinct) > len(present) / 2:
        raise FarshoreError(
            f"column {column!r} has {len(distinct)} different values in {len(present)} rows, too "
            f"many for a category: leave it out (--drop {column}), or read it as text "
            f"(--text {column})"
        )
    return False
