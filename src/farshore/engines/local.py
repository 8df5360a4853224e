"""The local engine: persistent processes on this machine, which share its cores or its GPUs.

A worker imports PyTorch once and then carries out one run after the other, in one thread. If it
dies, its run is given to another one, which goes on from the last finished domain. Workers that
share a GPU do so through NVIDIA's MPS daemon where it is there.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running

from ..execution import warm_up
from ..store.claim import die_with_parent, release
from .engine import ATTEMPTS, Engine
from .mps import start_mps
from .work import Outcome, Task, carry_out_task

# How long an idle worker may take to end by itself.
SECONDS_TO_END = 10.0


@dataclass
class Worker:
    """A process, its line to us, and what it is doing."""

    process: BaseProcess
    line: Connection
    device: str | None
    task: Task | None = None


@dataclass
class LocalEngine(Engine):
    """`slots` worker processes; with `gpus`, each works on one of them in turn; `mps`: those of
    one GPU use it at the same time.
    """

    slots: int
    gpus: int = 0
    mps: bool = True
    workers: list[Worker] = field(default_factory=list, init=False)
    _again: deque[Task] = field(default_factory=deque, init=False)
    _deaths: dict[str, int] = field(default_factory=dict, init=False)
    _outcomes: deque[Outcome] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        self._daemon = start_mps() if self.mps and self.slots > self.gpus > 0 else None

    @property
    def free(self) -> int:
        """Slots without a task."""
        return (
            self.slots - sum(worker.task is not None for worker in self.workers) - len(self._again)
        )

    def submit(self, task: Task) -> None:
        """Give the task to an idle worker; a new one is started if there is none."""
        idle = next((worker for worker in self.workers if worker.task is None), None)
        worker = idle or self._start()
        worker.task = task
        sent = (
            task
            if worker.device is None
            else replace(task, run=task.run.model_copy(update={"device": worker.device}))
        )
        with suppress(
            OSError
        ):  # if it is dead, `next` finds that out and gives the task to another one
            worker.line.send(sent)

    def next(self, seconds: float) -> Outcome | None:
        """The outcome of a run, or news of a death, whichever comes first."""
        while self._again:
            self.submit(self._again.popleft())
        if not self._outcomes:
            busy = [worker for worker in self.workers if worker.task is not None]
            for ready in wait([worker.line for worker in busy], timeout=seconds):
                self._hear(next(worker for worker in busy if worker.line is ready))
        return self._outcomes.popleft() if self._outcomes else None

    def close(self) -> None:
        """End the workers and give back what they had claimed. An idle one ends by itself, and
        tidies up, when its line does.
        """
        for worker in self.workers:
            if worker.task is None:
                worker.line.close()
            else:
                worker.process.kill()
        for worker in self.workers:
            self._bury(worker)
        self.workers = []
        if self._daemon is not None:
            self._daemon.close()
            self._daemon = None

    def _start(self) -> Worker:
        context = get_context("spawn")
        taken = [worker.device for worker in self.workers]
        devices = [f"cuda:{number}" for number in range(self.gpus)]
        ensure_running()  # what the first start would start too, and hear Ctrl-C again behind it
        with without_interrupts():  # a worker that was half started would be nobody's
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=(theirs, os.getpid()), daemon=True)
            process.start()
            theirs.close()  # so that a dead worker's line ends
            worker = Worker(process, ours, min(devices, key=taken.count) if devices else None)
            self.workers.append(worker)
        return worker

    def _hear(self, worker: Worker) -> None:
        """An outcome, or the end of the line: then the worker is dead and its run is given out
        again.
        """
        task = worker.task
        assert task is not None
        try:
            outcome: Outcome = worker.line.recv()
        except (EOFError, OSError):
            self._bury(worker)
            self.workers.remove(worker)
            self._deaths[task.name] = self._deaths.get(task.name, 0) + 1
            if self._deaths[task.name] < ATTEMPTS:
                self._again.append(task)
                return
            outcome = Outcome(
                task.name,
                "failed",
                f"its process died {ATTEMPTS} times "
                f"(last exit code {worker.process.exitcode}; -9 often means that memory ran out: "
                "use fewer --workers)",
            )
        worker.task = None
        self._outcomes.append(outcome)

    def _bury(self, worker: Worker) -> None:
        worker.process.join(SECONDS_TO_END)
        worker.process.kill()
        worker.process.join()
        worker.line.close()
        if worker.task is not None and worker.process.pid is not None:
            release(worker.task.folder.path, pid=worker.process.pid)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Ctrl-C waits until the end. A process that is started inside is deaf to it from its first
    moment, before `work` says so.

    Blocking the signal is handed on to the process but keeps it from this thread only: another one
    may hear it, and Python would then interrupt this one all the same.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    heard: list[int] = []
    main = (
        threading.current_thread() is threading.main_thread()
    )  # the one that is interrupted, and that may say what then happens
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number)) if main else None
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if main:
            signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        if heard:
            signal.raise_signal(signal.SIGINT)


def work(line: Connection, parent: int) -> None:
    """A worker's life: tasks in, outcomes out, until the line ends."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the command, which then ends its workers
    die_with_parent(parent)
    # The workers share the cores: each compiles by itself, without a pool of helpers.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    import torch

    torch.set_num_threads(1)
    warm_up("cpu")  # so that the first run of a worker takes no longer than the others
    while True:
        try:
            task = line.recv()
        except (EOFError, OSError):
            return
        line.send(carry_out_task(task))
