"""Experiments as YAML files: the runs behind a table or a figure, checked before they start.

name: memory_50
about: half of the memory
search: {trials: 20, seeds: 3}
parts:
  - benchmarks: [rotated-mnist, covertype]
    methods: [fdr, er-ace, star, tailored]
    memory: 500

Own data are listed with the benchmarks as {table: {path: heart.csv, domain: hospital, label: num}}.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ...base.names import find_problem
from ...benchmarks import BENCHMARKS, make_benchmark
from ...errors import FarshoreError, unknown, within
from ...networks.build import plain_network_settings
from ...networks.pretrained.own_module import is_own_module
from ...settings import RunSettings, divide
from .. import catalog
from ..search.selection import Rule
from ..search.space import run_seed
from .bounded_yaml import read_yaml
from .select import DRAWN, select_methods

SearchBy = Literal["random", "optuna"]
TableName = Literal[
    "backward transfer", "source performance", "run time", "step time", "naive and tailored"
]
# The command that plans an experiment: `sweep` reads a file, `compare` a command line.
Command = Literal["sweep", "compare"]


MOST_TRIALS, MOST_SEEDS, MOST_VALUES = 100_000, 10_000, 1000


def _as_name(name: str) -> str:
    problem = find_problem(name)
    if problem is not None:
        raise ValueError(f"a name; {problem}")
    return name


# The name of an experiment, which is the name of a file too.
Name = Annotated[str, AfterValidator(_as_name)]


class Spec(BaseModel):
    """A section of an experiment file. Unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def but(self, **changed: Any) -> Self:
        """The same section with other values of some keys."""
        return self.model_copy(update=changed)


def _check_seeds(seeds: object) -> object:
    """Accept a number of seeds or a list of distinct run seeds; `True` is not a number."""
    if isinstance(seeds, list | tuple):
        valid = all(type(seed) is int and seed >= 0 for seed in seeds)
        if valid and 0 < len(set(seeds)) == len(seeds) <= MOST_SEEDS:
            return list(seeds)
    elif type(seeds) is int and 1 <= seeds <= MOST_SEEDS:
        return seeds
    raise ValueError("a number of seeds, at least 1, or a list of different run seeds, from 0")


class Search(Spec):
    """How settings are searched.

    trials: trials per method and seed; trial 0 uses the defaults.
    seeds: a number of seeds, from which run seeds are derived, or a list of run seeds.
    seed: the seed of the draws; runs and data have seeds of their own.
    by: `random` is the paper's search; with `optuna`, earlier trials guide the draws, and trials
        that fall behind are stopped.
    """

    trials: int = Field(default=20, ge=1, le=MOST_TRIALS)
    seeds: Annotated[int | list[int], BeforeValidator(_check_seeds)] = 3
    seed: int = 0
    by: SearchBy = "random"

    @property
    def run_seeds(self) -> dict[int, int]:
        """Run seeds by seed number. A run seed from the file is its own number."""
        if isinstance(self.seeds, int):
            return {number: run_seed(self.seed, number) for number in range(self.seeds)}
        return {seed: seed for seed in self.seeds}


@dataclass(frozen=True)
class Data:
    """An entry of `benchmarks`: the benchmark, its options, and its name in tables."""

    benchmark: str
    options: Mapping[str, Any]
    title: str


class Part(Spec):
    """Every method on every benchmark, under the same conditions."""

    # Names, or {name: options}; own data are {table: {path: ..., ...}} or {image-folder: {...}}.
    benchmarks: list[str | dict[str, dict[str, Any]]] = Field(min_length=1)
    methods: list[str] = Field(min_length=1)
    # A domain, or `each`: every domain is the target in turn.
    target: str | None = None
    orders: list[str] = Field(["listed"], min_length=1)
    steps: int | None = Field(None, ge=1, lt=2**31)
    memory: int | None = Field(None, ge=1, lt=2**31)
    # Each applies to the benchmarks that have it: severity, weights, domain_by, ...
    options: dict[str, Any] = Field(default_factory=dict)
    # A network that replaces those of the benchmarks; settings of whichever is used.
    network: str | None = None
    network_settings: dict[str, Any] = Field(default_factory=dict)
    # Settings that are the same in every trial and are not searched.
    settings: dict[str, Any] = Field(default_factory=dict)
    # Upper bounds, which apply to defaults too: at_most: {batch_size: 32}.
    at_most: dict[str, float] = Field(default_factory=dict)
    search: Search | None = None
    # Use the selected settings of this experiment instead of searching. A method that it does not
    # include runs with its defaults.
    settings_from: Name | None = None
    # Only the best of the selected runs by the selection rule, instead of one per seed.
    best_seed: bool = False
    # Settings that are varied one at a time over `values` points of their distribution; the others
    # stay as selected, or at their defaults without `settings_from`.
    vary: list[str] = Field(default_factory=list)
    values: int = Field(10, ge=2, le=MOST_VALUES)
    # Save features of sources and target next to the result, for figures.
    features: bool = False

    @property
    def systems(self) -> list[str]:
        """The names of the methods, with groups expanded."""
        return select_methods(self.methods)

    @property
    def data(self) -> list[Data]:
        """The benchmarks, including own data."""
        entries: list[tuple[str, dict[str, Any]]] = []
        for entry in self.benchmarks:
            entries += entry.items() if isinstance(entry, dict) else [(entry, {})]
        return [Data(name, of, make_benchmark(name, of).title) for name, of in entries]

    def options_of(self, data: Data) -> dict[str, Any]:
        """The part's options that the benchmark has, overridden by those of the entry."""
        known = BENCHMARKS.get(data.benchmark).Options.model_fields
        shared = {name: value for name, value in self.options.items() if name in known}
        return {**shared, **data.options}


class Beside(Spec):
    """Rows of another experiment in the same table, as a variant of their methods."""

    experiment: Name
    methods: list[str] = Field(min_length=1)
    variant: str = ""


class Experiment(Spec):
    """The contents of an experiment file."""

    name: Name
    about: str
    scenario_seed: int = Field(0, ge=0, lt=2**32)
    selection: Rule = "source-validation"
    search: Search = Field(default_factory=Search)
    parts: list[Part] = Field(default_factory=list)
    # Experiments whose selected runs make up the table; nothing is run for it.
    reads: list[Name] = Field(default_factory=list)
    # Rows of other experiments that the table shows too, if they are recorded in the same folder.
    beside: list[Beside] = Field(default_factory=list)
    # What the table shows; without it, the score on the target.
    table: TableName | None = None
    command: Command = "sweep"

    @property
    def ranked(self) -> bool:
        """Whether methods can be ranked: not if settings vary, or the best seed alone is shown."""
        return not any(part.vary or part.best_seed for part in self.parts)


# Finds an experiment by name.
Book = Callable[[str], Experiment]


def read_experiment(path: Path, own: Collection[str] | None = ()) -> Experiment:
    """Read an experiment. Errors are reported in one line that names file and key.

    own: the networks `module.py:factory` that it may name, because whoever reads it has named them
        too: a file is no reason to run code. None if nothing of it will be imported.
    """
    data = read_yaml(path)
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        why = f"{path} is not an experiment: it should have keys such as name, about and parts"
        raise FarshoreError(why)
    with within(path):
        try:
            experiment = Experiment(**data)
        except ValidationError as error:
            raise FarshoreError(explain_keys(error)) from None
        check(experiment)
        if own is not None:
            _check_own(experiment, own)
    return experiment


def make_book(
    path: Path,
    change: Callable[[Experiment], Experiment] = lambda same: same,
    own: Collection[str] = (),
) -> Book:
    """A book of the experiments next to `path`; `change` is applied to each (to scale it down).

    own: the networks of the user's own that they may name, as for `read_experiment`.
    """

    def find(name: str) -> Experiment:
        file = path.with_name(f"{name}.yaml")
        if not file.is_file():
            raise FarshoreError(f"{path} reads the experiment {name!r}, but there is no {file}")
        return change(read_experiment(file, own))

    return find


def _check_own(experiment: Experiment, own: Collection[str]) -> None:
    """Refuse a network in a Python file that only the experiment names."""
    for index, part in enumerate(experiment.parts):
        name = part.network
        if name is not None and is_own_module(name) and name not in own:
            raise FarshoreError(
                f"parts.{index}.network: {name!r} is a Python file, and reading an experiment runs "
                f"no code that it names: name it again if you trust it, --network {name}"
            )


def check(experiment: Experiment) -> None:
    """Check that all names exist and that no two keys exclude each other."""
    if bool(experiment.parts) == bool(experiment.reads):
        raise FarshoreError(
            "parts: give either parts (what is run) or reads with table (a table of other "
            "experiments' runs)"
        )
    if experiment.reads and experiment.table is None:
        raise FarshoreError("table: an experiment that reads others must name its table")
    for index, part in enumerate(experiment.parts):
        where = f"parts.{index}"
        _check_data(part, where)
        with within(f"{where}.methods"):
            part.systems  # noqa: B018 - an unknown method is refused here
        if part.best_seed and part.settings_from is None:
            raise FarshoreError(
                f"{where}.settings_from: best_seed takes the best of the selected runs of an "
                "experiment: name it"
            )
        trials = (part.search or experiment.search).trials
        if part.vary and part.settings_from is None and trials != 1:
            raise FarshoreError(
                f"{where}.search: vary without settings_from starts from the defaults: give "
                "search: {trials: 1}"
            )
        if part.search is not None and part.settings_from is not None:
            raise FarshoreError(
                f"{where}.search: settings_from takes settings that were searched before: give "
                "one of the two"
            )
        if DRAWN in part.orders and part.orders != [DRAWN]:
            raise FarshoreError(
                f"{where}.orders: {DRAWN} (each trial draws an order) cannot be combined with "
                "other orders: give it a part of its own"
            )
        if part.settings_from is None and (part.search or experiment.search).by == "optuna":
            _check_optuna(experiment, part, where)
        _check_settings(part, where)


def check_dependencies(experiment: Experiment, book: Book) -> None:
    """Refuse experiments that take settings or runs from each other in a circle."""

    def follow(current: Experiment, path: tuple[str, ...]) -> None:
        for name in needs(current):
            if name in path:
                circle = " -> ".join((*path, name))
                raise FarshoreError(
                    f"experiments refer to each other in a circle ({circle}): settings_from and "
                    "reads name experiments that were carried out before"
                )
            follow(book(name), (*path, name))

    follow(experiment, (experiment.name,))


def needs(experiment: Experiment) -> list[str]:
    """The names of the experiments that this one takes settings or runs from."""
    taken = [part.settings_from for part in experiment.parts if part.settings_from is not None]
    return list(dict.fromkeys([*experiment.reads, *taken]))


def _check_settings(part: Part, where: str) -> None:
    """Refuse settings that a method does not have, or values that it refuses, ahead of all runs."""
    known: dict[str, Any] = {}
    for method in part.systems:
        entry = catalog.find(method)
        with within(f"{where}.settings: {method}"):
            for_method, for_run = divide(part.settings, entry.Settings)
            entry.Settings.plain(for_method)
            RunSettings.plain(for_run)
        known |= entry.Settings.defaults()
    for name in (*part.vary, *part.at_most):
        if name not in known:
            key = "vary" if name in part.vary else "at_most"
            raise FarshoreError(f"{where}.{key}: {unknown('setting', name, known)}")
    for name in part.at_most:
        if isinstance(known[name], bool) or not isinstance(known[name], int | float):
            raise FarshoreError(f"{where}.at_most: {name!r} is not a number and has no upper bound")


def _check_data(part: Part, where: str) -> None:
    """Check that benchmarks, options and networks exist."""
    with within(f"{where}.benchmarks"):
        entries = part.data
    titles = [data.title for data in entries]
    for title in titles:
        if titles.count(title) > 1:
            raise FarshoreError(
                f"{where}.benchmarks: {title!r} is listed twice, and a table could not "
                "distinguish the two: give each a part of its own, or another file name"
            )
    kinds = [BENCHMARKS.get(data.benchmark) for data in entries]
    known = {name for kind in kinds for name in kind.Options.model_fields}
    for name in part.options:
        if name not in known:
            raise FarshoreError(f"{where}.options: {unknown('option', name, known)}")
    with within(f"{where}.options"):
        for data, kind in zip(entries, kinds, strict=True):
            kind.Options.build(part.options_of(data), data.benchmark)
    with within(f"{where}.network"):
        for kind in kinds:
            plain_network_settings(part.network or kind.usual_network(), part.network_settings)


def _check_optuna(experiment: Experiment, part: Part, where: str) -> None:
    """Refuse what cannot be combined with stopping trials by the sources' scores."""
    if experiment.selection != "source-validation":
        raise FarshoreError(
            f"selection = {experiment.selection!r} is not allowed with search by optuna: use "
            "source-validation"
        )
    if DRAWN in part.orders:
        why = f"{where}.orders: {DRAWN} is not allowed with search by optuna: use random"
        raise FarshoreError(why)
    if part.features:
        raise FarshoreError(
            f"{where}.features: search by optuna stops trials early: use "
            "settings_from with a finished search instead"
        )


def start_from(experiment: Experiment, weights: str) -> Experiment:
    """The same experiment with with_weights weights for the networks of its image benchmarks."""

    def with_weights(part: Part) -> Part:
        kinds = [BENCHMARKS.get(data.benchmark) for data in part.data]
        if not any("weights" in kind.Options.model_fields for kind in kinds):
            return part
        return part.but(options={**part.options, "weights": weights})

    return experiment.but(parts=[with_weights(part) for part in experiment.parts])


def with_forms(experiment: Experiment) -> Experiment:
    """The same experiment, with the form of images written out where only a file of the user's own
    says it: a report plans it without importing that file.
    """

    def written(part: Part) -> Part:
        if part.network is None or not is_own_module(part.network):
            return part
        entries: list[str | dict[str, dict[str, Any]]] = []
        for data in part.data:
            given, kind = part.options_of(data), BENCHMARKS.get(data.benchmark)
            options = kind.normal_network(part.network, part.network_settings, given)[2]
            entries.append({data.benchmark: dict(data.options if options == given else options)})
        return part.but(benchmarks=entries)

    return experiment.but(parts=[written(part) for part in experiment.parts])


def check_search(by: str) -> SearchBy:
    """Check the value of `--search`."""
    if by not in ("random", "optuna"):
        raise FarshoreError(f"--search {by} is not allowed: use random or optuna")
    return cast(SearchBy, by)


def search_by(experiment: Experiment, by: SearchBy) -> Experiment:
    """The same experiment with another search in all of its parts."""
    parts = [
        part.but(search=part.search.but(by=by)) if part.search is not None else part
        for part in experiment.parts
    ]
    changed = experiment.but(search=experiment.search.but(by=by), parts=parts)
    check(changed)
    return changed


def explain_keys(error: ValidationError) -> str:
    """One line that names the key, what was given and what is allowed."""
    first = error.errors()[0]
    # An entry of `benchmarks` has one of two types, whose names are not keys of the file.
    keys = [part for part in first["loc"] if not str(part).startswith(("str", "dict["))]
    path = ".".join(map(str, keys))
    if first["type"] == "extra_forbidden":
        inside: Mapping[object, type[Spec]] = {"search": Search, "beside": Beside, "parts": Part}
        model = next((inside[key] for key in first["loc"][-2::-1] if key in inside), Experiment)
        return f"{path}: {unknown('key', str(first['loc'][-1]), model.model_fields)}"
    if first["type"] == "missing":
        return f"{path} is missing"
    allowed = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{path} = {first['input']!r} is not allowed: it should be {allowed}"
