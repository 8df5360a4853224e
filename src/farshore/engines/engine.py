"""Engines carry out tasks somewhere. All that is asked of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType

from .work import Outcome, Task

# How often a run may take its worker down before it counts as failed.
ATTEMPTS = 3


class Engine(ABC):
    """So many runs at a time. Use it as a context: whatever happens inside, its workers end with
    it.
    """

    # How many runs at a time.
    slots: int

    @property
    @abstractmethod
    def free(self) -> int:
        """How many tasks can be submitted now."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Begin with a task."""

    @abstractmethod
    def next(self, seconds: float) -> Outcome | None:
        """An outcome, waited for at most so long; None if there is none yet."""

    @abstractmethod
    def close(self) -> None:
        """End all workers now. Runs in flight keep their last finished domain."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
