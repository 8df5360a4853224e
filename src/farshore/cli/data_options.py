"""The flags of `run` and `compare` that choose the data and the network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.files import TABLE_SUFFIXES
from ..errors import FarshoreError

BenchmarkArgument = Annotated[
    str,
    typer.Argument(
        help="name of a benchmark, your own table (CSV, Parquet, ...) or folder of images, or "
        "hf-dataset:NAME"
    ),
]
DomainFlag = Annotated[
    str | None,
    typer.Option(help="column with the domain, or auto: find domains without labels"),
]
LabelFlag = Annotated[str | None, typer.Option(help="column with the class")]
DropFlag = Annotated[str | None, typer.Option(help="columns to ignore, for example id,name")]
TimeFlag = Annotated[
    str | None,
    typer.Option(help="column with the time: it orders the domains, and splits never look ahead"),
]
TimeFormatFlag = Annotated[
    str | None,
    typer.Option(help="how times are written, for example %d/%m/%Y [default: number or ISO]"),
]
CategoriesFlag = Annotated[
    str | None, typer.Option(help="columns to read as text even if they are numbers")
]
GroupFlag = Annotated[
    str | None,
    typer.Option(help="column with groups (patients, lots) that no split may divide"),
]
WeightFlag = Annotated[
    str | None,
    typer.Option(help="column with the weight of each row in training; it is not an input"),
]
SeparatorFlag = Annotated[
    str | None,
    typer.Option(
        help="text file: character between fields, ',' ';' '|' or tab [default: as in the header]"
    ),
]
EncodingFlag = Annotated[
    str | None,
    typer.Option(help="text file: its encoding, for example cp1252 [default: utf-8]"),
]
DecimalFlag = Annotated[
    str | None, typer.Option(help="text file: decimal mark of numbers, . or , [default: .]")
]
PreprocessFlag = Annotated[
    str | None,
    typer.Option(help="fit the scaling on the first domain, or on all-sources (not continual)"),
]
MetricFlag = Annotated[
    str | None,
    typer.Option(
        help="own data: accuracy or macro_f1 [default: macro_f1 if a class is rarer than 5% in the "
        "first source, otherwise accuracy]"
    ),
]
ClassesFlag = Annotated[
    str | None,
    typer.Option(
        help="own data: all classes, a,b,c; from-file: also those that only the target has "
        "[default: those of the sources]"
    ),
]
SharedRowsFlag = Annotated[
    str | None, typer.Option(help="source rows that are also in the target: keep or leave-out")
]
SizeFlag = Annotated[
    int | None,
    typer.Option(
        help="own images: resize them to this many pixels per side [default: as the network "
        "expects]"
    ),
]
DomainByFlag = Annotated[
    str | None,
    typer.Option(help="with --domain auto: drift, blocks, time or cluster [default: drift]"),
]
DomainsFlag = Annotated[
    int | None,
    typer.Option(help="with --domain auto: number of domains [default: as many as it finds]"),
]
SeverityFlag = Annotated[
    int | None, typer.Option(help="severity of the corruptions, 1 to 5 [default: 5]")
]
WeightsFlag = Annotated[
    str | None,
    typer.Option(
        help="initial weights of the network: pretrained, a file, or none; for resnet18: imagenet, "
        "a file, or none"
    ),
]
OptionFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="an option of the benchmark, name=value, repeatable; `farshore benchmarks NAME` "
        "lists them",
    ),
]
NetworkFlag = Annotated[
    str | None,
    typer.Option(
        help="network to use instead of the benchmark's own: mlp, cnn, resnet18, histogram, "
        "hf:NAME, timm:NAME, torchvision:NAME, or module.py:factory of your own"
    ),
]
# For commands that open a model.
OwnNetworkFlag = Annotated[
    str | None,
    typer.Option(
        "--network",
        help="module.py:factory, needed if the model has a backbone of your own: opening a model "
        "never runs code that the model names",
    ),
]
TrainFlag = Annotated[
    str | None,
    typer.Option(
        help="what is trained: head (the classifier on frozen features, which are computed once), "
        "last-block, or all [default: all; own data: head if the network is pretrained]"
    ),
]
ImageFlag = Annotated[
    str | None, typer.Option(help="table: column with the path of an image, which is the input")
]
SkipBrokenFlag = Annotated[
    bool,
    typer.Option(
        "--skip-broken", help="own images: leave out those that cannot be read, and list them"
    ),
]
NetworkSetFlag = Annotated[
    list[str] | None,
    typer.Option("--network-set", help="a setting of the network, name=value, repeatable"),
]


# How the name of a data set of the Hugging Face hub begins.
HF_DATASET = "hf-dataset:"
# The flags that are options of a benchmark under the same name.
OPTION_FLAGS = (
    "domain",
    "label",
    "drop",
    "time",
    "time_format",
    "group",
    "categories",
    "weight",
    "separator",
    "encoding",
    "decimal",
    "preprocess",
    "metric",
    "classes",
    "shared_rows",
    "image",
    "size",
    "domain_by",
    "domains",
    "severity",
    "weights",
)


def data_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run that choose its data and its network.

    `arguments` are those of `run` or `compare` by name: `benchmark` (a name or a path), the flags
    above (None if not given), `option`, `network` and `network_set`.
    """
    from ..settings import parse_assignments

    benchmark, option, network_set = (
        arguments[name] for name in ("benchmark", "option", "network_set")
    )
    options = {name: arguments[name] for name in OPTION_FLAGS if arguments[name] is not None}
    if "domain_by" in options and options.get("domain") != "auto":
        raise FarshoreError(
            f"--domain-by {options['domain_by']} chooses how to construct domains: it needs "
            "--domain auto"
        )
    assigned = parse_assignments(option or [], flag="--option", example="severity=3")
    for name in assigned:
        if name in options:
            raise FarshoreError(
                f"--option {name} is not allowed with --{name.replace('_', '-')}: give one of "
                "the two"
            )
    options |= assigned
    if arguments.get("skip_broken"):
        options["skip_broken"] = True
    if benchmark.startswith(HF_DATASET):
        options["path"], benchmark = benchmark.removeprefix(HF_DATASET), "hf-dataset"
    elif is_path(benchmark):
        options["path"] = benchmark
        folder = Path(benchmark).expanduser().is_dir()
        benchmark = "image-folder" if folder else "image-table" if "image" in options else "table"
    network_settings = parse_assignments(
        network_set or [], flag="--network-set", example="width=64"
    )
    if "weights" in options and not _has_weights(benchmark, arguments["network"]):
        network_settings.setdefault("weights", options.pop("weights"))
    return {
        "benchmark": benchmark,
        "options": options,
        "network": arguments["network"],
        "network_settings": network_settings,
    }


def _has_weights(benchmark: str, network: str | None) -> bool:
    """Whether the benchmark has an option for the weights of its own network."""
    from ..benchmarks import BENCHMARKS

    return network is None and "weights" in BENCHMARKS.get(benchmark).Options.model_fields


def is_path(name: str) -> bool:
    """Whether `name` is a file or folder. Benchmark names win; an apparent path must exist."""
    from ..benchmarks import BENCHMARKS

    if name in BENCHMARKS.names():
        return False
    looks_like_path = (
        "/" in name
        or "\\" in name
        or Path(name.lower().removesuffix(".gz")).suffix in TABLE_SUFFIXES
    )
    if Path(name).expanduser().exists():
        return True
    if looks_like_path:
        raise FarshoreError(
            f"there is no file or folder {name!r}: check the path, or name a benchmark "
            "(`farshore benchmarks` lists them)"
        )
    return False
