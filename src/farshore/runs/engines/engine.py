"""Engines carry out tasks: their interface, and the one that does so in this process."""

from abc import ABC, abstractmethod
from collections import deque

from ...observer import Observer
from ..beginnings import Beginnings
from .work import Work, WorkOutcome, carry_out_work

# How often a run may crash its worker before it counts as failed.
ATTEMPTS = 3


class Engine(ABC):
    """Carries out up to `slots` runs at a time; its workers end when the context does."""

    slots: int

    @property
    @abstractmethod
    def free(self) -> int:
        """How many tasks can be submitted now."""

    def choose(self, waiting: deque[Work]) -> Work:
        """Take the task that is to be submitted next: the first one, unless another saves work."""
        return waiting.popleft()

    @abstractmethod
    def submit(self, task: Work) -> None:
        """Start a task."""

    @abstractmethod
    def next(self, seconds: float) -> WorkOutcome | None:
        """Wait at most this long for an outcome; None if there is none yet."""

    @abstractmethod
    def close(self) -> None:
        """Stop all workers now. Runs in progress keep their last finished domain."""

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InlineEngine(Engine):
    """Carries out the waiting task when `next` is called; Ctrl-C propagates."""

    slots = 1

    def __init__(self, observer: Observer | None = None) -> None:
        self.observer = observer
        self._task: Work | None = None
        self._beginnings = Beginnings()

    @property
    def free(self) -> int:
        """One, unless a task is waiting."""
        return 0 if self._task is not None else 1

    def submit(self, task: Work) -> None:
        """Keep the task until `next` is called."""
        self._task = task

    def next(self, seconds: float) -> WorkOutcome | None:
        """Carry out the waiting task to its end; `seconds` is ignored."""
        if self._task is None:
            return None
        task, self._task = self._task, None
        return carry_out_work(task, self.observer, self._beginnings)

    def close(self) -> None:
        """Drop a task that was not started."""
        self._task = None
