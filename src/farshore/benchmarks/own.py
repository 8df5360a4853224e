"""A user's own data as a benchmark: domains, classes and rows are known only from the files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from pydantic import Field

from ..data.domain import Domain
from ..data.scenario import Scenario, arrange
from ..data.seal import SealedTarget
from ..errors import FarshoreError
from .benchmark import Benchmark, check_left_out
from .options import BenchmarkOptions, Preprocess
from .own_checks import check_classes, check_domain, find_shared
from .own_rows import LAST, OwnRows, construct_domains, encode, in_order, make_sources


class OwnOptions(BenchmarkOptions):
    """Where the data lie.

    shared_rows: what happens to source rows that stand in the target too (the same inputs, or a
    group of both): `keep` warns with the count, `leave-out` takes them out of the sources as well,
    so that the target decides what is learned from.
    """

    path: str = Field(description="the file or folder")
    shared_rows: Literal["keep", "leave-out"] = Field(
        "keep", description="source rows that stand in the target too: keep or leave-out"
    )


class OwnBenchmark(Benchmark):
    """What a table and a folder of images have in common."""

    reference = "your own data"
    licence = "your own"
    Options: ClassVar[type[BenchmarkOptions]] = OwnOptions
    options: OwnOptions
    own_data = True
    path_options = frozenset({"path"})
    steps = 500
    memory = 1000

    @abstractmethod
    def read(self) -> OwnRows:
        """All rows. What is wrong with them as such is refused here."""

    @abstractmethod
    def read_facts(self) -> pd.DataFrame:
        """Of every row its domain and, if there is one, its time; no inputs are read."""

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.options.path).expanduser()

    @property
    def title(self) -> str:
        """The name of the file or folder."""
        return self.path.name or str(self.path)

    @property
    def _preprocess(self) -> Preprocess:
        """On which rows scales are learned, if there are any."""
        return "first"

    def domain_names(self) -> tuple[str, ...]:
        """By their first time, or as they first appear."""
        if self.options.domain_by is not None:
            raise FarshoreError(
                f"the domains of {self.title} are constructed (--domain auto): they have no names "
                "and no other order than that of the stream"
            )
        return tuple(in_order(self.read_facts()))

    def usual_target(self) -> str | None:
        """None, unless domains are constructed: then the end of the stream."""
        return LAST if self.options.domain_by is not None else None

    def choose_target(self, target: str | None) -> str:
        """There is no usual target, unless domains are constructed: then the end of the stream."""
        if target is None and self.options.domain_by is not None:
            return LAST
        if target is None:
            domains = self.read_facts()
            listed = ", ".join(
                f"{name} ({int((domains['domain'] == name).sum())} rows)"
                for name in in_order(domains)
            )
            raise FarshoreError(
                f"--target is not given: say which domain stays unseen, one of {listed}"
            )
        return target

    def missing(self, seed: int = 0, *, plan_only: bool = False) -> str | None:
        """The file decides the names of runs too."""
        return None if self.path.exists() else f"there is no file or folder {self.options.path!r}"

    def data_facts(self, seed: int) -> dict[str, str]:
        """The file's name and checksum."""
        return {"set": self.title, "sha256": self.data_digest()}

    @classmethod
    def facts(cls) -> list[tuple[str, str]]:
        """What is known without the file."""
        return [
            ("what", cls.summary),
            ("domains", "those of the data; --target names the one that stays unseen"),
            ("metric", cls.metric),
            ("network", cls.network),
            ("steps per domain", str(cls.steps)),
            ("memory", f"{cls.memory} rows"),
            ("settings profile", cls.profile),
            ("data", cls.reference),
        ]

    def scenario(
        self,
        *,
        target: str | None = None,
        order: Sequence[str] | None = None,
        seed: int = 0,
        left_out: Sequence[str] = (),
        network: str | None = None,
    ) -> Scenario:
        """Sources in the order of training and the sealed target. All that is wrong with the data
        is refused here.

        Rows of domains that are left out take no part in anything. Where some are, the classes
        are those of all other domains: the target is then itself one of the sources of a larger
        run.
        """
        rows = self.read()
        by = self.options.domain_by
        target = self.choose_target(target)
        if by is not None:
            if order is not None or left_out:
                raise FarshoreError(
                    f"{'--order' if order is not None else 'left_out'} cannot be used with "
                    "--domain auto: the domains are found in the order of the stream"
                )
            target = construct_domains(rows, target, by, self.options.domains, seed)
        names = in_order(rows.facts)
        check_left_out(left_out, names)
        sources = arrange([name for name in names if name not in left_out], target, order)
        self.classes = tuple(
            check_classes(
                rows.facts[~rows.facts["domain"].isin(list(left_out))],
                target,
                known_elsewhere=bool(left_out),
            )
        )
        domains, make_target = self._divide(rows, sources, target, seed)
        return Scenario(
            name=self.title,
            sources=tuple(domains),
            target=SealedTarget(target, make_target),
            classes=self.classes,
            metric=self.metric,
            network=network or self.network,
            network_settings={},
            steps=self.steps,
            memory=self.memory,
            profile=self.profile,
            seed=seed,
            notes=tuple(rows.notes),
            data=self.data_facts(seed),
            preprocessing=rows.preprocessing,
        )

    def make(
        self, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]:
        """All rows of these domains, as named in the data."""
        rows = self.read()
        asked = rows.facts[rows.facts["domain"].isin([*sources, target])]
        self.classes = tuple(check_classes(asked, target))
        domains, make_target = self._divide(rows, sources, target, seed)
        return domains, make_target, tuple(rows.notes)

    def _divide(
        self, rows: OwnRows, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain]]:
        """The source domains, and a maker of the target; warnings are added to the rows' notes."""
        facts = rows.facts
        members = {
            name: np.flatnonzero((facts["domain"] == name).to_numpy())
            for name in [*sources, target]
        }
        leave_out = self.options.shared_rows == "leave-out"
        rows.notes += find_shared(facts, rows.keys(), members, target, leave_out=leave_out)
        for name in [*sources, target]:
            rows.notes += check_domain(facts, members[name], name, is_target=name == target)
        rows.plan(np.concatenate([members[name] for name in sources]), members[target])
        classes = list(self.classes)
        domains = make_sources(rows, members, sources, classes, self._preprocess, seed)

        def make_target() -> Domain:
            index = torch.arange(len(members[target]))
            labels = encode(facts, members[target], classes)
            return Domain(target, rows.inputs(members[target]), labels, index[:0], index)

        return domains, make_target
