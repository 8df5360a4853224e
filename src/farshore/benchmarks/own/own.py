"""Users' own data as a benchmark: domains, classes and rows are known only from the files."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from pydantic import Field

from ...data.domain import Domain
from ...data.scenario import Scenario, arrange
from ...data.seal import SealedTarget
from ...data.splits import SHARE
from ...data.steps import BATCH_SIZE, EPOCHS, FEWEST_STEPS, MOST_STEPS, usual_steps
from ...errors import FarshoreError
from ...tasks.labels import LabelOptions, Labels, TaskChoice, are_numbers, decide, read_labels
from ...tasks.task import MetricName
from ..benchmark import Benchmark, Made, check_left_out
from ..options import BenchmarkOptions, FittedTo
from .own_domains import LAST, construct_domains, find_shared, in_order, make_sources
from .own_rows import OwnRows

# With --target each: how many sources every target has at least.
FEWEST_SOURCES = 2


class OwnOptions(BenchmarkOptions):
    """Options of all kinds of own data.

    `shared_rows` decides on source rows that are also in the target, because they have the same
    inputs or belong to the same group: `keep` reports their number, `leave-out` also removes them
    from the sources, so that training depends on the target.
    """

    path: str = Field(description="the file or folder")
    epochs: float = Field(
        EPOCHS,
        gt=0,
        description="steps per domain: passes over the training rows of the mean source, in "
        f"batches of {BATCH_SIZE}, at least {FEWEST_STEPS} and at most {MOST_STEPS}; --steps "
        "replaces them",
    )
    task: TaskChoice = Field(
        "auto",
        description="what a label is: classification, regression, or auto: regression if the first "
        "source has numbers that look like a quantity (fractions, or more than 20 whole numbers)",
    )
    log_label: bool = Field(
        False, description="regression: learn the logarithm of the label, for prices and the like"
    )
    unit: str = Field("", description="regression: the unit of the label, shown with scores")
    metric: MetricName | None = Field(
        None,
        description="accuracy or macro_f1; by default macro_f1 if a class of the first source has "
        "fewer than 5% of its rows, otherwise accuracy; regression: mae (the default), rmse, r2 or "
        "skill",
    )
    classes: str | None = Field(
        None,
        description="all classes, comma-separated; from-file: rows of the target with a class that "
        "no source has count as errors [default: such classes are refused]",
    )
    shared_rows: Literal["keep", "leave-out"] = Field(
        "keep", description="source rows that are also in the target: keep or leave-out"
    )


class OwnBenchmark(Benchmark):
    """Base class of tables and image folders."""

    reference = "your own data"
    licence = "your own"
    results_version = 3
    Options: ClassVar[type[BenchmarkOptions]] = OwnOptions
    options: OwnOptions
    own_data = True
    path_options = frozenset({"path"})
    memory = 1000
    # One replay batch in total: a step costs the same after twenty sites as after two.
    # On a pretrained network the classifier alone is trained.
    settings: ClassVar[Mapping[str, Any]] = {"replay_budget": "total", "train": "auto"}

    @abstractmethod
    def read(self) -> OwnRows:
        """Read all rows; refuse invalid ones."""

    @abstractmethod
    def read_facts(self) -> pd.DataFrame:
        """Return domain and, if there is one, time of every row, without reading inputs."""

    def label_names(self, facts: pd.DataFrame) -> list[str]:
        """The columns with the labels of these facts; none if folders name classes."""
        return []

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.options.path).expanduser()

    @property
    def title(self) -> str:
        """The name of the file or folder."""
        return self.path.name or str(self.path)

    @property
    def _preprocess(self) -> FittedTo:
        """The rows on which scales are learned, if there are any scales."""
        return "first"

    def domain_names(self) -> tuple[str, ...]:
        """Return domains by their first time, or by first appearance."""
        if self.options.domain_by is not None:
            raise FarshoreError(
                f"the domains of {self.title} are constructed (--domain auto): they have no names, "
                "and their order is that of the stream"
            )
        return tuple(in_order(self.read_facts()))

    def usual_target(self) -> str | None:
        """Return None, or the end of the stream if domains are constructed."""
        return LAST if self.options.domain_by is not None else None

    def choose_target(self, target: str | None) -> str:
        """Return the target; without one, the end of the stream if domains are constructed."""
        if target is None and self.options.domain_by is not None:
            return LAST
        if target is None:
            facts = self.read_facts()
            sizes = {name: int((facts["domain"] == name).sum()) for name in in_order(facts)}
            listed = ", ".join(f"{name} ({size} rows)" for name, size in sizes.items())
            why = f"--target is not given: choose the domain that stays unseen, one of {listed}"
            raise FarshoreError(why)
        return target

    def each_target(self) -> dict[str, tuple[str, ...]]:
        """Return every domain with no domain left out, or as chronological order allows.

        With a time column, a domain is predicted from those that began before it: later ones are
        left out, and the first two domains are sources only. What any of these runs would refuse is
        refused here, ahead of all of them.
        """
        if self.options.domain_by is not None:
            raise FarshoreError(
                "--target each needs named domains: with --domain auto, the target must be last or "
                "COLUMN=VALUE"
            )
        facts = self.read_facts()
        names = in_order(facts)
        if len(names) <= FEWEST_SOURCES:
            raise FarshoreError(
                f"--target each needs at least {FEWEST_SOURCES + 1} domains, but {self.title} has "
                f"{len(names)} ({', '.join(names)}): name one target"
            )
        targets: dict[str, tuple[str, ...]] = (
            {names[place]: tuple(names[place + 1 :]) for place in range(FEWEST_SOURCES, len(names))}
            if self.ordered_by_time
            else dict.fromkeys(names, ())
        )
        return self._check_each(facts, targets)

    def _check_each(
        self, facts: pd.DataFrame, targets: dict[str, tuple[str, ...]]
    ) -> dict[str, tuple[str, ...]]:
        """Refuse what a run with one of these targets would refuse; return those with scores."""
        domain, names = facts["domain"], in_order(facts)
        learned: dict[str, None] = {}
        found: dict[str, Labels] = {}
        for target, left_out in targets.items():
            labels = self._labels(facts, [*left_out, target])
            sources = [name for name in names if name != target and name not in left_out]
            used = ~domain.isin(list(left_out)).to_numpy()
            kept, _ = labels.start(used, sources, target, held_out=False)
            learned |= dict.fromkeys(kept)
            found[target] = labels
        kinds = {type(labels): target for target, labels in found.items()}
        if len(kinds) > 1:
            raise FarshoreError(
                f"the labels look like classes or like numbers, depending on the target "
                f"({' or '.join(kinds.values())}): say --task classification or --task regression"
            )
        targets = {name: targets[name] for name in targets if found[name].enough(name)}
        for name in dict.fromkeys([*learned, *targets]):
            labels = next((each for each in found.values() if len(each.members(name))), labels)
            labels.check_domain(labels.members(name), name, is_target=name not in learned)
        if not targets:
            raise FarshoreError(f"no domain of {self.title} has labelled rows enough for a target")
        return targets

    def _labels(self, facts: pd.DataFrame, hidden: Sequence[str]) -> Labels:
        """The labels, as those of the first domain that is not hidden say, whatever the order."""
        names = in_order(facts)
        first = next((name for name in names if name not in hidden), names[0])
        return read_labels(facts, self._label_options(facts), first)

    def _label_options(self, facts: pd.DataFrame) -> LabelOptions:
        return LabelOptions(
            self.label_names(facts),
            self.options.task,
            self.options.metric,
            self.options.classes,
            self.options.log_label,
            self.options.unit,
        )

    def has_numbers(self) -> bool:
        """Whether the labels of the first domain, or of the first half of a stream, are numbers."""
        facts = self.read_facts()
        streams = self.options.domain_by is not None
        rows = (
            facts.head(len(facts) // 2) if streams else facts[facts["domain"] == in_order(facts)[0]]
        )
        return are_numbers(decide(rows, self._label_options(facts)))

    def learnable_names(self) -> tuple[str, ...]:
        """Return the domains with labelled rows enough to be learned."""
        facts = self.read_facts()
        names, labels = in_order(facts), self._labels(facts, [])
        labels.start(np.ones(len(facts), dtype=bool), list(names), "", held_out=True)
        return tuple(name for name in names if labels.enough(name))

    def classes_of_one_domain(self) -> list[str]:
        """Return the classes that only one of the domains has, if any other class is left."""
        return self._labels(self.read_facts(), []).alone()

    def missing(self, seed: int = 0, *, plan_only: bool = False) -> str | None:
        """Return an error if the file does not exist; run names depend on it too."""
        return None if self.path.exists() else f"there is no file or folder {self.options.path!r}"

    def data_facts(self, seed: int) -> dict[str, str]:
        """Return the name and checksum of the file."""
        return {"set": self.title, "sha256": self.data_digest()}

    @classmethod
    def facts(cls) -> list[tuple[str, str]]:
        """Return what is known without the file."""
        return [
            ("what", cls.summary),
            ("domains", "those of the data; --target names the one that stays unseen"),
            ("metric", "accuracy; macro F1 if a class of the first source is rarer than 5%"),
            ("network", cls.usual_network()),
            (
                "steps per domain",
                f"{EPOCHS:g} epochs of the mean source, {FEWEST_STEPS} to {MOST_STEPS}",
            ),
            ("memory", f"{cls.memory} rows"),
            ("replay", "one batch from all past domains together (replay_budget total)"),
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
        held_out: bool = False,
        network: str | None = None,
    ) -> Scenario:
        """Return the sources in training order and the sealed target; refuse invalid data.

        Rows of left-out domains are not used at all. The classes are those of the sources, and also
        those of the target if it is `held_out`: it is then a source of a larger run.
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
        # A held-out source is known to the larger run, whose target is then among the left out.
        unseen = left_out if held_out else [*left_out, target]
        labels = self._labels(rows.facts, unseen)
        used = ~rows.facts["domain"].isin(list(left_out)).to_numpy()
        sources, notes = labels.start(used, sources, target, held_out=held_out)
        rows.notes[:0] = notes
        domains, make_target = self._divide(rows, labels, sources, target, seed)
        training_rows = sum(len(domain.train) for domain in domains)
        return Scenario(
            name=self.title,
            sources=tuple(domains),
            target=SealedTarget(target, make_target),
            task=labels.task,
            metric=labels.metric,
            network=network or self.usual_network(),
            network_settings={},
            steps=usual_steps(training_rows / len(domains), self.options.epochs),
            memory=self.memory,
            profile=rows.profile or self.profile,
            seed=seed,
            settings=self.settings,
            notes=(*rows.notes, *labels.why),
            data=self.data_facts(seed),
            preprocessing=rows.preprocessing,
        )

    def usual_steps(self) -> int:
        """Return an estimate from the mean domain: the target of a run is not known yet."""
        facts = self.read_facts()
        domains = facts["domain"].nunique() if "domain" in facts else 1
        return usual_steps((1 - SHARE) * len(facts) / domains, self.options.epochs)

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make these domains, as named in the data."""
        rows = self.read()
        labels = self._labels(rows.facts, [target])
        used = rows.facts["domain"].isin([*sources, target]).to_numpy()
        kept, notes = labels.start(used, list(sources), target, held_out=False)
        rows.notes += notes
        domains, make_target = self._divide(rows, labels, kept, target, seed)
        self.classes = tuple(map(str, labels.task.classes))
        return domains, make_target, tuple(rows.notes)

    def _divide(
        self, rows: OwnRows, labels: Labels, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain]]:
        """Return the sources and a function that makes the target; add warnings to the notes.

        What the inputs look like (types, channels) is decided by the first source alone, or by all
        sources where scales are learned on all of them; never by the target.
        """
        facts = rows.facts
        members = {name: labels.members(name) for name in [*sources, target]}
        for name in [*sources, target]:
            rows.notes += labels.check_domain(members[name], name, is_target=name == target)
        training = np.concatenate([members[name] for name in sources])
        deciding = members[sources[0]] if self._preprocess == "first" else training
        rows.plan(deciding, np.concatenate([training, members[target]]))
        rows.notes += rows.describe()
        rows.notes.append(f"learned in this order: {' -> '.join(sources)}; unseen: {target}")
        leave_out = self.options.shared_rows == "leave-out"
        rows.notes += find_shared(facts, rows.keys(), members, target, leave_out=leave_out)
        if leave_out:
            for name in sources:
                labels.check_domain(members[name], name, is_target=False)
        domains = make_sources(rows, labels, members, sources, self._preprocess, seed)

        def make_target() -> Domain:
            index = torch.arange(len(members[target]))
            encoded = labels.encode(members[target])
            return Domain(target, rows.inputs(members[target]), encoded, index[:0], index)

        return domains, make_target
