"""The interface of an engine, which carries out tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType

from .work import Task, TaskOutcome

# How often a run may crash its worker before it counts as failed.
ATTEMPTS = 3


class Engine(ABC):
    """Carries out up to `slots` runs at a time.

    A context manager: its workers end when it exits, whatever happens inside.
    """

    slots: int

    @property
    @abstractmethod
    def free(self) -> int:
        """How many tasks can be submitted now."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Start a task."""

    @abstractmethod
    def next(self, seconds: float) -> TaskOutcome | None:
        """Wait at most this long for an outcome; None if there is none yet."""

    @abstractmethod
    def close(self) -> None:
        """Stop all workers now. Runs in progress keep their last finished domain."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
