"""Preprocessing of tables: learned on the first domain and then frozen.

Later domains therefore cannot influence earlier ones. A date becomes the numbers year, month and
weekday. A number column becomes (x - median) / scale,
with missing values at 0 and an indicator column. A category column becomes one column per known
category, one for `other` and one for missing. A number column that is empty in the first domain is
scaled, and frozen, in the first domain that has values. Columns of text become one block of
features (data/text).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ...errors import FarshoreError, nearest
from ..feature_files import FeatureCache
from ..text.columns import TextColumns
from .cells import as_known, as_numbers, as_texts
from .dates import expand, part_names

# Values are clipped at this many scales: one absurd value at a new site must not dominate a row.
LIMIT = 10.0
# A median further than this many scales from the first domain's is reported.
FAR = 3.0


class TablePreprocessing:
    """Convert the columns of a table to float features; the state can be saved with the model.

    `indicators=False` omits the indicators of missing numbers, for tables without missing values.
    `most` limits the number of categories per column to the most frequent; the rest is `other`.
    `columns` are all columns in the order of the table, for rows that come without names. `dates`
    maps date columns to how they are written; their year, month and weekday are among the numbers.
    `texts` are the columns of text.
    """

    kind = "table"

    def __init__(
        self,
        numbers: Sequence[str],
        categories: Mapping[str, Sequence[str] | None] | None = None,
        *,
        indicators: bool = True,
        most: int | None = None,
        columns: Sequence[str] | None = None,
        dates: Mapping[str, str] | None = None,
        texts: TextColumns | None = None,
    ) -> None:
        self.indicators = indicators
        self.most = most
        self.numbers: dict[str, tuple[float, float] | None] = dict.fromkeys(numbers)
        self.categories: dict[str, list[str] | None] = {
            column: list(known) if known is not None else None
            for column, known in (categories or {}).items()
        }
        self.dates = dict(dates or {})
        parts = {part for column in self.dates for part in part_names(column)}
        plain = (column for column in self.numbers if column not in parts)
        self.texts = texts
        read = texts.columns if texts is not None else ()
        self.columns = list(columns or (*plain, *self.categories, *self.dates, *read))

    def learn(self, frame: pd.DataFrame, cache: FeatureCache | None = None) -> "TablePreprocessing":
        """Fit the columns that are not fitted yet to the training rows of the current domain.

        cache: where what is counted in texts is kept for other runs.
        """
        frame = self._named(frame)
        for column, fixed in self.numbers.items():
            values = as_numbers(frame[column])
            values = values[np.isfinite(values)]
            if fixed is None and len(values):
                with np.errstate(over="ignore"):
                    scale = float(values.std())
                if not np.isfinite(scale):  # squares of very large numbers overflow
                    scale = float(np.abs(values).max())
                self.numbers[column] = (float(np.median(values)), scale if scale > 0 else 1.0)
        for column, known in self.categories.items():
            if known is None:
                counts = pd.Series(as_texts(frame[column]), dtype=object).value_counts()
                # By count, then by name: which of two equally frequent categories is known must
                # not depend on the order of the rows.
                ranked = sorted(counts.index, key=lambda value: (-counts[value], value))
                self.categories[column] = sorted(ranked[: self.most])
        if self.texts is not None:
            self.texts.learn(frame, cache)
        return self

    def check(self, frame: pd.DataFrame, advice: str = "fix it") -> None:
        """Refuse rows that cannot be transformed, without learning anything from them."""
        frame = self._named(frame)
        for column in self.numbers:
            as_numbers(frame[column], advice.format(column=column))
        for column in (*self.categories, *(self.texts.columns if self.texts else ())):
            as_texts(frame[column])

    def transform(self, frame: pd.DataFrame, cache: FeatureCache | None = None) -> Tensor:
        """Return features [rows, width] in the order of `features`.

        cache: where the features of texts are kept for other runs.
        """
        frame = self._named(frame)
        parts = []
        for column, fixed in self.numbers.items():
            values = as_numbers(frame[column])
            missing = ~np.isfinite(values)
            centre, scale = fixed if fixed is not None else (0.0, 1.0)
            with np.errstate(over="ignore"):
                away = (np.where(missing, centre, values) - centre) / scale
                scaled = np.where(missing, 0.0, np.clip(away, -LIMIT, LIMIT))
            parts += [scaled, missing.astype(float)] if self.indicators else [scaled]
        for column, known in self.categories.items():
            texts = as_known(as_texts(frame[column]), known or [])
            seen = [(texts == category).astype(float) for category in known or []]
            missing = pd.isna(texts)
            other = 1.0 - missing - sum(seen)
            parts += [*seen, other, missing.astype(float)]
        made = np.stack(parts, axis=1).astype(np.float32) if parts else np.zeros((len(frame), 0))
        if self.texts is not None:
            made = np.concatenate([made, self.texts.encode(frame, cache)], axis=1, dtype=np.float32)
        return torch.from_numpy(made)

    def summed(self, inputs: Tensor) -> Tensor:
        """Features with those of texts added up: at a small site, most words do not occur."""
        width = self.texts.features.width if self.texts is not None else 0
        plain, words = inputs[:, : inputs.shape[1] - width], inputs[:, inputs.shape[1] - width :]
        return torch.cat([plain, words.sum(dim=1, keepdim=True)], dim=1) if width else inputs

    def unknown(self, frame: pd.DataFrame) -> list[str]:
        """Return the unknown categories of each row as `column=value`, separated by spaces."""
        frame = self._named(frame)
        unknown = np.full(len(frame), "", dtype=object)
        for column, known in self.categories.items():
            texts = as_known(as_texts(frame[column]), known or [])
            is_unknown = ~pd.isna(texts) & ~_is_in(texts, known or [])
            unknown[is_unknown] += column + "=" + texts[is_unknown] + " "
        return [text.strip() for text in unknown]

    def differences(self, frame: pd.DataFrame) -> list[str]:
        """Return how rows differ from the first domain, one sentence per column.

        Unknown categories, values far outside the range, and columns without any value.
        """
        frame = self._named(frame)
        sentences = []
        for column, fixed in self.numbers.items():
            sentence = _shift(as_numbers(frame[column]), fixed)
            sentences += [f"column {column!r}: {sentence}"] if sentence else []
        for column, known in self.categories.items():
            sentence = _news(as_known(as_texts(frame[column]), known or []), known or [])
            sentences += [f"column {column!r}: {sentence}"] if sentence else []
        return sentences + (self.texts.differences(frame) if self.texts is not None else [])

    @property
    def profile(self) -> str | None:
        """The settings profile that suits the features, if it is not the usual one of tables."""
        return "text" if self.texts is not None else None

    @property
    def features(self) -> list[str]:
        """The names of all features."""
        names = []
        for column in self.numbers:
            names += [column, f"{column} missing"] if self.indicators else [column]
        for column, known in self.categories.items():
            names += [f"{column} = {value}" for value in (*(known or []), "(other)", "(missing)")]
        return names + (self.texts.names if self.texts is not None else [])

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as plain values."""
        return {
            "kind": self.kind,
            "numbers": dict(self.numbers),
            "categories": dict(self.categories),
            "indicators": self.indicators,
            "most": self.most,
            "columns": self.columns,
            "dates": dict(self.dates),
            "texts": self.texts.state_dict() if self.texts is not None else None,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "TablePreprocessing":
        """Restore the preprocessing from `state_dict`."""
        preprocessing = cls(
            list(state["numbers"]),
            state["categories"],
            indicators=state["indicators"],
            most=state["most"],
            columns=state["columns"],
            dates=state["dates"],
            texts=TextColumns.from_state(state["texts"]) if state.get("texts") else None,
        )
        preprocessing.numbers = {
            column: tuple(fixed) if fixed is not None else None
            for column, fixed in state["numbers"].items()
        }
        return preprocessing

    def _named(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame with strings as column names, and with the parts of its dates.

        It is refused if a column is missing.
        """
        frame = frame.rename(columns=str)
        check_columns(self.columns, list(frame.columns), "the table")
        for column, form in self.dates.items():
            frame = frame.assign(**expand(frame[column], form))
        return frame


def check_columns(needed: Sequence[str], given: Sequence[str], what: str) -> None:
    """Refuse a table that lacks columns; name all of them, and those that are not known."""
    missing = [column for column in needed if column not in given]
    if not missing:
        return
    extra = [column for column in given if column not in needed]
    hints = []
    for column in missing:
        guess = next((name for name in extra if name.lower() == column.lower()), None)
        guess = guess or nearest(column, extra)
        hints.append(repr(column) + (f" (is it {guess!r}?)" if guess else ""))
    others = f"; it has columns that are not known: {listed(map(repr, extra))}" if extra else ""
    raise FarshoreError(
        f"{what} has no column {listed(hints)}{others}; rename columns, or add the missing ones "
        "with empty cells where nothing was measured"
    )


def listed(names: Iterable[object]) -> str:
    """Return the first 20 names, and how many more there are."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:20]) + (f" and {len(texts) - 20} more" if len(texts) > 20 else "")


def _shift(values: np.ndarray, fixed: tuple[float, float] | None) -> str | None:
    """Describe numbers that lie elsewhere than those of the first domain."""
    present = values[np.isfinite(values)]
    if not len(present):
        return "no row has a value" if fixed is not None else None
    if fixed is None:
        return None
    centre, scale = fixed
    with np.errstate(over="ignore"):
        away = (present - centre) / scale
    far = int((np.abs(away) > LIMIT).sum())
    median = float(np.median(away))
    if not far and abs(median) <= FAR:
        return None
    outside = f"{far} of {len(values)} rows are more than {LIMIT:g} standard deviations away from"
    if abs(median) <= FAR:
        return f"{outside} the first domain's {centre:.4g}: check the units"
    beyond = f", and {far} of {len(values)} rows are more than {LIMIT:g} away from it"
    return (
        f"its median {np.median(present):.4g} is {abs(median):.1f} standard deviations "
        f"{'above' if median > 0 else 'below'} the first domain's {centre:.4g}"
        f"{beyond if far else ''}: check the units"
    )


def _news(texts: np.ndarray, known: Sequence[str]) -> str | None:
    """Describe categories that the first domain does not have."""
    present = texts[~pd.isna(texts)]
    if not len(present):
        return "no row has a value" if known else None
    counts = pd.Series(present[~_is_in(present, known)], dtype=object).value_counts()
    if counts.empty:
        return None
    shown = ", ".join(f"{value!r} ({count})" for value, count in counts[:3].items())
    more = f" and {len(counts) - 3} more" if len(counts) > 3 else ""
    return (
        f"{int(counts.sum())} of {len(texts)} rows have categories that the first domain does "
        f"not have, treated as `other`: {shown}{more}"
    )


def _is_in(texts: np.ndarray, known: Sequence[str]) -> np.ndarray:
    return pd.Series(texts, dtype=object).isin(known).to_numpy()
