"""How the options that describe a user's own data become part of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import FarshoreError


def own_data(name: str, options: Mapping[str, Any], domain_by: str | None) -> dict[str, Any]:
    """The fields `data` and `domain_by` of a run on `name`, which is a benchmark or a path."""
    auto = options["domain"] == "auto"
    if domain_by is not None and not auto:
        raise FarshoreError(
            f"--domain-by {domain_by} says how to construct domains: it needs --domain auto"
        )
    hidden = {"domain_by": domain_by or ("drift" if auto else None)}
    if is_path(name):
        return {
            "data": {
                "path": name,
                **{key: value for key, value in options.items() if value is not None},
            },
            **hidden,
        }
    wrong = [
        key
        for key, value in options.items()
        if value is not None and not (key == "domain" and auto)
    ]
    if wrong:
        raise FarshoreError(
            f"--{wrong[0].replace('_', '-')} is for your own data: {name!r} is a benchmark; give "
            "a path to a file or folder"
        )
    return hidden


def is_path(name: str) -> bool:
    """Whether `name` means a file or folder. Names of benchmarks win; what looks like a path
    must exist.
    """
    from ..benchmarks import BENCHMARKS

    if name in BENCHMARKS.names():
        return False
    looks = (
        "/" in name
        or "\\" in name
        or Path(name).suffix.lower() in (".csv", ".tsv", ".parquet", ".pq")
    )
    if Path(name).expanduser().exists():
        return True
    if looks:
        raise FarshoreError(
            f"there is no file or folder {name!r}: check the path, or name a benchmark "
            "(`farshore benchmarks` lists them)"
        )
    return False
