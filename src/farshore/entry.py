"""Entry: what everything in the catalog has in common, be it trained or adapted at the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor

from .data.inputs import Inputs
from .networks.network import Network
from .settings import MethodSettings

# Only continual entries rank: offline ones see all sources at once, adaptations see target inputs.
Kind = Literal["continual", "offline", "adaptation"]
# Which sources a model is trained on, and how.
Sources = Literal["in turn", "first", "jointly"]


@dataclass(frozen=True)
class SourceTraining:
    """What is trained on the sources of a run: a method, its settings by name, and on which."""

    method: str
    settings: dict[str, Any]
    sources: Sources


class AtTarget(Protocol):
    """What continues to learn at the target, from inputs alone."""

    name: ClassVar[str]
    # What a reader of the result must know.
    notes: list[str]

    def prepare(self, network: Network, sources: Sequence[Inputs]) -> None:
        """Look at the source model and validation rows of the sources; the target is sealed."""

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """Logits of every target row, in the order of `target`."""


class Entry:
    """Base of Method and Adaptation. A subclass gives its paper and equation in the docstring."""

    name: ClassVar[str]
    group: ClassVar[str]
    reference: ClassVar[str]
    kind: ClassVar[Kind] = "continual"
    # Raised by hand when a change of the code changes the numbers.
    results_version: ClassVar[int] = 1
    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    # The System that carries it out, by its name in `farshore.system.SYSTEMS`.
    system: ClassVar[str] = "gradient"
    # False where the loss has no ERM term that class weights could enter.
    weighs_classes: ClassVar[bool] = True

    @classmethod
    def keeps_rows(cls) -> bool:
        """Whether rows of past domains are kept, so that the model can be measured on them."""
        return False

    @classmethod
    def source_training(cls, settings: Mapping[str, Any]) -> SourceTraining:
        """What a run trains on the sources for this entry."""
        sources: Sources = "jointly" if cls.kind == "offline" else "in turn"
        return SourceTraining(cls.name, dict(settings), sources)

    @classmethod
    def at_target(cls, settings: MethodSettings) -> AtTarget | None:
        """What happens at the target with these settings: nothing, unless the entry adapts."""
        return None
