"""The flags that choose data, network and training, in groups that commands share."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.files import TABLE_SUFFIXES
from ..errors import FarshoreError, no_such_file
from .flags import flag

if TYPE_CHECKING:
    from ..data.tables.read_table import TextForm

# How the name of a data set of the Hugging Face hub begins.
HF_DATASET = "hf-dataset:"

# The help of what several commands or groups have.
BENCHMARK = (
    "name of a benchmark, your own table (CSV, Parquet, ...) or folder of images, or "
    "hf-dataset:NAME"
)
MODEL = "folder of the model"
UNLABELLED = "a table (CSV, Parquet, ...) or a folder of images; labels are not needed"
MODEL_LABEL = "column with the class [default: the model's own]"
MODEL_NETWORK = (
    "module.py:factory, needed if the model has a backbone of your own: opening a model never runs "
    "code that the model names"
)
TIME_FORMAT = "how times are written, for example %d/%m/%Y [default: number or ISO]"
TEXT = (
    "columns of free text [default: those that are long and differ from row to row in the first "
    "domain]; their words become features. hf:NAME among them: a text encoder reads them instead"
)
WEIGHT = "column with the weight of each row in training; it is not an input"
SKIP_BROKEN = "own images: leave out those that cannot be read, and list them"
SEVERITY = "severity of the corruptions, 1 to 5 [default: 5]"
WEIGHTS = (
    "initial weights of the network: pretrained, a file, or none; for resnet18: imagenet, a file, "
    "or none"
)
TRAIN = (
    "what is trained: head (the classifier on frozen features, which are computed once), "
    "last-block, or all [default: all; own data: head if the network is pretrained]"
)


@dataclass(frozen=True)
class TextOptions:
    """How a text file with a table is written."""

    heading: ClassVar = "Text files"

    separator: str | None = flag(
        "text file: character between fields, ',' ';' '|' or tab [default: as in the header]"
    )
    encoding: str | None = flag("text file: its encoding, for example cp1252 [default: utf-8]")
    decimal: str | None = flag("text file: decimal mark of numbers, . or , [default: .]")

    def form(self) -> "TextForm":
        """The same for the reader of tables, which refuses what it does not know."""
        from ..data.tables.read_table import TextForm

        return TextForm(**vars(self))


@dataclass(frozen=True)
class DataOptions:
    """Which data are learned, with which network. None: not given.

    Most of them are options of a benchmark under the same name.
    """

    heading: ClassVar = "Data and network"

    domain: str | None = flag(
        "column with the domain, a part of a date (sold:year, :quarter, :month), or auto: find "
        "domains without labels"
    )
    label: str | None = flag("column with the class or the number; several numbers with commas")
    task: str | None = flag(
        "what a label is: classification, regression or auto [default: auto: regression if the "
        "first source has numbers that look like a quantity]"
    )
    log_label: bool = flag("regression: learn the logarithm of the label, as for prices", False)
    unit: str | None = flag("regression: the unit of the label, shown with scores")
    drop: str | None = flag("columns to ignore, for example id,name")
    time: str | None = flag(
        "column with the time: it orders the domains, and splits never look ahead"
    )
    time_format: str | None = flag(TIME_FORMAT)
    group: str | None = flag("column with groups (patients, lots) that no split may divide")
    categories: str | None = flag("columns to read as categories even if they are numbers")
    text: str | None = flag(TEXT)
    weight: str | None = flag(WEIGHT)
    written: TextOptions = field(default_factory=TextOptions)
    preprocess: str | None = flag(
        "fit the scaling on the first domain, or on all-sources (not continual)"
    )
    metric: str | None = flag(
        "own data: accuracy or macro_f1 [default: macro_f1 if a class is rarer than 5% in the "
        "first source, otherwise accuracy]; regression: mae [default], rmse, r2 or skill"
    )
    classes: str | None = flag(
        "own data: all classes, a,b,c; from-file: those of the sources, and others in the target "
        "count as errors [default: others are refused]"
    )
    shared_rows: str | None = flag("source rows that are also in the target: keep or leave-out")
    image: str | None = flag("table: column with the path of an image, which is the input")
    size: int | None = flag(
        "own images: resize them to this many pixels per side [default: as the network expects]"
    )
    skip_broken: bool = flag(SKIP_BROKEN, False)
    domain_by: str | None = flag(
        "with --domain auto: drift, blocks, time or cluster [default: drift]"
    )
    domains: int | None = flag(
        "with --domain auto: number of domains [default: as many as it finds]"
    )
    severity: int | None = flag(SEVERITY)
    weights: str | None = flag(WEIGHTS)
    option: list[str] | None = flag(
        "an option of the benchmark, name=value, repeatable; `farshore benchmarks NAME` lists them"
    )
    network: str | None = flag(
        "network to use instead of the benchmark's own: mlp, cnn, resnet18, histogram, hf:NAME, "
        "timm:NAME, torchvision:NAME, or module.py:factory of your own"
    )
    network_set: list[str] | None = flag("a setting of the network, name=value, repeatable")
    train: str | None = flag(TRAIN)

    def fields(self, benchmark: str) -> dict[str, Any]:
        """The fields of a run that choose its data and its network.

        benchmark: a name, or the path of own data.
        """
        from ..benchmarks import BENCHMARKS

        options = self._options()
        if benchmark.startswith(HF_DATASET):
            options["path"], benchmark = benchmark.removeprefix(HF_DATASET), "hf-dataset"
        elif is_path(benchmark):
            options["path"] = benchmark
            folder = Path(benchmark).expanduser().is_dir()
            table = "image-table" if "image" in options else "table"
            benchmark = "image-folder" if folder else table
        network_settings = network_assignments(self.network_set)
        of_network = self.network is not None or (
            "weights" in options and "weights" not in BENCHMARKS.get(benchmark).Options.model_fields
        )
        if "weights" in options and of_network:
            network_settings.setdefault("weights", options.pop("weights"))
        chosen = {"network": self.network, "network_settings": network_settings}
        return {"benchmark": benchmark, "options": options, **chosen}

    def _options(self) -> dict[str, Any]:
        """The options of the benchmark: those with flags of their own, and those of --option."""
        from ..settings import parse_assignments

        of_the_run = ("written", "option", "network", "network_set", "train")
        options = {
            name: value
            for name, value in {**vars(self), **vars(self.written)}.items()
            if name not in of_the_run and value is not None and value is not False
        }
        if "domain_by" in options and options.get("domain") != "auto":
            raise FarshoreError(
                f"--domain-by {options['domain_by']} chooses how to construct domains: it needs "
                "--domain auto"
            )
        assigned = parse_assignments(self.option or [], flag="--option", example="severity=3")
        for name in assigned:
            if name in options:
                raise FarshoreError(
                    f"--option {name} is not allowed with --{name.replace('_', '-')}: give one of "
                    "the two"
                )
        return options | assigned


@dataclass(frozen=True)
class TrainingOptions:
    """How long the methods of a command are trained, with which memory and settings."""

    heading: ClassVar = "Training"

    steps: int | None = flag("training steps per domain")
    memory: int | None = flag("rows kept from all past domains together")
    set: list[str] | None = flag("a setting of the run, name=value, the same for all methods")


def network_assignments(network_set: list[str] | None) -> dict[str, str]:
    """The settings of the network that --network-set assigns."""
    from ..settings import parse_assignments

    return parse_assignments(network_set or [], flag="--network-set", example="width=64")


def settings_of(assigned: list[str] | None, train: str | None) -> dict[str, object]:
    """The settings of a run: those that --set assigns, and what is trained."""
    from ..settings import parse_assignments

    given = {"train": train} if train is not None else {}
    return {**parse_assignments(assigned or []), **given}


def is_path(name: str) -> bool:
    """Whether `name` is a file or folder. Benchmark names win; an apparent path must exist."""
    from ..benchmarks import BENCHMARKS

    if name in BENCHMARKS.names():
        return False
    if Path(name).expanduser().exists():
        return True
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if "/" in name or "\\" in name or suffix in TABLE_SUFFIXES:
        raise no_such_file(name, ", or name a benchmark (`farshore benchmarks` lists them)")
    return False
