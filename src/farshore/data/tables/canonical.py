"""Own tables in one form: data frames, text files and binary files with the same cells are equal.

How a frame or a binary file stores a column depends on all of its cells, also on those of the
target, and a text file does not say how. So the storage counts for nothing: a column has floats or
texts, and each cell is converted by itself.
"""

import hashlib
import json
from collections.abc import Collection

import numpy as np
import pandas as pd

from .cells import as_numbers, as_texts, is_missing_number, parse_numbers, plain_name
from .dates import date_form, seconds


def canonical(
    frame: pd.DataFrame,
    texts: Collection[str],
    dropped: Collection[str],
    time_format: str | None = None,
) -> pd.DataFrame:
    """Each column as floats, or as texts with None where one is missing.

    Those in `texts` are texts. Those that are `dropped` may contain anything; elsewhere, what is
    neither a number, a text nor a date is refused. Dates are texts in the `time_format`, or ISO.
    """
    columns = {
        column: cells if column in dropped else _one_form(cells, column in texts, time_format)
        for column, cells in frame.items()
    }
    return pd.DataFrame(columns)


def _one_form(cells: pd.Series, as_text: bool, time_format: str | None) -> pd.Series:
    kind = cells.dtype.kind
    if kind in "iufc" and not as_text:
        return pd.Series(as_numbers(cells) + 0.0)  # -0.0 is 0.0, as it is in a text
    if kind == "M" and time_format is not None and not as_text:
        cells = cells.dt.strftime(time_format)
    texts = as_texts(cells)
    if as_text or time_format is None:  # else it may be a date in that format
        codes, names = pd.factorize(texts)
        texts = np.array([*map(plain_name, names), None], dtype=object)[codes]
    return pd.Series(texts)


def typed(cells: pd.Series, as_text: bool = False, time_format: str | None = None) -> np.ndarray:
    """Cells of a canonical column: floats if all are numbers or all are dates, otherwise texts."""
    if cells.dtype.kind == "f":
        return cells.to_numpy()
    texts = cells.to_numpy()
    if as_text:
        return texts
    missing, numbers = is_missing_number(texts), parse_numbers(texts)
    if not np.isnan(numbers[~missing]).any():
        return numbers
    form = date_form(set(texts[~missing]), time_format)
    return texts if form is None else seconds(cells.mask(missing, None), form)


def table_digest(
    frame: pd.DataFrame, texts: Collection[str] = (), time_format: str | None = None
) -> str:
    """A checksum of the names, types and cells of a canonical table."""
    digest = hashlib.sha256()
    for column, cells in frame.items():
        values = typed(cells, column in texts, time_format)
        digest.update(json.dumps([column, values.dtype.kind, len(values)]).encode())
        if values.dtype.kind == "f":
            digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes())
        else:
            digest.update(json.dumps(values.tolist()).encode())
    return digest.hexdigest()
