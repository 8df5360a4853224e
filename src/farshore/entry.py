"""Entry: the interface shared by all catalog entries, methods and adaptations alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor

from .data.inputs import Inputs
from .networks.network import Network
from .settings import MethodSettings

# Only continual entries are ranked: offline ones see all sources at once, adaptations see target
# inputs, and references do not look at the inputs.
Kind = Literal["continual", "offline", "adaptation", "reference"]
# Which sources a model is trained on, and in what order.
Sources = Literal["in turn", "first", "jointly"]


@dataclass(frozen=True)
class SourceTraining:
    """What a run trains on its sources: the method, its settings, and which sources it uses."""

    method: str
    settings: dict[str, Any]
    sources: Sources


class AtTarget(Protocol):
    """Something that continues to learn at the target, from inputs alone."""

    name: ClassVar[str]
    # Notes to report with the result.
    notes: list[str]

    def prepare(self, network: Network, sources: Sequence[Inputs]) -> None:
        """Inspect the source model and the sources' validation rows; the target is not visible."""

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """Adapt to the target and return the logits of every row, in the order of `target`."""


class Entry:
    """Base of Method and Adaptation. A subclass states its paper and equation in its docstring."""

    name: ClassVar[str]
    group: ClassVar[str]
    reference: ClassVar[str]
    kind: ClassVar[Kind] = "continual"
    # Incremented by hand when a code change alters the numbers.
    results_version: ClassVar[int] = 1
    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    # The System that runs this entry, by its name in `farshore.system.SYSTEMS`.
    system: ClassVar[str] = "gradient"
    # Whether it learns from tables only, not from images.
    tables_only: ClassVar[bool] = False
    # Whether the order of the sources has no influence, so that a plan has one run for all orders.
    any_order: ClassVar[bool] = False
    # Whether labels must be classes; otherwise they may also be numbers.
    needs_classes: ClassVar[bool] = True
    # False if the loss has no ERM term to which class weights could apply.
    weighs_classes: ClassVar[bool] = True
    # Whether rows can have weights in its ERM term.
    weighs_rows: ClassVar[bool] = False
    # Whether classes that a later domain brings can be added.
    grows: ClassVar[bool] = False

    @classmethod
    def keeps_rows(cls) -> bool:
        """Whether rows of past domains are kept, so that the model can be evaluated on them."""
        return False

    @classmethod
    def source_training(cls, settings: Mapping[str, Any]) -> SourceTraining:
        """Describe what a run trains on the sources for this entry."""
        sources: Sources = "jointly" if cls.kind == "offline" else "in turn"
        return SourceTraining(cls.name, dict(settings), sources)

    @classmethod
    def at_target(cls, settings: MethodSettings) -> AtTarget | None:
        """Return what runs at the target with these settings; None unless the entry adapts."""
        return None
