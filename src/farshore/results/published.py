"""Published numbers to show beside ours: a CSV file, joined by experiment, method and data set.

| column | what it is |
|---|---|
| `experiment` | the name of the experiment whose table shows the number |
| `method`, `variant` | the row; a variant is empty unless a table has several rows of a method |
| `column` | a data set, `average`, `rank mean`, `rank geometric mean` or `rank median` |
| `mean`, `error` | the number in the unit of the table; the error may be empty |
| `title`, `note` | the title of the published table; a remark about it; both may be empty |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ..errors import FarshoreError

COLUMNS = ("experiment", "method", "variant", "column", "mean", "error", "title", "note")
# Columns that summarise several data sets.
SUMMARIES = ("average", "rank mean", "rank geometric mean", "rank median")
Number = tuple[float, float | None]


@dataclass(frozen=True)
class Published:
    """The published numbers for one table, by method, variant and column."""

    numbers: Mapping[tuple[str, str, str], Number] = field(default_factory=dict)
    title: str = ""
    notes: tuple[str, ...] = ()

    def find(self, method: str, variant: str, column: str) -> Number | None:
        """The number and its error, if it was published."""
        return self.numbers.get((method, variant, column))

    def data_sets(self, method: str, variant: str) -> set[str]:
        """The data sets behind the average and the ranks of a row."""
        row = (method, variant)
        columns = {key[2] for key in self.numbers if key[:2] == row}
        return columns.difference(SUMMARIES)


def read_published(path: Path) -> pd.DataFrame:
    """The file as a frame; a file without the columns is refused."""
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise FarshoreError(f"--published {str(path)!r} cannot be read: {error}") from error
    lacking = [name for name in COLUMNS if name not in frame.columns]
    if lacking:
        raise FarshoreError(
            f"--published {str(path)!r} lacks the column {lacking[0]!r}: give a CSV file with "
            f"{', '.join(COLUMNS)}"
        )
    for name in ("mean", "error"):
        numbers = pd.to_numeric(frame[name].replace("", None), errors="coerce")
        wrong = frame.loc[numbers.isna() & (frame[name] != ""), name]
        if len(wrong) or (name == "mean" and numbers.isna().any()):
            shown = wrong.iloc[0][:40] if len(wrong) else ""
            raise FarshoreError(f"--published {str(path)!r}: {name} {shown!r} is no number")
        frame[name] = numbers
    return frame


def published_for(frame: pd.DataFrame, experiment: str) -> Published | None:
    """The numbers of one experiment; None if there are none."""
    rows = frame[frame["experiment"] == experiment]
    if rows.empty:
        return None
    numbers = {
        (method, variant, column): (float(mean), None if pd.isna(error) else float(error))
        for method, variant, column, mean, error in rows[list(COLUMNS[1:6])].itertuples(index=False)
    }
    title = next((text for text in rows["title"] if text), "")
    return Published(numbers, title, tuple(dict.fromkeys(text for text in rows["note"] if text)))
