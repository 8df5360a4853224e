"""The seal on the target domain.

Training code receives only source domains. The target is a SealedTarget, which cannot be read: it
opens only for a frozen model, never while a learner is training, and it records each opening and
the weights it was opened for.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import torch
from torch import nn

from ..errors import SealedTargetError
from .domain import Domain

_training: ContextVar[str | None] = ContextVar("training", default=None)


@contextmanager
def training(what: str) -> Iterator[None]:
    """Context in which no target can be opened; the learner enters it during every `learn`."""
    token = _training.set(what)
    try:
        yield
    finally:
        _training.reset(token)


def weights_checksum(module: nn.Module) -> str:
    """Return a checksum of all parameters and buffers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class FrozenModel:
    """A model in evaluation mode without gradients, and the checksum of its weights."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module.eval().requires_grad_(False)
        self.checksum = weights_checksum(module)

    def check_unchanged(self) -> None:
        """Raise an error if the weights have changed since freezing."""
        if weights_checksum(self.module) != self.checksum:
            why = "the frozen model changed after the target was opened: its scores are invalid"
            raise SealedTargetError(why)


class SealedTarget:
    """The sealed target domain; only `name` and `opened` can be read before `open`."""

    def __init__(self, name: str, make: Callable[[], Domain]) -> None:
        self.name = name
        self._make = make
        self.opened: list[str] = []

    def open(self, frozen: FrozenModel) -> Domain:
        """Return the target's rows for a frozen model, and record the checksum of its weights."""
        trainee = _training.get()
        if trainee is not None:
            why = f"the target {self.name!r} is sealed while {trainee} is training"
            raise SealedTargetError(why)
        if not isinstance(frozen, FrozenModel):
            raise SealedTargetError(
                f"the target {self.name!r} opens only for a FrozenModel, not for "
                f"{type(frozen).__name__}"
            )
        frozen.check_unchanged()
        self.opened.append(frozen.checksum)
        return self._make()

    def then(self, change: Callable[[Domain], Domain]) -> "SealedTarget":
        """The same sealed target, whose rows are changed by this function when it is opened."""
        return SealedTarget(self.name, lambda: change(self._make()))

    def _refuse(self, *_: Any) -> NoReturn:
        why = f"the target {self.name!r} is sealed: it cannot be read before the model is frozen"
        raise SealedTargetError(why)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    __len__ = __iter__ = __getitem__ = __reduce__ = _refuse
