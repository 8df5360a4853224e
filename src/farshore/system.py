"""System: the minimal interface of something that learns domains.

Learner, protocol and deployment know only this interface. The `Trainer` of `farshore.training`
implements it for every method that learns by gradient steps. A learner without gradients (a closed
form, trees) is another System, with another name in `SYSTEMS`. The `system` attribute of a catalog
entry names the one that carries it out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

if TYPE_CHECKING:
    from .training.checkpoints import Checkpoints

SYSTEMS: Registry[type[System]] = Registry(
    "system",
    "farshore.systems",
    {
        "gradient": ".training.trainer:Trainer",
        "trees": ".systems.trees.system:TreesSystem",
        "closed-form": ".systems.closed_form.system:ClosedFormSystem",
        "committee": ".systems.committee.system:CommitteeSystem",
    },
    __package__,
)


@dataclass(frozen=True)
class Setup:
    """What a system is built from, once the shape of the inputs and the classes are known.

    entry: the method, from the catalog.
    settings: the settings of the method that were given; `profile` names their defaults.
    capacity: how many rows of all past domains may be kept in total.
    weighted: rows have weights, which a memory keeps with them.
    restored: the weights come from a saved state, so files of pretrained weights are not needed.
    """

    entry: type[Entry]
    settings: Mapping[str, Any]
    profile: str
    run: RunSettings
    shape: tuple[int, ...]
    classes: int
    network: str | Network
    network_settings: Mapping[str, Any]
    capacity: int
    seed: int
    device: torch.device
    observer: Observer
    weighted: bool = False
    restored: bool = False

    def refuse_average(self) -> None:
        """Raise an error if weights are to be averaged over steps, for a system without steps."""
        if self.run.average != "none":
            raise FarshoreError(
                f"average = {self.run.average!r} is not allowed with method {self.entry.name!r}, "
                "which is not trained by steps: leave it out"
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
    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Learn the next domain."""

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Learn all domains at once, unlike a continual learner. Returns the number of steps."""
        raise FarshoreError("this method cannot learn several domains at once")

    def grown(self, setup: Setup) -> System:
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

    @abstractmethod
    def kept_rows(self) -> dict[str, Fields]:
        """Rows kept of past domains, per domain where the domains can be distinguished."""

    @abstractmethod
    def usage(self) -> Usage:
        """What the system stores now."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that learning needs to continue exactly, in tensors and plain values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict` in a system of the same setup."""


def widened(old: Tensor, new: Tensor) -> Tensor:
    """A tensor of the shape of `new` whose first entries along every axis are those of `old`."""
    if old.shape == new.shape:
        return old
    wide = new.detach().clone()
    wide[tuple(slice(length) for length in old.shape)] = old
    return wide
