"""Checkpoints inside a domain: training that was interrupted goes on from the last one, bit for bit
as if nothing had happened.

A checkpoint holds all that changes from step to step: network, optimisers, memory, generators,
counters, what the method remembers for good (`state_dict`) and what it keeps within a domain only.
The data are not in it. They are handed in again
and must be the same: a fingerprint of the rows, the labels and their split is compared.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .data.domain import Domain
from .errors import FarshoreError, StateError
from .memory import Memory, ReservoirMemory
from .methods.method import Method
from .observer import Observer
from .randomness import Generators
from .state import MANIFEST, load_state, save_state

EVERY = 100
FINGERPRINT_ROWS = 4096
# What a method has from its learner; it is saved by itself.
GIVEN = ("settings", "domains", "network", "memory", "generator", "opts")


class Training(Protocol):
    """What a checkpoint needs of a learner."""

    method: Method
    memory: Memory | None
    generators: Generators
    steps_done: int
    observer: Observer


class Checkpoints:
    """The checkpoint of one domain in `folder`, written every `every` steps.

    `base` names the state from which the domain is learned: a checkpoint of another state is worth
    nothing and is dropped.
    """

    def __init__(self, folder: str | Path, *, base: str, every: int = EVERY) -> None:
        if every < 1:
            raise FarshoreError(f"a checkpoint every {every} steps is not allowed: at least 1")
        self.folder = Path(folder)
        self.base = base
        self.every = every
        self._print: tuple[Domain, str] | None = None

    def resume(
        self, learner: Training, domain: Domain, steps: int, staging: ReservoirMemory | None
    ) -> int:
        """Bring the learner to its last checkpoint in this domain. Returns the steps that are
        done: 0 if there is none.
        """
        state = self._read()
        if state is None:
            return 0
        asked = self._key(domain, steps)
        for what, value in state["key"].items():
            if value != asked[what]:
                raise FarshoreError(
                    f"the training of domain {state['key']['domain']!r} was interrupted after "
                    f"{state['step']} steps, and now the {what} is "
                    f"another: give the same again to go on, or delete {self.folder} to begin anew"
                )
        try:
            self._restore(learner, state, staging)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise StateError(
                f"{self.folder} does not fit this model ({error}): delete it to begin the domain "
                "anew"
            ) from error
        learner.observer.note(
            f"going on with {domain.name} after {state['step']} steps, from its last checkpoint"
        )
        return int(state["step"])

    def reached(
        self,
        learner: Training,
        domain: Domain,
        step: int,
        steps: int,
        staging: ReservoirMemory | None,
    ) -> None:
        """`step` steps are done: write a checkpoint if one is due."""
        if step % self.every == 0 and step < steps:
            state = {
                "base": self.base,
                "key": self._key(domain, steps),
                "step": step,
                **_moment(learner, staging),
            }
            save_state(self.folder, state, kind="checkpoint")

    def clear(self) -> None:
        """The domain is learned, or given up."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self) -> dict[str, Any] | None:
        if not (self.folder / MANIFEST).is_file():
            return None
        try:
            state = load_state(self.folder, kind="checkpoint")
            if state["base"] == self.base:
                return state
        except (StateError, KeyError):
            pass  # damaged: the domain begins anew, nothing but time is lost
        self.clear()
        return None

    def _key(self, domain: Domain, steps: int) -> dict[str, Any]:
        if self._print is None or self._print[0] is not domain:
            self._print = (domain, fingerprint(domain))
        return {"domain": domain.name, "number of steps": steps, "data": self._print[1]}

    def _restore(
        self, learner: Training, state: Mapping[str, Any], staging: ReservoirMemory | None
    ) -> None:
        method = learner.method
        device = next(method.network.parameters()).device
        method.network.load_state_dict(state["network"])
        load_optimizers(method.opts, state["optimizers"])
        if learner.memory is not None:
            learner.memory.load_state_dict(state["memory"], device)
        if staging is not None and staging is not learner.memory:
            staging.load_state_dict(state["staging"], device)
        method.load_state_dict(state["method"])
        for name, value in state["within"].items():
            setattr(method, name, _moved(value, device))
        learner.generators.load_state_dict(state["generators"])
        learner.steps_done = int(state["steps_done"])


def load_optimizers(optimizers: Sequence[Optimizer], states: Sequence[Mapping[str, Any]]) -> None:
    """Take over saved moments. Whether a step can be captured depends on the device that is here
    now, not on the one that saved.
    """
    for optimizer, saved in zip(optimizers, states, strict=True):
        here = [group.get("capturable") for group in optimizer.param_groups]
        optimizer.load_state_dict(dict(saved))
        for group, capturable in zip(optimizer.param_groups, here, strict=True):
            if capturable is not None:
                group["capturable"] = capturable


def fingerprint(domain: Domain) -> str:
    """A checksum of a domain's inputs, labels and split."""
    digest = hashlib.sha256()
    for start in range(0, len(domain), FINGERPRINT_ROWS):
        part = domain.inputs[start : start + FINGERPRINT_ROWS]
        array = part.cpu().numpy() if isinstance(part, Tensor) else np.asarray(part)
        digest.update(np.ascontiguousarray(array).tobytes())
    for numbers in (domain.labels, domain.train):
        digest.update(numbers.cpu().numpy().tobytes())
    return digest.hexdigest()


def _moment(learner: Training, staging: ReservoirMemory | None) -> dict[str, Any]:
    """Everything that the next steps depend on."""
    method = learner.method
    return {
        "steps_done": learner.steps_done,
        "network": dict(method.network.state_dict()),
        "optimizers": [optimizer.state_dict() for optimizer in method.opts],
        "memory": learner.memory.state_dict() if learner.memory is not None else None,
        "staging": staging.state_dict()
        if staging is not None and staging is not learner.memory
        else None,
        "method": method.state_dict(),
        "within": {
            name: value
            for name, value in vars(method).items()
            if name not in GIVEN and _plain(value)
        },
        "generators": learner.generators.state_dict(),
    }


def _plain(value: Any) -> bool:
    """Whether a method's attribute is state: tensors and plain values in any nesting. Parameters
    belong to the network.
    """
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_plain(item) for item in value)
    return (
        value is None
        or isinstance(value, bool | int | float | str)
        or (isinstance(value, Tensor) and not isinstance(value, nn.Parameter))
    )


def _moved(value: Any, device: torch.device) -> Any:
    """The same tree with its tensors on `device`."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: _moved(item, device) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_moved(item, device) for item in value)
    return value
