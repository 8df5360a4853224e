"""CSV: one file per run, with a line per number."""

import csv
from collections.abc import Mapping
from typing import IO

from .logger import Logger


class CSV(Logger):
    """Writes FOLDER/RUN.csv with the columns step, name and value."""

    name = "csv"

    def open(self) -> None:
        """Name the file, which the first number creates."""
        self.path = self.folder / f"{self.run}.csv"
        self._file: IO[str] | None = None

    def write(self, values: Mapping[str, float]) -> None:
        """Append a line per number; the file is complete after every call."""
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("w", encoding="utf-8", newline="")
            csv.writer(self._file).writerow(["step", "name", "value"])
        rows = ([self.count, name, repr(value)] for name, value in values.items())
        csv.writer(self._file).writerows(rows)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
