"""table: a user's own table, with one column for the domain and one for the class."""

import hashlib
from functools import lru_cache
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field, field_validator

from ...data.downloads.public_files import known_checksum
from ...data.tables.canonical import canonical, table_digest
from ...data.tables.columns import (
    PARTS,
    label_names,
    names_with_commas,
    need_parts,
    need_texts,
    need_times,
    need_weights,
)
from ...data.tables.read_table import TextForm, read_table
from ...data.text.columns import divide_names
from ...data.text.encoder import open_encoder
from ...errors import FarshoreError, unknown
from ..options import BenchmarkOptions, FittedTo
from .own import OwnBenchmark, OwnOptions
from .own_rows import OwnRows, TableRows


class TableOptions(OwnOptions, TextForm):
    """Options that name the columns of a table."""

    path: str = Field(description="a CSV, TSV, Parquet or Feather file; text also with .gz")
    domain: str | None = Field(
        None,
        description="column that names the domain; a part of a date, for example sold:year (or "
        ":month, :quarter); or auto: domains are constructed",
    )
    label: str | None = Field(
        None, description="column with the class or the number; several numbers with commas"
    )
    drop: tuple[str, ...] = Field((), description="columns that are not inputs")
    time: str | None = Field(
        None, description="time column: orders the domains, and splits never look ahead"
    )
    time_format: str | None = Field(
        None, description="how times are written, for example %d/%m/%Y; otherwise numbers or ISO"
    )
    group: str | None = Field(
        None, description="group column: every group stays on one side of every split"
    )
    weight: str | None = Field(
        None, description="column with the weight of each row in training, 0 or more"
    )
    categories: tuple[str, ...] = Field(
        (), description="input columns to read as categories, even if they are numbers"
    )
    text: tuple[str, ...] = Field(
        (),
        description="input columns of free text [default: those that are long and differ from row "
        "to row in the first domain], and hf:NAME if an encoder should read them",
    )
    preprocess: FittedTo = Field(
        "first", description="learn scales on the first domain, or on all-sources (not continual)"
    )

    @property
    def form(self) -> TextForm:
        """How the file is written."""
        return TextForm(separator=self.separator, encoding=self.encoding, decimal=self.decimal)

    @field_validator("drop", "categories", "text", mode="before")
    @classmethod
    def _names_with_commas(cls, value: Any) -> Any:
        return names_with_commas(value) if isinstance(value, str) else value


class OwnTable(OwnBenchmark):
    """A table; its columns become inputs by a preprocessing learned on the first domain.

    Runs are named by the cells, not by the file: a data frame, a text file and a binary file with
    the same cells are the same data.
    """

    name = "table"
    summary = "a table (CSV, Parquet, ...) with a column for the domain and one for the class"
    Options: ClassVar[type[BenchmarkOptions]] = TableOptions
    options: TableOptions
    results_version = 4
    path_options = frozenset({"path", *TextForm.model_fields})
    network = "mlp"
    stand_in = "heart-hospitals"

    @property
    def _preprocess(self) -> FittedTo:
        return self.options.preprocess

    @property
    def ordered_by_time(self) -> bool:
        """Whether there is a time column."""
        return self.options.time is not None

    def data_digest(self) -> str:
        """Return a checksum of the cells that count: facts and inputs."""
        return _digest(self.options, known_checksum(self.path))

    def read_facts(self) -> pd.DataFrame:
        """Return the columns domain, label, time and group, as strings and numbers."""
        self._read()  # says first why a file is no table
        return _table_facts(self.options, known_checksum(self.path))

    def read(self) -> OwnRows:
        """Read all rows; columns without another role are the inputs."""
        rows = self.rows()
        rows.notes.append(
            f"{self.title}: {len(rows.table)} rows, {len(rows.table.columns)} input columns, "
            f"sha256 {self.data_digest()[:16]}"
        )
        return rows

    def rows(self) -> TableRows:
        """All rows, without notes."""
        frame, options = self._read(), self.options
        facts = self.read_facts()
        not_inputs = {*self.label_names(facts), self.domain_column, options.time, options.group}
        not_inputs |= {options.weight, *options.drop}
        inputs = frame[[column for column in frame.columns if column not in not_inputs]]
        declared = (options.categories, options.text)
        return TableRows(facts, [], inputs, *declared, options.time_format)

    def label_names(self, facts: pd.DataFrame) -> list[str]:
        """The column of the label, or several with commas between them."""
        label = str(self.options.label)
        return names_with_commas(label) if "label 2" in facts else [label]

    def _read(self) -> pd.DataFrame:
        if self.path.is_dir():
            raise FarshoreError(f"{self.path} is a folder, not a table: use image-folder")
        return _table(self.options, known_checksum(self.path))

    def in_one_form(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table as it is read from every kind of file."""
        return canonical(frame, self.texts, self.options.drop, self.options.time_format)

    @property
    def texts(self) -> set[str]:
        """The columns of names: their cells are texts, also if they look like numbers."""
        options = self.options
        roles = (options.label, options.domain, self.domain_column, options.group)
        labels = names_with_commas(options.label or "")
        return {*filter(None, roles), *labels, *options.categories, *options.text}

    @property
    def domain_column(self) -> str | None:
        """The column of the domain, without the part of a date that it may be."""
        column, _, part = (self.options.domain or "").rpartition(":")
        return column if column and part in PARTS else self.options.domain

    def facts_of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of the roles; refuse names of columns that do not exist."""
        options = self.options
        if options.label is None:
            raise FarshoreError(
                f"--label is not given: name the column of {self.title} with the class, one of "
                f"{', '.join(frame.columns)}"
            )
        if options.domain is None and options.domain_by is None:
            raise FarshoreError(
                f"--domain is not given: name the column of {self.title} with the domain, one of "
                f"{', '.join(frame.columns)}, or auto"
            )
        names = label_names(options.label, frame.columns)
        facts = {
            f"label {number}" if number > 1 else "label": need_texts(
                frame, name, "--label", missing=True
            )
            for number, name in enumerate(names, start=1)
        }
        if options.domain is not None and options.domain in frame.columns:
            facts["domain"] = need_texts(frame, options.domain, "--domain")
        elif options.domain is not None:
            column, part = str(self.domain_column), options.domain.rpartition(":")[2]
            if column == options.domain:
                need_texts(frame, column, "--domain")  # says which columns there are
            facts["domain"] = need_parts(frame, column, part, options.time_format)
        if options.time is not None:
            facts["time"] = need_times(frame, options.time, options.time_format)
        if options.group is not None:
            facts["group"] = need_texts(frame, options.group, "--group")
        if options.weight is not None:
            facts["weight"] = need_weights(frame, options.weight)
        for flag in ("drop", "categories", "text"):
            for column in divide_names(getattr(options, flag))[0]:
                if column not in frame.columns:
                    raise unknown(f"column in --{flag}", column, frame.columns)
        if encoder := divide_names(options.text)[1]:
            open_encoder(encoder)  # refused now, not in every run
        return pd.DataFrame(facts)


@lru_cache(maxsize=1)
def _table(options: TableOptions, file: str) -> pd.DataFrame:
    """The table in a file with this checksum. All runs of a plan, and all of a worker, share it."""
    own = OwnTable(options)
    times = [options.time] if options.time else []
    return own.in_one_form(read_table(own.path, {*own.texts, *options.drop, *times}, options.form))


@lru_cache(maxsize=1)
def _table_facts(options: TableOptions, file: str) -> pd.DataFrame:
    """The facts of that table."""
    return OwnTable(options).facts_of(_table(options, file))


@lru_cache(maxsize=64)
def _digest(options: TableOptions, file: str) -> str:
    """The checksum of the cells that count in a file with this checksum."""
    rows = OwnTable(options).rows()
    as_texts = {*options.categories, *options.text}
    inputs = table_digest(rows.table, as_texts, options.time_format)
    return hashlib.sha256(f"{facts_digest(rows.facts)} {inputs}".encode()).hexdigest()


def facts_digest(facts: pd.DataFrame) -> str:
    """A checksum of domains, labels, times, groups and weights."""
    names = [str(column) for column in facts if str(column).startswith("label")]
    return table_digest(facts, (*names, "domain", "group"))
