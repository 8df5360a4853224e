"""What a user says about his own data, in plain values: enough to build the same scenario again."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Preprocess = Literal["first", "all-sources"]


class OwnData(BaseModel):
    """A table (CSV, Parquet) or a folder of images, and which column says what.

    domain: the column that names the domain, or `auto` where there is none; a folder of images has
    its own.
    shared_rows: what happens to source rows that stand in the target too (the same inputs, or a
    group of both): `keep` warns with the count, `leave-out` takes them out of the sources as well,
    so that the target decides what is learned from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    domain: str | None = None
    label: str | None = None
    drop: tuple[str, ...] = ()
    time: str | None = None
    group: str | None = None
    shared_rows: Literal["keep", "leave-out"] = "keep"
    size: int = Field(32, ge=1, le=1024)
