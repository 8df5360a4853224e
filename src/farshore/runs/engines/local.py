"""The local engine: persistent worker processes that share this machine's cores or GPUs.

A worker imports PyTorch once and then carries out one run after another, in one thread. If it dies,
another worker resumes its run from the last finished domain. Workers that share a GPU do so through
NVIDIA's MPS daemon if it is installed.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running

from ..beginnings import Beginnings
from ..store.claim import die_with_parent, killed_with_parent, release
from .engine import ATTEMPTS, Engine
from .mps import start_mps
from .work import Work, WorkOutcome, carry_out_work

# How long an idle worker may take to exit by itself.
SECONDS_TO_END = 10.0


@dataclass
class Worker:
    """A process, our connection to it, and its current task."""

    process: BaseProcess
    connection: Connection
    device: str | None
    task: Work | None = None
    # That of its newest run.
    family: str = ""


@dataclass
class LocalEngine(Engine):
    """Runs tasks in worker processes on this machine.

    slots: the number of worker processes.
    gpus: the number of GPUs, over which the workers are distributed evenly.
    mps: whether the workers of one GPU use it at the same time instead of in turns.
    """

    slots: int
    gpus: int = 0
    mps: bool = True
    workers: list[Worker] = field(default_factory=list, init=False)
    _retries: deque[Work] = field(default_factory=deque, init=False)
    _deaths: dict[str, int] = field(default_factory=dict, init=False)
    _outcomes: deque[WorkOutcome] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        self._daemon = start_mps() if self.mps and self.slots > self.gpus > 0 else None

    @property
    def free(self) -> int:
        """Slots without a task."""
        busy = sum(worker.task is not None for worker in self.workers)
        return self.slots - busy - len(self._retries)

    def choose(self, waiting: deque[Work]) -> Work:
        """Take a run of an idle worker's family, else one of a family that no worker has."""
        idle = {worker.family for worker in self.workers if worker.task is None} - {""}
        taken = {worker.family for worker in self.workers} - {""}
        own = (task for task in waiting if task.family in idle)
        free = (task for task in waiting if task.family not in taken)
        task = next(own, None) or next(free, waiting[0])
        waiting.remove(task)
        return task

    def submit(self, task: Work) -> None:
        """Give the task to an idle worker, or to a new one if all are busy."""
        idle = [worker for worker in self.workers if worker.task is None]
        idle.sort(key=lambda worker: worker.family != task.family)
        worker = idle[0] if idle else self._start()
        worker.task, worker.family = task, task.family
        sent = task if worker.device is None else task.on(worker.device)
        # If the worker is dead, `next` notices and gives the task to another one.
        with suppress(OSError):
            worker.connection.send(sent)

    def next(self, seconds: float) -> WorkOutcome | None:
        """The outcome of a run; a run whose worker died is submitted again."""
        while self._retries:
            self.submit(self._retries.popleft())
        if not self._outcomes:
            busy = [worker for worker in self.workers if worker.task is not None]
            for ready in wait([worker.connection for worker in busy], timeout=seconds):
                self._receive(next(worker for worker in busy if worker.connection is ready))
        return self._outcomes.popleft() if self._outcomes else None

    def close(self) -> None:
        """Stop the workers and release their claims; idle ones exit when disconnected."""
        for worker in self.workers:
            if worker.task is None:
                worker.connection.close()
            else:
                worker.process.kill()
        for worker in self.workers:
            self._reap(worker)
        self.workers = []
        if self._daemon is not None:
            self._daemon.close()
            self._daemon = None

    def _start(self) -> Worker:
        context = get_context("spawn")
        assigned = [worker.device for worker in self.workers]
        devices = [f"cuda:{number}" for number in range(self.gpus)]
        # Otherwise the first start would launch the resource tracker and unblock Ctrl-C again.
        ensure_running()
        with without_interrupts():  # a half-started worker would be left behind
            ours, theirs = context.Pipe()
            # A worker may not end with a thread that submits a run and then ends.
            by_main = threading.current_thread() is threading.main_thread()
            arguments = (theirs, os.getpid(), by_main)
            process = context.Process(target=work, args=arguments, daemon=True)
            process.start()
            theirs.close()  # so that the connection ends when the worker dies
            worker = Worker(process, ours, min(devices, key=assigned.count) if devices else None)
            self.workers.append(worker)
        return worker

    def _receive(self, worker: Worker) -> None:
        """Receive an outcome. If the connection has ended, the worker is dead: retry its run."""
        task = worker.task
        assert task is not None
        try:
            outcome: WorkOutcome = worker.connection.recv()
        except (EOFError, OSError):
            self._reap(worker)
            self.workers.remove(worker)
            self._deaths[task.name] = self._deaths.get(task.name, 0) + 1
            if self._deaths[task.name] < ATTEMPTS:
                self._retries.append(task)
                return
            message = (
                f"its process died {ATTEMPTS} times (last exit code {worker.process.exitcode}; -9 "
                "often means that memory ran out: use fewer --workers)"
            )
            outcome = WorkOutcome(task.name, "failed", message)
        worker.task = None
        self._outcomes.append(outcome)

    def _reap(self, worker: Worker) -> None:
        """End the process and release its claim."""
        worker.process.join(SECONDS_TO_END)
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        if worker.task is not None and worker.process.pid is not None:
            release(worker.task.folder.path, pid=worker.process.pid)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block. A process started inside ignores it from the start.

    A new process inherits the blocked signal. Here blocking affects the current thread only:
    another thread may receive the signal, and Python would then still interrupt this one.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    received: list[int] = []
    # Python interrupts the main thread, and only that thread may set a handler.
    main = threading.current_thread() is threading.main_thread()
    previous = (
        signal.signal(signal.SIGINT, lambda number, _: received.append(number)) if main else None
    )
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if main:
            signal.signal(signal.SIGINT, previous or signal.SIG_DFL)
        if received:
            signal.raise_signal(signal.SIGINT)


def work(connection: Connection, parent: int, by_main: bool) -> None:
    """A worker's loop: tasks in, outcomes out; `by_main`: the parent's main thread started it."""
    # Ctrl-C is for the command, which then stops its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if by_main:
        killed_with_parent()
    die_with_parent(parent)
    # The workers share the cores, so each compiles without a pool of helper processes.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    import torch

    torch.set_num_threads(1)
    beginnings = Beginnings()
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(carry_out_work(task, beginnings=beginnings))
