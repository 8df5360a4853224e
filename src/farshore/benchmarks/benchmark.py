"""Benchmark: how the domains of a data set are made, and what the protocol uses by default."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..data.domain import Domain
from ..data.prepared import Prepared
from ..data.preprocessing import Preprocessing
from ..data.public_files import Bar
from ..data.scenario import Metric, Scenario, arrange
from ..data.seal import SealedTarget
from ..errors import FarshoreError, unknown
from .hidden import hide_domains
from .options import BenchmarkOptions


class Benchmark(ABC):
    """A data set cut into domains. `domains` lists all of them; the target is one, the sources
    are the others.

    A benchmark has its own options: `Options` is a model with a field for each, and `self.options`
    holds the values. One whose domains are known only from the data answers `domain_names`,
    `default_target` and `listed` from there.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    licence: ClassVar[str]
    results_version: ClassVar[int] = 1
    Options: ClassVar[type[BenchmarkOptions]] = BenchmarkOptions
    domains: ClassVar[tuple[str, ...]]
    default_target: ClassVar[str]
    # Of the whole data set; `make` may find that only a part of them is there.
    classes: tuple[str, ...]
    metric: ClassVar[Metric] = "accuracy"
    network: ClassVar[str]
    network_settings: ClassVar[Mapping[str, Any]] = {}
    steps: ClassVar[int]
    memory: ClassVar[int]
    # Which defaults of the methods' settings hold: the name of a settings profile.
    profile: ClassVar[str] = "default"
    settings: ClassVar[Mapping[str, Any]] = {}
    # The embedded benchmark of the same kind of inputs, on which an experiment runs at tiny scale.
    stand_in: ClassVar[str] = "rotated-digits"
    # Whether this is a form that a user's own files have, and no data set of its own.
    own_data: ClassVar[bool] = False
    # The options whose values name a place on the disk: what is there decides the numbers, not
    # where it lies.
    path_options: ClassVar[frozenset[str]] = frozenset()
    # Whether another scenario seed gives other data, were it only another split into training and
    # validation rows.
    seed_changes_data: ClassVar[bool] = True
    # What `make` learned to turn raw rows into inputs; it travels with the model.
    preprocessing: Preprocessing | None = None

    def __init__(self, options: BenchmarkOptions | Mapping[str, Any] | None = None) -> None:
        self.options = (
            options
            if isinstance(options, BenchmarkOptions)
            else self.Options.build(options or {}, self.name)
        )

    # ---- which domains there are -----------------------------------------------------------------

    @property
    def title(self) -> str:
        """What results and tables call it."""
        return self.name

    def domain_names(self) -> tuple[str, ...]:
        """All domains, in their usual order."""
        return self.domains

    def usual_target(self) -> str | None:
        """The target of a run that names none, where there is one."""
        return self.default_target

    def choose_target(self, target: str | None) -> str:
        """The domain that stays unseen: the one that is asked for, or the usual one."""
        return target or self.default_target

    def listed(self, target: str) -> list[str]:
        """The sources in their usual order when this domain is the target."""
        return arrange(self.domain_names(), target, None)

    # ---- the scenario ----------------------------------------------------------------------------

    def scenario(
        self,
        *,
        target: str | None = None,
        order: Sequence[str] | None = None,
        seed: int = 0,
        left_out: Sequence[str] = (),
        network: str | None = None,
    ) -> Scenario:
        """Sources in the order of training and the sealed target. Depends on these settings and
        the options only; `network` replaces the benchmark's own.
        """
        by = self.options.domain_by
        if by == "time":
            raise FarshoreError(
                f"--domain-by time needs a column of time, which {self.name} does not have: use "
                "drift, blocks or cluster"
            )
        made = self.named_scenario(target, order, seed, left_out, network)
        return hide_domains(made, by, self.options.domains) if by is not None else made

    def named_scenario(
        self,
        target: str | None,
        order: Sequence[str] | None,
        seed: int,
        left_out: Sequence[str],
        network: str | None,
    ) -> Scenario:
        """The scenario with the data set's own domains."""
        target = self.choose_target(target)
        names = self.domain_names()
        check_left_out(left_out, names)
        kept = [name for name in names if name not in left_out]
        sources = (
            [name for name in self.listed(target) if name in kept]
            if order is None
            else arrange(kept, target, order)
        )
        domains, make_target, notes = self.make(sources, target, seed)
        return Scenario(
            name=self.title,
            sources=tuple(domains),
            target=SealedTarget(target, make_target),
            classes=self.classes,
            metric=self.metric,
            network=network or self.network,
            network_settings=self.network_settings if network is None else {},
            steps=self.steps,
            memory=self.memory,
            profile=self.profile,
            seed=seed,
            settings=self.settings,
            notes=notes,
            data=self.data_facts(seed),
            preprocessing=self.preprocessing,
        )

    @abstractmethod
    def make(
        self, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]:
        """The source domains in this order, a maker of the target that runs when it is opened,
        and notes for the result.
        """

    # ---- where the data come from ----------------------------------------------------------------

    def data_facts(self, seed: int) -> dict[str, str]:
        """Which data these are, for the result: nothing more than that they are embedded, unless
        a benchmark knows better.
        """
        return {"set": self.name, "origin": "embedded in farshore"}

    def data_digest(self) -> str:
        """A checksum of the data, for the names of runs; empty where `results_version` covers
        them.
        """
        return ""

    def missing(self, seed: int = 0, *, plan_only: bool = False) -> str | None:
        """Why this benchmark cannot be run here, if so: what to type to get its data. With
        `plan_only`, why its runs cannot even be named.
        """
        return None

    @classmethod
    def needs_preparation(cls) -> str | None:
        """The name that `farshore prepare` knows its files by, or None if nothing is to be
        prepared.
        """
        return None

    def prepare(
        self, root: str | Path | None = None, *, seed: int = 0, bar: Bar | None = None
    ) -> Prepared | None:
        """Download and build what is missing; None where there is nothing to prepare."""
        return None

    def fetch_weights(
        self, root: str | Path | None = None, *, bar: Bar | None = None
    ) -> str | None:
        """Download the pretrained weights of the network, if it has some; what hinders it."""
        return None

    @classmethod
    def facts(cls) -> list[tuple[str, str]]:
        """What `farshore benchmarks NAME` shows, beside the options."""
        settings = ", ".join(
            f"{key} {value}" for key, value in {**cls.network_settings, **cls.settings}.items()
        )
        prepared = cls.needs_preparation()
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
