"""Benchmark: how the domains of a data set are made, and the defaults of the protocol."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from ..data.domain import Domain
from ..data.downloads.prepared import Prepared
from ..data.downloads.public_files import Bar
from ..data.preprocessing import Preprocessing
from ..data.scenario import Scenario, arrange
from ..data.seal import SealedTarget
from ..errors import FarshoreError, unknown
from ..networks.build import plain_network_settings
from ..tasks.classification import Classification
from ..tasks.labels import are_numbers
from ..tasks.task import MetricName, Task
from .options import BenchmarkOptions
from .own.hidden import hide_domains

# The sources in order, a function that makes the target when it is opened, and notes.
Made = tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]


class Benchmark(ABC):
    """A data set divided into domains; one of `domains` is the target, the others are the sources.

    A benchmark has its own options: `Options` is a model with one field per option, and
    `self.options` contains the values. A benchmark that knows its domains only from the data
    overrides `domain_names`, `default_target` and `listed`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    licence: ClassVar[str]
    results_version: ClassVar[int] = 1
    Options: ClassVar[type[BenchmarkOptions]] = BenchmarkOptions
    domains: ClassVar[tuple[str, ...]]
    default_target: ClassVar[str]
    # Classes of the whole data set; `make` may find only some of them.
    classes: tuple[str, ...]
    metric: ClassVar[MetricName] = "accuracy"
    network: ClassVar[str]
    network_settings: ClassVar[Mapping[str, Any]] = {}
    steps: ClassVar[int]
    memory: ClassVar[int]
    # The name of the settings profile that provides the defaults of method settings.
    profile: ClassVar[str] = "default"
    # Whether that profile is the one that suits the network of a run instead.
    profile_follows_network: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Any]] = {}
    # The embedded benchmark with the same kind of inputs, used to run an experiment at tiny scale.
    stand_in: ClassVar[str] = "rotated-digits"
    # The name of its files for `farshore prepare`; None if it needs no preparation.
    set_name: ClassVar[str | None] = None
    # Whether this is a format of users' own files instead of a specific data set.
    own_data: ClassVar[bool] = False
    # Options that say where the data are and how a file is written: what it holds decides the
    # numbers.
    path_options: ClassVar[frozenset[str]] = frozenset()
    # Whether another scenario seed gives other data, even if only another split into training and
    # validation rows.
    seed_changes_data: ClassVar[bool] = True
    # The preprocessing that `make` learned; it is saved with the model.
    preprocessing: Preprocessing | None = None

    def __init__(self, options: BenchmarkOptions | Mapping[str, Any] | None = None) -> None:
        if not isinstance(options, BenchmarkOptions):
            options = self.Options.build(options or {}, self.name)
        self.options = options

    # ---- which domains there are -----------------------------------------------------------------

    @property
    def title(self) -> str:
        """The name of the data in results and tables."""
        return self.name

    @classmethod
    def usual_network(cls) -> str:
        """Return the network that is used if no other is named."""
        return cls.network

    @classmethod
    def normal_network(
        cls, network: str | None, settings: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[str | None, dict[str, Any], dict[str, Any]]:
        """Network (None: the benchmark's own), settings and options as a normal run has them."""
        plain = plain_network_settings(network or cls.usual_network(), settings)
        return network, plain, dict(options)

    def domain_names(self) -> tuple[str, ...]:
        """Return all domains in their usual order."""
        return self.domains

    def learnable_names(self) -> tuple[str, ...]:
        """Return the domains that can be a source."""
        return self.domain_names()

    def usual_target(self) -> str | None:
        """Return the default target, or None if there is none."""
        return self.default_target

    def choose_target(self, target: str | None) -> str:
        """Return the domain that stays unseen: the requested one, or the default."""
        return target or self.default_target

    def listed(self, target: str) -> list[str]:
        """Return the sources in their usual order when this domain is the target.

        A benchmark that is `ordered_by_time` names only those before it.
        """
        return arrange(self.domain_names(), target, None)

    @property
    def ordered_by_time(self) -> bool:
        """Whether time orders the domains, so that a target is predicted from those before it."""
        return False

    def each_target(self) -> dict[str, tuple[str, ...]]:
        """Return every domain that is the target in turn, with the domains its run leaves out.

        A benchmark that is `ordered_by_time` overrides this: what comes after the target is left
        out, and the first domains are never targets, because too few come before them.
        """
        return dict.fromkeys(self.domain_names(), ())

    def usual_steps(self) -> int:
        """Return the training steps per domain; own data derive them from their rows."""
        return self.steps

    # ---- the scenario ----------------------------------------------------------------------------

    def scenario(
        self,
        *,
        target: str | None = None,
        order: Sequence[str] | None = None,
        seed: int = 0,
        left_out: Sequence[str] = (),
        held_out: bool = False,
        network: str | None = None,
    ) -> Scenario:
        """Return the sources in training order and the sealed target.

        The scenario depends only on these arguments and the options. `network` replaces the
        benchmark's own network. `held_out` matters to data whose classes are known only from the
        rows: the target is then a source of a larger run, which knows its classes.
        """
        by = self.options.domain_by
        if by == "time":
            raise FarshoreError(
                f"--domain-by time needs a time column, which {self.name} does not have: use "
                "drift, blocks or cluster"
            )
        network_settings, origin = ({}, ()) if network is not None else self.initial_network()
        target = self.choose_target(target)
        check_left_out(left_out, self.domain_names())
        sources = [name for name in self.listed(target) if name not in left_out]
        if order is not None:
            sources = arrange([*sources, target], target, order)
        domains, make_target, notes = self.make(sources, target, seed)
        scenario = Scenario(
            name=self.title,
            sources=tuple(domains),
            target=SealedTarget(target, make_target),
            task=(task := self.task()),
            metric=cast(MetricName, task.main_metric(self.metric)),
            network=network or self.network,
            network_settings=network_settings,
            steps=self.usual_steps(),
            memory=self.memory,
            profile=self.profile,
            seed=seed,
            settings=self.settings,
            notes=(*notes, *origin),
            data=self.data_facts(seed),
            preprocessing=self.preprocessing,
        )
        return scenario if by is None else hide_domains(scenario, by, self.options.domains)

    def task(self) -> Task:
        """What a label is, once `make` has made the data: one of `classes`."""
        return Classification(self.classes)

    def has_numbers(self) -> bool:
        """Whether the labels are numbers."""
        return are_numbers(self.task())

    def initial_network(self) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Return the settings of the benchmark's own network, and a note on its initial weights."""
        return self.network_settings, ()

    @abstractmethod
    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Return the source domains in this order, a function that makes the target, and notes."""

    # ---- where the data come from ----------------------------------------------------------------

    def data_facts(self, seed: int) -> dict[str, str]:
        """Describe the data for the result; benchmarks that are not embedded override this."""
        return {"set": self.name, "origin": "embedded in farshore"}

    def data_digest(self) -> str:
        """Return a checksum of the data for run names; empty if `results_version` covers them."""
        return ""

    def missing(self, seed: int = 0, *, plan_only: bool = False) -> str | None:
        """Why its data are not here and how to get them (`plan_only`: why runs cannot be named)."""
        return None

    def prepare(
        self, root: str | Path | None = None, *, seed: int = 0, bar: Bar | None = None
    ) -> Prepared | None:
        """Download and build what is missing; return None if there is nothing to prepare."""
        return None

    def fetch_weights(
        self, root: str | Path | None = None, *, bar: Bar | None = None
    ) -> str | None:
        """Download the network's pretrained weights, if any; return the reason if that fails."""
        return None

    @classmethod
    def facts(cls) -> list[tuple[str, str]]:
        """Return what `farshore benchmarks NAME` shows in addition to the options."""
        given = {**cls.network_settings, **cls.settings}
        settings = ", ".join(f"{key} {value}" for key, value in given.items())
        prepared = cls.set_name
        return [
            ("what", cls.summary),
            ("domains", ", ".join(cls.domains)),
            ("default target", cls.default_target),
            ("classes", ", ".join(cls.classes)),
            ("metric", cls.metric),
            ("network", f"{cls.network} ({settings})" if settings else cls.network),
            ("steps per domain", str(cls.steps)),
            ("memory", f"{cls.memory} rows"),
            ("settings profile", cls.profile),
            ("data", f"farshore prepare {prepared}" if prepared else "shipped with farshore"),
            ("source", cls.reference),
            ("licence", cls.licence),
        ]


def check_left_out(left_out: Sequence[str], names: Sequence[str]) -> None:
    """Refuse to leave out a domain that does not exist."""
    for name in left_out:
        if name not in names:
            raise unknown("left-out domain", name, names)
