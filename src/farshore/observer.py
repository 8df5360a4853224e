"""Observer: callbacks for logging a training run. Subclass it and override what you need."""

from collections.abc import Mapping

from torch import Tensor

from .data.progress import Follow


class Observer:
    """Receives the named loss terms of every step and the scores of every domain.

    The terms are tensors. Reading one (`float(term)`) waits for the device, so read only what you
    need. On a GPU the next step may overwrite the same tensors: copy what you keep.
    """

    def note(self, text: str) -> None:
        """Receive a note about the data or the execution that matters for reading the scores."""

    def start(self, domain: str, steps: int) -> None:
        """Training on `domain` starts."""

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        """One step is done; `step` counts from 0 within the domain."""

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        """`domain` has been learned; `scores` maps names like `validation accuracy` to values."""


def follow(observer: Observer) -> Follow:
    """Show the progress of reading data as the steps of a domain."""

    def report(what: str, done: int, total: int) -> None:
        if done == 1:
            observer.start(what, total)
        observer.step(what, done - 1, {})

    return report
