"""table: a user's own table, with a column that names the domain and one that holds the class."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd
from pydantic import Field, field_validator

from ..data.public_files import known_checksum
from ..data.read_table import as_classes, as_texts, as_times, need_column, read_table
from ..errors import FarshoreError, unknown
from .options import BenchmarkOptions, Preprocess
from .own import OwnBenchmark, OwnOptions
from .own_rows import OwnRows


class TableOptions(OwnOptions):
    """Which column says what."""

    path: str = Field(description="a CSV, TSV or Parquet file")
    domain: str | None = Field(
        None, description="column that names the domain, or auto: domains are constructed"
    )
    label: str | None = Field(None, description="column that holds the class")
    drop: tuple[str, ...] = Field((), description="columns that are no inputs")
    time: str | None = Field(
        None, description="column of time: orders the domains, and splits never look ahead"
    )
    group: str | None = Field(
        None, description="column whose groups stay on one side of every split"
    )
    preprocess: Preprocess = Field(
        "first", description="learn scales on the first domain, or on all-sources (not continual)"
    )

    @field_validator("drop", mode="before")
    @classmethod
    def _names_with_commas(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return [name.strip() for name in value.split(",") if name.strip()]


class Table(OwnBenchmark):
    """A table whose rows are classified; numbers and texts become inputs by what the first
    domain's training rows show.
    """

    name = "table"
    summary = "a table (CSV, TSV, Parquet) with a column for the domain and one for the class"
    Options: ClassVar[type[BenchmarkOptions]] = TableOptions
    options: TableOptions
    network = "mlp"
    stand_in = "heart-hospitals"

    @property
    def _preprocess(self) -> Preprocess:
        return self.options.preprocess

    def data_digest(self) -> str:
        """The sha256 of the file."""
        return known_checksum(self.path)

    def read_facts(self) -> pd.DataFrame:
        """The columns of domain, label, time and group, as texts and numbers."""
        return self._facts(self._read())

    def read(self) -> OwnRows:
        """The columns that are left are the inputs."""
        frame, asked = self._read(), self.options
        facts = self._facts(frame)
        named = {asked.label, asked.domain, asked.time, asked.group, *asked.drop}
        inputs = frame[[column for column in frame.columns if column not in named]]
        note = (
            f"{self.title}: {len(frame)} rows, {len(inputs.columns)} input columns, sha256 "
            f"{self.data_digest()[:16]}"
        )
        return OwnRows(facts, inputs, None, None, [note])

    def _read(self) -> pd.DataFrame:
        if self.path.is_dir():
            raise FarshoreError(f"{self.path} is a folder, no table: use image-folder")
        return read_table(self.path)

    def _facts(self, frame: pd.DataFrame) -> pd.DataFrame:
        asked = self.options
        if asked.label is None:
            raise FarshoreError(
                f"--label is not given: say which column of {self.title} holds the class, one of "
                f"{', '.join(frame.columns)}"
            )
        if asked.domain is None and asked.domain_by is None:
            raise FarshoreError(
                f"--domain is not given: say which column of {self.title} names the domain, one "
                f"of {', '.join(frame.columns)}, or auto"
            )
        facts = pd.DataFrame(
            {"label": as_classes(need_column(frame, asked.label, "--label"), asked.label)}
        )
        if asked.domain is not None:
            facts["domain"] = as_texts(need_column(frame, asked.domain, "--domain"))
        if asked.time is not None:
            facts["time"] = as_times(need_column(frame, asked.time, "--time"), asked.time)
        if asked.group is not None:
            facts["group"] = as_texts(need_column(frame, asked.group, "--group"))
        for column in asked.drop:
            if column not in frame.columns:
                raise unknown("column in --drop", column, frame.columns)
        return facts
