"""The inline engine: one run at a time in this process, watched live by an observer."""

from __future__ import annotations

from ...observer import Observer
from .engine import Engine
from .work import Task, TaskOutcome, carry_out_task


class InlineEngine(Engine):
    """Carries out the waiting task when `next` is called.

    Ctrl-C propagates: the run's claim is released, and its last finished domain is kept.
    """

    slots = 1

    def __init__(self, observer: Observer | None = None) -> None:
        self.observer = observer
        self._task: Task | None = None

    @property
    def free(self) -> int:
        """One, unless a task is waiting."""
        return 0 if self._task is not None else 1

    def submit(self, task: Task) -> None:
        """Keep the task until `next` is called."""
        self._task = task

    def next(self, seconds: float) -> TaskOutcome | None:
        """Carry out the waiting task to its end; `seconds` is ignored."""
        if self._task is None:
            return None
        task, self._task = self._task, None
        return carry_out_task(task, self.observer)

    def close(self) -> None:
        """Drop a task that was not started."""
        self._task = None
