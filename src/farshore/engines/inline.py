"""The inline engine: one run at a time in this process, seen live by an observer."""

from __future__ import annotations

from ..observer import Observer
from .engine import Engine
from .work import Outcome, Task, carry_out_task


class InlineEngine(Engine):
    """Carries out a task when it is asked for the next outcome. Ctrl-C passes through: the run's
    claim is given back, and its last finished domain stays.
    """

    slots = 1

    def __init__(self, observer: Observer | None = None) -> None:
        self.observer = observer
        self._task: Task | None = None

    @property
    def free(self) -> int:
        """One slot, unless a task waits."""
        return 0 if self._task is not None else 1

    def submit(self, task: Task) -> None:
        """Keep the task until `next` is called."""
        self._task = task

    def next(self, seconds: float) -> Outcome | None:
        """Carry out the task that waits; this takes as long as it takes."""
        if self._task is None:
            return None
        task, self._task = self._task, None
        return carry_out_task(task, self.observer)

    def close(self) -> None:
        """Forget a task that was not begun."""
        self._task = None
