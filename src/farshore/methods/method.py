"""Method: the interface of continual learners. The learner calls it and owns the training loop.

A method overrides one of these, the first one that suffices:
- `terms(batch)`: return named loss terms, which are weighted by `weights()`, summed and
  differentiated here;
- `gradients(batch)`: write the gradients (projections, masks);
- `update(batch)`: step the optimisers (several steps per batch).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..base.trees import mapped, tensors
from ..data.batch import Batch
from ..data.domain import Rows
from ..entry import Entry
from ..invariance.invariance import sum_of
from ..memory import Memory
from ..networks.network import Network
from ..settings import MethodSettings
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task

Terms = dict[str, Tensor]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]


@dataclass(frozen=True)
class Replay:
    """What a method replays from past domains.

    memory: the name of a memory (`farshore.memory.MEMORIES`): `partitions` (per domain),
        `reservoir` (uniform over the stream), `class-reservoir` (per class); or None.
    joined: rows of past domains follow the current rows in the flat batch; needs a memory that
        keeps rows per domain.
    draws: names of further independent draws, available in `batch.draws`.
    stores: outputs stored with each row: `logits`, `features`.
    least_rows: fewest rows of a past domain that the method can use; relevant if one batch is
        divided over many domains.
    worth_rows: rows per domain that justify the cost of a further domain in a step (a covariance, a
        separate pass). With many domains a step then uses fewer of them, so that it costs the same
        after a thousand domains as after four.
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
    # Why the feature extractor cannot be compiled in this method's step; empty if it can.
    uncompiled: ClassVar[str] = ""
    # Names of the attributes that are saved; `setup` creates them. Each holds tensors and plain
    # values, or modules or other objects with `state_dict` and `load_state_dict`.
    remembers: ClassVar[tuple[str, ...]] = ()
    # (simpler method, settings of zero weight with which this method equals it bit for bit), if
    # there is one.
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
        # What the user should know, which the trainer reports at the end of a domain.
        self.notes: list[str] = []
        # What a label is; set by the trainer before `prepare`.
        self.task: Task = CLASSIFICATION
        # Set by the learner at the start of a domain, if the run uses class weights.
        self.class_weight: Tensor | None = None

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Receive everything the method works on; called once by the learner, after `prepare`.

        A method that keeps something of its own creates it in `setup`.
        """
        self.network = network
        self.memory = memory
        self.generator = generator
        self.opts = self.optimizers(network, make)
        self.setup()

    def setup(self) -> None:
        """Create what the method keeps: network, memory, generator and optimisers are there."""

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.network.parameters()).device

    def prepare(self, network: Network) -> Network:
        """Change the network before training, for example its head or its activations."""
        return network

    def optimizers(self, network: Network, make: MakeOptimizer) -> list[Optimizer]:
        """Create the optimisers of the run: by default one over all parameters."""
        return [make(network.parameters())]

    def reset_optimizers(self) -> None:
        """Drop the optimisers' moments and counters, if the run resets them per domain."""
        for optimizer in self.opts:
            optimizer.state.clear()  # as if it had just been created

    def extract(self, batch: Batch) -> Tensor:
        """Features of the flat batch in one joint pass."""
        return self.network.extract(batch.inputs)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features and logits of the flat batch; the current rows' ones are kept with them."""
        features = self.extract(batch)
        logits: Tensor = self.network.classifier(features)
        outputs = {"logits": logits, "features": features}
        batch.outputs = {name: of[: batch.rows].detach() for name, of in outputs.items()}
        return features, logits

    def terms(self, batch: Batch) -> Terms:
        """Named loss terms of this batch; the first is usually `erm`."""
        raise NotImplementedError

    def risk(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """The ERM term of these rows, with the run's class weights and the rows' own weights."""
        return self.task.risk(logits, labels, self.class_weight, weights)

    def weights(self) -> Mapping[str, float | Tensor]:
        """The weight of each term; a term that is not named has weight 1."""
        return {}

    def weights_of(self, terms: Terms) -> Mapping[str, float | Tensor]:
        """The weights of these terms; a method may determine some of them from the gradients."""
        return self.weights()

    def gradients(self, batch: Batch) -> Terms:
        """Compute the gradients of the weighted sum of the terms."""
        terms = self.terms(batch)
        weights = self.weights_of(terms)
        weighted = [weights[of] * term if of in weights else term for of, term in terms.items()]
        sum_of(weighted).backward()
        return {name: term.detach() for name, term in terms.items()}

    def update(self, batch: Batch) -> Terms:
        """Take one training step on this batch."""
        with self.stepping():
            return self.gradients(batch)

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Inside, gradients are computed from zero; then every optimiser takes a step."""
        for optimizer in self.opts:
            optimizer.zero_grad(set_to_none=True)
        yield
        for optimizer in self.opts:
            optimizer.step()

    def joint_steps(self, steps: int, domains: int) -> int:
        """Number of steps when all domains are learned at once: as many as in turn."""
        return steps * domains

    def before_domain(self, domain: str) -> None:
        """A domain starts."""

    def look_at(self, rows: Rows) -> None:
        """The training rows of the domain that starts, before its first step."""

    def before_step(self, step: int, domain_step: int) -> None:
        """A step starts; `step` counts over the run, `domain_step` in the domain, both from 0."""

    def after_step(self, batch: Batch) -> None:
        """The weights have been updated; the rows have not yet been offered to a reservoir."""

    def doses(self, batch: Batch) -> Terms:
        """How strongly each term besides `erm` acts on this batch, for the result; may be empty.

        It changes nothing, and BatchNorm does not update its running statistics.
        """
        return {}

    def after_domain(self, domain: str, rows: Rows) -> None:
        """A domain ended: `rows` are its training rows, available for the last time.

        The memory already contains its share of them.
        """

    def forget(self, domain: str) -> None:
        """Remove the state that belongs to this domain only."""

    def uncaptured(self) -> str:
        """Why a step with these settings cannot be recorded as a CUDA graph; empty if it can."""
        return ""

    def phase(self) -> Hashable:
        """Host values that the step's code depends on, such as weights or the stage of a warm-up.

        A recorded step is discarded when they change. Values that change in every step must be
        tensors, written in place.
        """
        return None

    def predictor(self) -> nn.Module:
        """The module from inputs to logits that prediction, evaluation and export use."""
        return self.network

    def state_dict(self) -> dict[str, Any]:
        """The whole state of the method, as tensors and plain values: what it `remembers`."""
        return {name: as_state(getattr(self, name)) for name in self.remembers}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        for name in self.remembers:
            setattr(self, name, from_state(state[name], getattr(self, name), self.device))

    def grown_state(self, state: Mapping[str, Any], grown: Network) -> Mapping[str, Any]:
        """A saved state of this method, for the same network with more classes."""
        return state

    def state_form(self) -> Any:
        """The form of a saved state (`farshore.base.forms`), for the check before it is loaded.

        By default that of the fresh method's own state, in which None and empty lists or
        dictionaries stand for anything. A method whose state grows says how.
        """
        return unknown_parts(self.state_dict())

    @property
    def bytes(self) -> int:
        """Size of the method's state in bytes, without network, optimiser and memory."""
        return sum(each.nbytes for each in tensors(self.state_dict()))


def as_state(value: Any) -> Any:
    """What is saved of a value: its state, if it is an object with one, or the value itself."""
    if hasattr(value, "state_dict"):
        return dict(value.state_dict())
    return [as_state(part) for part in value] if isinstance(value, list) else value


def from_state(saved: Any, fresh: Any, device: torch.device) -> Any:
    """The value of which this was saved; a fresh object with a state takes it over."""
    if hasattr(fresh, "load_state_dict"):
        fresh.load_state_dict(saved)
        return fresh
    if isinstance(saved, list) and isinstance(fresh, list):
        owns = chain(fresh, repeat(None))
        return [from_state(part, own, device) for part, own in zip(saved, owns, strict=False)]
    return mapped(saved, lambda value: value.to(device))


def unknown_parts(state: Any) -> Any:
    """A fresh state as a form: what is still empty may be anything."""
    if isinstance(state, Mapping):
        return {key: unknown_parts(value) for key, value in state.items()} or None
    if isinstance(state, list | tuple):
        return [unknown_parts(value) for value in state] or None
    return state


def gradient_norm(loss: Tensor, network: nn.Module) -> Tensor:
    """||∇loss|| over all trained parameters; the graph stays for further gradients."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(loss, trained, retain_graph=True, allow_unused=True)
    found = [gradient for gradient in gradients if gradient is not None]
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(found)))


def term_doses(
    terms: Terms, weights: Mapping[str, float | Tensor], network: nn.Module
) -> dict[str, Tensor]:
    """||w ∇term|| / ||∇erm|| over all trained parameters, for each term besides `erm`."""
    further = {name: term for name, term in terms.items() if name != "erm"}
    if not further:
        return {}
    erm = gradient_norm(terms["erm"], network)
    return {
        name: weights.get(name, 1.0) * gradient_norm(term, network) / erm
        for name, term in further.items()
    }


def weighted_mean(losses: Tensor, labels: Tensor, class_weight: Tensor | None) -> Tensor:
    """Mean of the rows' losses, each with the weight of its class if weights are given."""
    if class_weight is None:
        return losses.mean()
    weights = class_weight[labels]
    return (losses * weights).sum() / weights.sum()
