"""Checkpoints inside a domain: interrupted training continues bit for bit from the last one.

A checkpoint is a snapshot of the trainer, with what its method keeps within a domain. It does not
contain the data: they are passed in again and must be the same, which a checksum of the rows, the
labels and their split verifies.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor
from torch.optim import Optimizer

from ..base.manifest import MANIFEST
from ..base.state import load_state, remove_state, save_state
from ..data.domain import Domain
from ..errors import FarshoreError, StateError

if TYPE_CHECKING:
    from .trainer import Trainer

EVERY = 100
CHECKSUM_ROWS = 4096


class Checkpoints:
    """The checkpoint of one domain in `folder`, written every `every` steps.

    base: identifies the state from which the domain is learned. A checkpoint of another state is
        useless and is deleted.
    """

    def __init__(self, folder: str | Path, *, base: str, every: int = EVERY) -> None:
        if every < 1:
            raise FarshoreError(f"a checkpoint every {every} steps is not allowed: at least 1")
        self.folder = Path(folder)
        self.base = base
        self.every = every

    def of(self, trainer: "Trainer", domain: Domain, steps: int) -> "DomainCheckpoint":
        """The checkpoint of this domain's training."""
        key = {"domain": domain.name, "number of steps": steps, "data": domain_checksum(domain)}
        return DomainCheckpoint(self, trainer, key)

    def clear(self) -> None:
        """Delete the checkpoint, once the domain is learned or abandoned, and no other file."""
        remove_state(self.folder, kind="checkpoint")

    def exists(self) -> bool:
        """Whether there is a checkpoint, of this or another state."""
        return (self.folder / MANIFEST).is_file()

    def read(self) -> dict[str, Any] | None:
        """The last checkpoint; one that is damaged or of another state is deleted."""
        if self.folder.is_symlink():
            why = f"{self.folder} is a link, and nothing is written through links: delete the link"
            raise StateError(why)
        if not self.exists():
            return None
        try:
            state = load_state(self.folder, kind="checkpoint")
            if state["base"] == self.base:
                return state
        except (StateError, KeyError):
            pass
        self.clear()
        return None


@dataclass
class DomainCheckpoint:
    """The checkpoint of the domain being learned. It continues only with the same `key`."""

    checkpoints: Checkpoints
    trainer: "Trainer"
    key: dict[str, Any]

    def restore(self) -> int:
        """Restore the trainer from its checkpoint; how many steps are done, 0 without one."""
        state = self.checkpoints.read()
        if state is None:
            return 0
        folder = self.checkpoints.folder
        for name, value in state["key"].items():
            if value != self.key[name]:
                raise FarshoreError(
                    f"the training of domain {state['key']['domain']!r} was interrupted after "
                    f"{state['step']} steps, and now the {name} is different: give the same to "
                    f"continue, or delete {folder} to start over"
                )
        try:
            self.trainer.load_state_dict(state["trainer"])
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise StateError(
                f"{folder} does not match this model ({error}): delete it to start the domain over"
            ) from error
        self.trainer.observer.note(
            f"continuing {self.key['domain']} after {state['step']} steps, from its last checkpoint"
        )
        return int(state["step"])

    def reached(self, step: int) -> None:
        """Write a checkpoint if one is due after this many steps."""
        if step % self.checkpoints.every == 0 and step < self.key["number of steps"]:
            state = {
                "base": self.checkpoints.base,
                "key": self.key,
                "step": step,
                "trainer": self.trainer.state_dict(inside_domain=True),
            }
            save_state(self.checkpoints.folder, state, kind="checkpoint")


def load_optimizers(optimizers: Sequence[Optimizer], states: Sequence[Mapping[str, Any]]) -> None:
    """Restore optimisers; whether a step can be captured depends on the current device."""
    for optimizer, saved in zip(optimizers, states, strict=True):
        current = [group.get("capturable") for group in optimizer.param_groups]
        optimizer.load_state_dict(dict(saved))
        for group, capturable in zip(optimizer.param_groups, current, strict=True):
            if capturable is not None:
                group["capturable"] = capturable


def domain_checksum(domain: Domain) -> str:
    """A checksum of a domain's inputs, labels and split."""
    digest = hashlib.sha256()
    for start in range(0, len(domain), CHECKSUM_ROWS):
        part = domain.inputs[start : start + CHECKSUM_ROWS]
        array = part.cpu().numpy() if isinstance(part, Tensor) else np.asarray(part)
        digest.update(np.ascontiguousarray(array).tobytes())
    for numbers in (domain.labels, domain.train):
        digest.update(numbers.cpu().numpy().tobytes())
    return digest.hexdigest()
