"""The flags of `run` and `compare` that say which data and which network, and how they become
part of a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import FarshoreError

BenchmarkArgument = Annotated[
    str,
    typer.Argument(
        help="name of a benchmark, or your own table (CSV, Parquet) or folder of images"
    ),
]
DomainFlag = Annotated[
    str | None,
    typer.Option(help="column that names the domain, or auto: domains are found without labels"),
]
LabelFlag = Annotated[str | None, typer.Option(help="column that holds the class")]
DropFlag = Annotated[
    str | None, typer.Option(help="columns that are no inputs, for example id,name")
]
TimeFlag = Annotated[
    str | None,
    typer.Option(help="column of time: orders the domains, and splits never look ahead"),
]
GroupFlag = Annotated[
    str | None,
    typer.Option(help="column whose groups (patients, lots) stay on one side of every split"),
]
PreprocessFlag = Annotated[
    str | None,
    typer.Option(help="learn scales on the first domain, or on all-sources (not continual)"),
]
SharedRowsFlag = Annotated[
    str | None, typer.Option(help="source rows that stand in the target too: keep or leave-out")
]
SizeFlag = Annotated[
    int | None, typer.Option(help="pixels per side that images are resized to; default 32")
]
DomainByFlag = Annotated[
    str | None, typer.Option(help="with --domain auto: drift (default), blocks, time or cluster")
]
DomainsFlag = Annotated[
    int | None,
    typer.Option(help="with --domain auto: how many domains; default: as many as are found"),
]
SeverityFlag = Annotated[
    int | None, typer.Option(help="severity of the corruptions, 1 to 5; default 5")
]
WeightsFlag = Annotated[
    str | None,
    typer.Option(help="what resnet18 starts from: imagenet (default), a file, or none"),
]
OptionFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="an option of the benchmark, name=value; may be repeated; `farshore benchmarks NAME` "
        "lists them",
    ),
]
NetworkFlag = Annotated[
    str | None, typer.Option(help="a network in place of the benchmark's own, for example mlp")
]
NetworkSetFlag = Annotated[
    list[str] | None,
    typer.Option("--network-set", help="a setting of the network, name=value; may be repeated"),
]


def data_fields(
    benchmark: str,
    flags: dict[str, Any],
    *,
    option: list[str] | None = None,
    network: str | None = None,
    network_set: list[str] | None = None,
) -> dict[str, Any]:
    """The fields of a run that say which data and which network. `flags` are well-known options by
    name, None where they are not given; `benchmark` is a name or a path.
    """
    from ..settings import parse_assignments

    given = {name: value for name, value in flags.items() if value is not None}
    if "domain_by" in given and given.get("domain") != "auto":
        raise FarshoreError(
            f"--domain-by {given['domain_by']} says how to construct domains: it needs --domain "
            "auto"
        )
    others = parse_assignments(option or [], flag="--option", example="severity=3")
    for name in others:
        if name in given:
            raise FarshoreError(
                f"--option {name} is not allowed beside --{name.replace('_', '-')}: give one of "
                "the two"
            )
    given |= others
    if is_path(benchmark):
        folder = Path(benchmark).expanduser().is_dir()
        given["path"] = benchmark
        benchmark = "image-folder" if folder else "table"
    return {
        "benchmark": benchmark,
        "options": given,
        "network": network,
        "network_settings": parse_assignments(
            network_set or [], flag="--network-set", example="width=64"
        ),
    }


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
