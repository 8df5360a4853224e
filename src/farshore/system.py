"""System: the minimal interface of something that learns domains.

Learner, protocol and deployment know only this interface. The `Trainer` of `farshore.training`
implements it for every method that learns by gradient steps. A learner without gradients (a closed
form, trees) is another System, with another name in `SYSTEMS`. The `system` attribute of a catalog
entry names the one that carries it out.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from .base.registry import Registry
from .data.domain import Domain, Rows
from .entry import Entry
from .errors import FarshoreError
from .memory.memory import Fields
from .networks.network import Network
from .observer import Observer
from .settings import RunSettings
from .tasks.task import Task

if TYPE_CHECKING:
    from .training.checkpoints import Checkpoints

SYSTEMS: "Registry[type[System]]" = Registry(
    "system",
    "farshore.systems",
    {
        "gradient": ".training.trainer:Trainer",
        "trees": ".systems.trees.system:TreesSystem",
        "pooled": ".systems.joint.system:PooledSystem",
        "closed-form": ".systems.closed_form.system:ClosedFormSystem",
        "committee": ".systems.committee.system:CommitteeSystem",
    },
    __package__,
)

# Settings of a run that say how steps are taken; "none" unless they are asked for.
OF_STEPS = ("average", "mixing")


@dataclass(frozen=True)
class Setup:
    """What a system is built from, once the shape of the inputs and the task are known.

    entry: the method, from the catalog.
    settings: the settings of the method that were given; `profile` names their defaults.
    capacity: how many rows of all past domains may be kept in total.
    metric: the score that counts.
    weighted: rows have weights, which a memory keeps with them.
    restored: the weights come from a saved state, so files of pretrained weights are not needed.
    """

    entry: type[Entry]
    settings: Mapping[str, Any]
    profile: str
    run: RunSettings
    shape: tuple[int, ...]
    task: Task
    network: str | Network
    network_settings: Mapping[str, Any]
    capacity: int
    seed: int
    device: torch.device
    observer: Observer
    metric: str = "accuracy"
    weighted: bool = False
    restored: bool = False

    @property
    def classes(self) -> int:
        """The width of the output layer: one output per class."""
        return self.task.outputs

    def refuse_steps(self) -> None:
        """Raise an error for settings of steps, for a system without steps."""
        for name in OF_STEPS:
            value = getattr(self.run, name)
            if value != "none":
                raise FarshoreError(
                    f"{name} = {value!r} is not allowed with method {self.entry.name!r}, which is "
                    "not trained by steps: leave it out"
                )


@dataclass(frozen=True)
class Usage:
    """What a system stores and how it works, for results and for `farshore show`."""

    settings: dict[str, Any]
    memory_items: int = 0
    memory_bytes: int = 0
    method_bytes: int = 0
    execution: str = "eager"
    precision: str = "float32"


class System(ABC):
    """Learns one domain after another, predicts, forgets, and can be saved and exported."""

    # For the last domain: seconds of its steps, and of the work after them.
    seconds: dict[str, float]
    # Rows per step on the last domain, current and replayed.
    rows_per_step: int
    # For the last domain: how strongly each term besides ERM acted at its end, if there are any.
    doses: Mapping[str, float | None] = MappingProxyType({})
    # Deviations from what was requested, and the reasons.
    notes: list[str]

    @abstractmethod
    def __init__(self, setup: Setup) -> None:
        """Build everything that depends on the shape of the inputs."""

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Refuse a state that does not match this setup, before anything is allocated for it."""

    @property
    @abstractmethod
    def domains(self) -> list[str]:
        """The names of the domains learned so far, in order."""

    @abstractmethod
    def learn(
        self, domain: Domain, *, steps: int, checkpoints: "Checkpoints | None" = None
    ) -> None:
        """Learn the next domain."""

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Learn all domains at once, unlike a continual learner. Returns the number of steps."""
        raise FarshoreError("this method cannot learn several domains at once")

    def grown(self, setup: Setup) -> "System":
        """A system that knows everything this one does, and has the further classes of `setup`.

        What it predicts about the known classes is the same to the last bit.
        """
        raise FarshoreError("this system cannot add classes")

    @abstractmethod
    def logits(self, rows: Rows) -> Tensor:
        """Logits of these rows in evaluation mode, [n, classes]."""

    @abstractmethod
    def features(self, inputs: Tensor) -> Tensor:
        """Features of these inputs, as the classifier receives them, [n, d]."""

    def logits_and_features(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Both for the same inputs."""
        return self.logits(Rows.unlabelled(inputs)), self.features(inputs)

    @abstractmethod
    def predictor(self) -> nn.Module:
        """The module from inputs to logits, which is frozen, measured and exported."""

    @abstractmethod
    def forget(self, domain: str) -> None:
        """Delete everything that is kept for this domain alone."""

    @property
    def forgets_exactly(self) -> bool:
        """Whether `forget` also takes the domain out of the weights."""
        return False

    @property
    def mixes_domains(self) -> bool:
        """Whether a memory keeps rows of which nobody knows the domain."""
        return False

    def empty_memory(self) -> None:
        """Delete all rows of a memory that mixes domains: those of one cannot be found."""

    def why_not_joined(self, other: "System") -> str | None:
        """Why what both have learned cannot be added up; None if it can.

        other: a system of the same method, settings, form of rows and classes.
        """
        return "what it learns depends on the order of the sites and cannot be added up"

    def too_few_rows(self) -> dict[str, str]:
        """By domain, why what is kept of it would tell whoever gets it the rows themselves."""
        return {}

    def join(self, others: "Sequence[System]") -> None:
        """Add what other systems have learned, as if this one had learned from their rows."""
        raise FarshoreError("this system cannot be joined with another")

    def kept_rows(self) -> dict[str, Fields]:
        """Rows kept of past domains, per domain where the domains can be distinguished."""
        return {}

    def share(self, kept: Mapping[str, Fields]) -> None:
        """Keep these rows instead of own ones, as a member of a committee that keeps no more."""

    @abstractmethod
    def usage(self) -> Usage:
        """What the system stores now."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that learning needs to continue exactly, in tensors and plain values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict` in a system of the same setup."""
