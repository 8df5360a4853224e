"""Dates as input columns: each becomes the numbers year, month and weekday."""

import re
import warnings
from collections.abc import Collection

import numpy as np
import pandas as pd

from ...errors import FarshoreError
from .cells import as_texts, is_missing_number

ISO = "ISO8601"
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?", re.ASCII)


def part_names(column: str) -> list[str]:
    """Return the names of the number columns that a date column becomes."""
    return [f"{column} ({part})" for part in ("year", "month", "weekday")]


def date_form(texts: Collection[str], time_format: str | None) -> str | None:
    """Return the form that all these texts have, `time_format` or ISO; None for other texts."""
    if not texts:
        return None
    cells = pd.Series(list(texts), dtype=object)
    if time_format is not None and parse(cells, time_format).notna().all():
        return time_format
    if all(_ISO_DATE.fullmatch(text) for text in texts) and parse(cells, ISO).notna().all():
        return ISO
    return None


def parse(texts: pd.Series, form: str) -> pd.Series:
    """Return times in UTC, NaT where a text does not have this form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pd.to_datetime(texts, format=form, errors="coerce", utc=True)
        except (ValueError, TypeError, OverflowError, re.error) as error:
            why = f"--time-format {form!r} cannot be used ({error}): write for example %d/%m/%Y"
            raise FarshoreError(why) from None


def seconds(texts: pd.Series, form: str) -> np.ndarray:
    """Return times as seconds since 1970, NaN where a text is missing or has another form."""
    since = parse(texts, form) - pd.Timestamp("1970-01-01", tz="UTC")
    return since.dt.total_seconds().to_numpy(dtype=float)


def expand(values: pd.Series, form: str) -> dict[str, pd.Series]:
    """Return year, month (1 to 12) and weekday (0 is Monday) of dates, NaN where one is missing."""
    if pd.api.types.is_datetime64_any_dtype(values):
        times = pd.to_datetime(values, utc=True)
    else:
        texts = as_texts(values)
        missing = is_missing_number(texts)
        cells = pd.Series(texts, dtype=object, index=values.index)
        times = parse(cells.mask(missing, None), form)
        wrong = np.flatnonzero(times.isna().to_numpy() & ~missing)
        if len(wrong):
            row = int(wrong[0])
            written = "an ISO date (2026-11-15)" if form == ISO else f"a date like {form}"
            raise FarshoreError(
                f"column {values.name!r}, row {values.index[row]}: {texts[row]!r} is not "
                f"{written}: fix it"
            )
    parts = (times.dt.year, times.dt.month, times.dt.day_of_week)
    names = part_names(str(values.name))
    return {name: part.astype("float64") for name, part in zip(names, parts, strict=True)}
