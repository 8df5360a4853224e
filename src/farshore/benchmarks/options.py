"""Benchmark options, validated before any data are read."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import FarshoreError, unknown
from ..settings import explain
from .own.boundaries import By

FittedTo = Literal["first", "all-sources"]
# Special value of the option `domain`: there is no domain column, so domains are constructed.
AUTO = "auto"


class BenchmarkOptions(BaseModel):
    """Options of every benchmark, plain values; all but the required ones have defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    domain_by: By | None = Field(
        None,
        description="hide the domain labels and construct others: drift, blocks, time or cluster",
    )
    domains: int | None = Field(
        None, ge=1, description="number of domains to construct; by default as many as are found"
    )

    @classmethod
    def build(cls, values: Mapping[str, Any], benchmark: str) -> Self:
        """Validate options; an unknown name or invalid value raises a clear error.

        For every benchmark, `domain: auto` means that domains are constructed, by default by drift.
        """
        given = dict(values)
        if given.get("domain") == AUTO:
            del given["domain"]
            given["domain_by"] = given.get("domain_by") or "drift"
        for name in given:
            if name not in cls.model_fields:
                raise unknown(f"option of {benchmark}", name, cls.model_fields)
        for name, info in cls.model_fields.items():
            if info.is_required() and name not in given:
                why = f"option {name!r} of {benchmark} is not given: {info.description}"
                raise FarshoreError(why)
        try:
            return cls(**given)
        except ValidationError as error:
            raise FarshoreError(f"{benchmark}: {explain(error)}") from None

    @model_validator(mode="after")
    def _domains_are_constructed(self) -> Self:
        if self.domains is not None and self.domain_by is None:
            why = "--domains sets how many domains to construct: it needs --domain auto"
            raise FarshoreError(why)
        return self

    def plain(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as plain values."""
        return self.model_dump(mode="json", exclude_defaults=True)
