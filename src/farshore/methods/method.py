"""Method: the shape of every continual learner. It owns no loop, no loader and no logger; the
learner calls it.

A method does one of three things, the first that suffices:
- `terms(batch)`: returns named loss terms; they are weighed by `weights()`, summed and
  differentiated here;
- `gradients(batch)`: writes the gradients itself (projections, masks);
- `update(batch)`: steps the optimisers itself (several steps a batch).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..batch import Batch
from ..data.domain import Rows
from ..entry import Entry
from ..memory import Memory
from ..networks.network import Network
from ..optimization import reset_optimizers
from ..settings import MethodSettings

Terms = dict[str, Tensor]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]


@dataclass(frozen=True)
class Replay:
    """What a method wants of the past.

    memory: the name of a memory (`farshore.memory.MEMORIES`): `partitions` (per domain),
        `reservoir` (uniform over the stream), `class-reservoir` (per class); or None.
    joined: rows of past domains follow the current rows in the flat batch; needs a memory that
        keeps rows per domain.
    draws: names of further independent draws, found in `batch.draws`.
    stores: what is kept beside each row: `logits`, `features`.
    least_rows: fewest rows of a past domain that the method can use; matters when one batch is
    divided over many domains.
    worth_rows: rows for which a further domain is worth what it costs, where a step pays for each
        (a covariance, a pass of its own): with many domains a step then sees fewer of them, and
        costs the same after a thousand as after four.
    """

    memory: str | None = None
    joined: bool = True
    draws: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    least_rows: int = 1
    worth_rows: int = 1


class Method(Entry):
    """Base of all methods that learn by gradient steps."""

    replay: Replay = Replay()
    # Why the feature extractor cannot be compiled inside this method's step; empty if it can.
    uncompiled: ClassVar[str] = ""
    # (a simpler method, the settings of zero weight under which this one is that method bit for
    # bit), where there is one.
    reduces_to: ClassVar[tuple[str, Mapping[str, Any]] | None] = None

    network: Network
    memory: Memory | None
    generator: torch.Generator
    opts: list[Optimizer]

    @classmethod
    def keeps_rows(cls) -> bool:
        """Whether the method has a memory."""
        return cls.replay.memory is not None

    def __init__(self, settings: MethodSettings) -> None:
        self.settings: MethodSettings = settings
        self.domains: list[str] = []
        self.class_weight: Tensor | None = (
            None  # set by the learner at the start of a domain, if the run asks for it
        )

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Called once by the learner, after `prepare`, with everything the method works on."""
        self.network = network
        self.memory = memory
        self.generator = generator
        self.opts = self.optimizers(network, make)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    def prepare(self, network: Network) -> Network:
        """May change the network before training: another head, another activation."""
        return network

    def optimizers(self, network: Network, make: MakeOptimizer) -> list[Optimizer]:
        """One optimiser over all parameters, for the whole run."""
        return [make(network.parameters())]

    def reset_optimizers(self) -> None:
        """The run asks for fresh optimisers at the start of a domain: drop their moments and
        counters.
        """
        reset_optimizers(self.opts)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features and logits of the flat batch in one joint pass."""
        features = self.network.extract(batch.inputs)
        logits: Tensor = self.network.classifier(features)
        batch.outputs = {
            "logits": logits[: batch.rows].detach(),
            "features": features[: batch.rows].detach(),
        }
        return features, logits

    def terms(self, batch: Batch) -> Terms:
        """Named loss terms of this batch; the first is usually `erm`."""
        raise NotImplementedError

    def risk(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The ERM term of these rows, with the run's class weights."""
        return empirical_risk(logits, labels, self.class_weight)

    def weights(self) -> Mapping[str, float | Tensor]:
        """The weight of each term; a term that is not named has weight 1."""
        return {}

    def gradients(self, batch: Batch) -> Terms:
        """Write the gradient of the weighed sum of the terms into the parameters."""
        terms = self.terms(batch)
        weights = self.weights()
        total = sum(
            (weights[name] * term if name in weights else term) for name, term in terms.items()
        )
        assert isinstance(total, Tensor)
        total.backward()
        return {name: term.detach() for name, term in terms.items()}

    def update(self, batch: Batch) -> Terms:
        """One step of training on this batch."""
        for optimizer in self.opts:
            optimizer.zero_grad(set_to_none=True)
        terms = self.gradients(batch)
        for optimizer in self.opts:
            optimizer.step()
        return terms

    def joint_steps(self, steps: int, domains: int) -> int:
        """How many steps are made when all domains are learned at once: as many as in turn."""
        return steps * domains

    def before_domain(self, domain: str) -> None:
        """A domain begins."""

    def before_step(self, step: int, domain_step: int) -> None:
        """A step begins: the `step`-th of the run, the `domain_step`-th of its domain, both from
        0.
        """

    def after_step(self, batch: Batch) -> None:
        """The weights were updated; the rows were not yet offered to a reservoir."""

    def after_domain(self, domain: str, rows: Rows) -> None:
        """A domain ended: `rows` are its training rows, at hand for the last time. The memory
        already holds its share.
        """

    def forget(self, domain: str) -> None:
        """Remove what is remembered of this domain alone."""

    def uncaptured(self) -> str:
        """Why a step with these settings cannot be recorded as a CUDA graph; empty if it can."""
        return ""

    def phase(self) -> Hashable:
        """What the step's code depends on and `before_step` or the steps themselves change on the
        host: weights, the stage of a warm-up. A recorded step is dropped when it changes. What
        changes in every step must be a tensor, written in place."""
        return None

    def predictor(self) -> nn.Module:
        """The module from inputs to logits that prediction, evaluation and export use."""
        return self.network

    def state_dict(self) -> dict[str, Any]:
        """All that the method remembers, in tensors and plain values."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""

    @property
    def bytes(self) -> int:
        """Bytes of the tensors that the method remembers beside network, optimiser and memory."""
        return tensor_bytes(self.state_dict())


def tensor_bytes(node: Any) -> int:
    """Bytes of all tensors in a tree."""
    if isinstance(node, Tensor):
        return node.numel() * node.element_size()
    children = (
        node.values()
        if isinstance(node, Mapping)
        else node
        if isinstance(node, list | tuple)
        else ()
    )
    return sum(tensor_bytes(child) for child in children)


def empirical_risk(logits: Tensor, labels: Tensor, class_weight: Tensor | None = None) -> Tensor:
    """Mean cross-entropy over all rows: the paper's ERM term, pooled over the current and the
    replayed rows.

    With `class_weight` [C] it is the weighted mean, each row with the weight of its class.
    """
    return nn.functional.cross_entropy(logits, labels, weight=class_weight)


def weighted_mean(losses: Tensor, labels: Tensor, class_weight: Tensor | None) -> Tensor:
    """The mean of the rows' losses, each with the weight of its class where weights are given."""
    if class_weight is None:
        return losses.mean()
    weights = class_weight[labels]
    return (losses * weights).sum() / weights.sum()


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    """n / (k · count) for each of the k classes among these labels, so that they weigh equally
    in all; 1 for a class that is absent.
    """
    counts = torch.bincount(labels, minlength=classes)
    present = counts > 0
    return torch.where(present, len(labels) / (present.sum() * counts.clamp(min=1)), 1.0)
