"""Benchmark: how the domains of a data set are made, and what the protocol uses by default."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..data.domain import Domain
from ..data.scenario import Metric, Scenario, arrange
from ..data.seal import SealedTarget
from ..data.table import TablePreprocessing
from ..errors import unknown


class Benchmark(ABC):
    """A data set cut into domains. `domains` lists all of them; the target is one, the sources
    are the others.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    licence: ClassVar[str]
    results_version: ClassVar[int] = 1
    domains: ClassVar[tuple[str, ...]]
    default_target: ClassVar[str]
    # Of the whole data set; `make` may find that only a part of them is there.
    classes: tuple[str, ...]
    metric: ClassVar[Metric] = "accuracy"
    network: ClassVar[str]
    network_settings: ClassVar[Mapping[str, Any]] = {}
    steps: ClassVar[int]
    memory: ClassVar[int]
    small: ClassVar[bool]
    short: ClassVar[bool]
    settings: ClassVar[Mapping[str, Any]] = {}
    # What `make` learned to turn raw rows into inputs; it travels with the model.
    preprocessing: TablePreprocessing | None = None

    @classmethod
    def listed(cls, target: str) -> list[str]:
        """The sources in their usual order when this domain is the target."""
        return arrange(cls.domains, target, None)

    def scenario(
        self,
        *,
        target: str | None = None,
        order: Sequence[str] | None = None,
        seed: int = 0,
        left_out: Sequence[str] = (),
    ) -> Scenario:
        """Sources in the order of training and the sealed target. Depends on these four settings
        only.
        """
        target = target or self.default_target
        for name in left_out:
            if name not in self.domains:
                raise unknown("left-out domain", name, self.domains)
        kept = [name for name in self.domains if name not in left_out]
        sources = (
            [name for name in self.listed(target) if name in kept]
            if order is None
            else arrange(kept, target, order)
        )
        domains, make_target, notes = self.make(sources, target, seed)
        return Scenario(
            name=self.name,
            sources=tuple(domains),
            target=SealedTarget(target, make_target),
            classes=self.classes,
            metric=self.metric,
            network=self.network,
            network_settings=self.network_settings,
            steps=self.steps,
            memory=self.memory,
            small=self.small,
            short=self.short,
            seed=seed,
            settings=self.settings,
            notes=notes,
            data=self.data_facts(seed),
            preprocessing=self.preprocessing,
        )

    def data_facts(self, seed: int) -> dict[str, str]:
        """Which data these are, for the result: nothing more than that they are embedded, unless
        a benchmark knows better.
        """
        return {"set": self.name, "origin": "embedded in farshore"}

    def missing(self, seed: int = 0) -> str | None:
        """Why this benchmark cannot be run here, if so: what to type to get its data."""
        return None

    @abstractmethod
    def make(
        self, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]:
        """The source domains in this order, a maker of the target that runs when it is opened,
        and notes for the result.
        """
