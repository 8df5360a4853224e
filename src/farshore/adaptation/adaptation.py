"""Adaptation: the shape of what goes on learning at the target. Inputs in, logits out; it is never
a Method.

The protocol trains a source model, freezes it, and hands a copy of it and the target's inputs over.
Labels stay with the protocol, which scores the logits that come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    """The source model's settings, searched as those of `finetune`. Those of the adaptation are
    fixed: source validation, all that selection may look at, cannot rank them."""

    source: Literal["finetune", "first-domain", "joint"] = setting(
        "finetune",
        help="source model: trained on all sources in turn, on the first alone, or on all at once",
    )


class Adaptation(Entry):
    """Base of all adaptations. A subclass gives its paper and its steps in the docstring."""

    group: ClassVar[str] = "adaptation"
    kind = "adaptation"
    # What the target score means: ONLINE or AFTERWARDS.
    measure: ClassVar[str]
    Settings: ClassVar[type[AdaptationSettings]] = AdaptationSettings
    settings: AdaptationSettings

    @classmethod
    def source_training(cls, settings: Mapping[str, Any]) -> SourceTraining:
        """A source model is fine-tuned, with the settings that it shares with the adaptation."""
        shared = {*MethodSettings.model_fields, *RunSettings.model_fields}
        own = {name: value for name, value in settings.items() if name in shared}
        sources: dict[str, Sources] = {"first-domain": "first", "joint": "jointly"}
        return SourceTraining("finetune", own, sources.get(str(settings.get("source")), "in turn"))

    @classmethod
    def at_target(cls, settings: MethodSettings) -> AtTarget:
        """The adaptation with these settings."""
        assert isinstance(settings, AdaptationSettings)
        return cls(settings)

    def __init__(self, settings: AdaptationSettings) -> None:
        self.settings = settings
        # What a reader of the result must know.
        self.notes: list[str] = [self.measure]

    def prepare(self, network: Network, sources: Sequence[Inputs]) -> None:
        """Look at the source model and at validation rows of the sources, before the target is
        opened.
        """

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """Logits of every target row, in the order of `target`. `network` is a copy of the
        source model, to be changed at will.
        """
        raise NotImplementedError


@contextmanager
def batch_statistics(network: Network, rows: int) -> Iterator[None]:
    """BatchNorm normalises by the batch at hand and leaves its stored statistics alone. A lone row
    has no statistics of its own and gets the stored ones. Dropout and the other layers keep their
    mode."""
    with network.batchnorm("no_update" if rows > 1 else "frozen"):
        yield


def predict(network: Network, inputs: Inputs) -> Tensor:
    """Logits in evaluation mode."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(part).float() for part in inputs.batches(PREDICTION_ROWS)])


def entropy(logits: Tensor) -> Tensor:
    """H = -Σ_c p_c log p_c of each row, by way of log_softmax so that certain rows give 0 and
    not NaN.
    """
    log_p = logits.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


def note_collapse(logits: Tensor) -> list[str]:
    """A note if every row got one class: the known way in which adaptation by its own
    predictions fails.
    """
    predicted = logits.argmax(dim=1)
    one = len(predicted) > 1 and bool((predicted == predicted[0]).all())
    return (
        [f"collapsed: every target row was predicted as class number {int(predicted[0])}"]
        if one
        else []
    )
