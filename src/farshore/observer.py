"""Observer: how a user's logger sees a training. Subclass it and override what you want."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


class Observer:
    """Receives the named loss terms of every step and the scores of every domain.

    The terms are tensors: read them (`float(term)`) only as often as you need them, since reading
    waits for the device. On a GPU the next
    step may write into the same tensors: copy what you keep.
    """

    def note(self, text: str) -> None:
        """Something about the data, or about how steps are carried out, that a reader of the
        scores must know.
        """

    def start(self, domain: str, steps: int) -> None:
        """Training on `domain` begins."""

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        """One step is done; `step` counts from 0 within the domain."""

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        """`domain` is learned; `scores` maps names such as `validation accuracy` to values."""
