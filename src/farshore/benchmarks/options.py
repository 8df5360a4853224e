"""Options: what can be asked of a benchmark, checked before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..data.boundaries import By
from ..errors import FarshoreError, unknown
from ..settings import explain

Preprocess = Literal["first", "all-sources"]
# As the name of the column that holds the domain: there is none, domains are constructed.
AUTO = "auto"


class BenchmarkOptions(BaseModel):
    """What every benchmark has; a benchmark with more inherits from this. Plain values, every one
    with a default, except what a benchmark cannot do without.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    domain_by: By | None = Field(
        None,
        description="hide the domain labels and construct others: drift, blocks, time or cluster",
    )
    domains: int | None = Field(
        None, ge=1, description="how many domains are constructed; as many as are found by default"
    )

    @classmethod
    def build(cls, values: Mapping[str, Any], benchmark: str) -> Self:
        """The options of the benchmark of this name; a bad name or value is one clear error.

        `domain: auto` means for every benchmark that domains are constructed, by drift if nothing
        else is asked for.
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
                raise FarshoreError(
                    f"option {name!r} of {benchmark} is not given: {info.description}"
                )
        try:
            return cls(**given)
        except ValidationError as error:
            raise FarshoreError(f"{benchmark}: {explain(error)}") from None

    @model_validator(mode="after")
    def _domains_are_constructed(self) -> Self:
        if self.domains is not None and self.domain_by is None:
            raise FarshoreError("--domains says how many to construct: it needs --domain auto")
        return self

    def plain(self) -> dict[str, Any]:
        """As plain values; those at their defaults are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)
