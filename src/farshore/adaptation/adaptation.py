"""Adaptation: the shape of what goes on learning at the target. Inputs in, logits out; it is never
a Method.

The protocol trains a source model, freezes it, and hands a copy of it and the target's inputs over.
Labels stay with the protocol, which scores the logits that come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..data.inputs import Inputs
from ..networks.network import Network
from ..settings import MethodSettings, setting

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


class Adaptation:
    """Base of all adaptations. A subclass says its paper and its steps in the docstring."""

    name: ClassVar[str]
    group: ClassVar[str] = "adaptation"
    kind: ClassVar[Literal["adaptation"]] = "adaptation"
    reference: ClassVar[str]
    # Raised by hand when a change of the code changes the adaptation's numbers.
    results_version: ClassVar[int] = 1
    # What the target score means: ONLINE or AFTERWARDS.
    measure: ClassVar[str]
    Settings: ClassVar[type[AdaptationSettings]] = AdaptationSettings
    settings: AdaptationSettings

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
