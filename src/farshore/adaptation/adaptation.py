"""Adaptation: the interface of systems that continue to learn at the target.

The protocol trains a source model, freezes it, and passes a copy of it and the target's inputs to
the adaptation, which returns logits. The labels stay with the protocol, which scores the logits.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..data.inputs import Inputs
from ..entry import AtTarget, Entry, Sources, SourceTraining
from ..networks.network import Network
from ..settings import MethodSettings, RunSettings, setting

PREDICTION_ROWS = 512
ONLINE = "online score: every target row was predicted once, before the model learned from it"
AFTERWARDS = (
    "score after adaptation: the model adapted to the unlabelled target rows on which "
    "it was then scored"
)


class AdaptationSettings(MethodSettings):
    """The source model's settings, searched like those of `finetune`.

    The settings of the adaptation itself are fixed: selection may only use source validation rows,
    and these cannot rank them.
    """

    source: Literal["finetune", "first-domain", "joint"] = setting(
        "finetune",
        help="source model: trained on all sources in turn, only on the first, or on all at once",
    )


class Adaptation(Entry):
    """Base of all adaptations. A subclass states its paper and its steps in its docstring."""

    group: ClassVar[str] = "adaptation"
    kind = "adaptation"
    # What the target score means: ONLINE or AFTERWARDS.
    measure: ClassVar[str]
    Settings: ClassVar[type[AdaptationSettings]] = AdaptationSettings
    settings: AdaptationSettings

    @classmethod
    def source_training(cls, settings: Mapping[str, Any]) -> SourceTraining:
        """Fine-tune a source model, with the settings that it shares with the adaptation."""
        shared = {*MethodSettings.model_fields, *RunSettings.model_fields}
        own = {name: value for name, value in settings.items() if name in shared}
        sources: dict[str, Sources] = {"first-domain": "first", "joint": "jointly"}
        return SourceTraining("finetune", own, sources.get(str(settings.get("source")), "in turn"))

    @classmethod
    def at_target(cls, settings: MethodSettings) -> AtTarget:
        """Create the adaptation with these settings."""
        assert isinstance(settings, AdaptationSettings)
        return cls(settings)

    def __init__(self, settings: AdaptationSettings) -> None:
        self.settings = settings
        # Notes to report with the result.
        self.notes: list[str] = [self.measure]

    def prepare(self, network: Network, sources: Sequence[Inputs]) -> None:
        """Inspect the source model and the sources' validation rows, before the target is read."""

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """Adapt to the target and return the logits of every row, in the order of `target`.

        `network` is a copy of the source model and may be changed.
        """
        raise NotImplementedError


def batch_statistics(network: Network, rows: int) -> AbstractContextManager[None]:
    """Let BatchNorm normalise by the current batch and leave its stored statistics unchanged.

    A single row has no statistics of its own and is normalised by the stored ones. Dropout and the
    other layers keep their mode.
    """
    return network.batchnorm("no_update" if rows > 1 else "frozen")


def predict(network: Network, inputs: Inputs) -> Tensor:
    """Logits in evaluation mode."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(part).float() for part in inputs.batches(PREDICTION_ROWS)])


def entropy(logits: Tensor) -> Tensor:
    """H = -Σ_c p_c log p_c of each row; uses log_softmax, so that certain rows give 0, not NaN."""
    log_p = logits.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


def note_collapse(logits: Tensor) -> list[str]:
    """A note if all rows got the same class, a known failure of learning from own predictions."""
    predicted = logits.argmax(dim=1)
    if len(predicted) < 2 or bool((predicted != predicted[0]).any()):
        return []
    return [f"collapsed: every target row was predicted as class number {int(predicted[0])}"]
