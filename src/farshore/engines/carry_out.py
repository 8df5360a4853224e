"""Carry out a plan: what is done is left alone, what is damaged is repeated, what another process
is doing is waited for. Every command that trains for measurement comes through here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import StateError
from ..origin import commit, versions
from ..plan.plan import Plan, Planned
from ..store.claim import is_stale
from ..store.store import Store
from .engine import Engine
from .work import Outcome, Task

POLL_SECONDS = 1.0


@dataclass
class Progress:
    """How far a plan is. `done` counts results, diverged and pruned ones too; `found` of them
    were there before.

    `total` is the most that it can become: trials of a study that turn out to be the same are one
    run.
    """

    total: int
    found: int = 0
    done: int = 0
    diverged: int = 0
    pruned: int = 0
    running: int = 0
    slots: int = 1
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float | None:
        """By the pace so far; None before the first run has ended."""
        made = self.done - self.found
        return (
            (time.monotonic() - self.began) / made * (self.total - self.done - len(self.failures))
            if made
            else None
        )


# Called after every run, with what became of it, and now and then with None.
Report = Callable[[Planned | None, Outcome | None, Progress], None]


def open_runs(
    plan: Plan, store: Store, *, discard: bool = True
) -> tuple[dict[str, Planned], list[str]]:
    """What has no whole result yet, and the damaged results by name; with `discard` those are
    deleted, so that they are repeated.
    """
    todo: dict[str, Planned] = {}
    damaged: list[str] = []
    for name, planned in plan.unique().items():
        if _is_open(planned, store, damaged, discard):
            todo[name] = planned
    return todo, damaged


def _is_open(planned: Planned, store: Store, damaged: list[str], discard: bool) -> bool:
    folder = store.folder(planned.name)
    if not folder.finished(features=planned.features):
        return True
    try:
        folder.read()
    except StateError as error:
        damaged.append(str(error))
        if discard:
            folder.discard_result()
        return True
    return False


@dataclass(frozen=True)
class Keep:
    """What stays of a run beside its result: the state after every domain, the trained model; and
    whether its state is saved on the way, so that it can be resumed.
    """

    states: bool = False
    model: bool = False
    resumable: bool = True


RESULT_ONLY = Keep()


def carry_out(
    plan: Plan,
    store: Store,
    engine: Engine,
    *,
    todo: Mapping[str, Planned],
    keep: Keep = RESULT_ONLY,
    report: Report | None = None,
) -> Progress:
    """Carry out `todo`, the open runs of the plan, and what follows from them. One bad run is
    counted and named, and ends no other.
    """
    names = set(plan.unique())
    known = dict(todo)
    there = len(names) - len(todo)
    progress = Progress(len(names) + plan.ahead, found=there, done=there, slots=engine.slots)
    config = {"commit": commit(), "versions": versions()}
    queue = deque(_task(planned, store, keep, config, plan.name) for planned in todo.values())
    elsewhere: deque[Task] = deque()  # claimed by another process
    running: dict[str, Task] = {}
    looked = time.monotonic()
    while queue or elsewhere or running:
        while queue and engine.free > 0:
            task = queue.popleft()
            running[task.name] = task
            engine.submit(task)
        progress.running = len(running)
        outcome = engine.next(POLL_SECONDS) if running else None
        if outcome is not None:
            task = running.pop(outcome.name)
            if outcome.status == "claimed":
                elsewhere.append(task)
            else:
                _count(progress, outcome, task, len(running))
                for planned in _follow(plan, store, outcome, names, progress):
                    known[planned.name] = planned
                    queue.append(_task(planned, store, keep, config, plan.name))
                if report is not None:
                    report(known[outcome.name], outcome, progress)
        elif not running and elsewhere:
            time.sleep(POLL_SECONDS)
        if elsewhere and time.monotonic() - looked >= POLL_SECONDS:
            looked = time.monotonic()
            _look(elsewhere, queue)
            if report is not None:
                report(None, None, progress)
    return progress


def _task(
    planned: Planned, store: Store, keep: Keep, config: Mapping[str, object], experiment: str
) -> Task:
    position = {
        "experiment": experiment,
        "seed": planned.seed,
        "trial": planned.trial,
        "held_out": planned.held_out,
    }
    return Task(
        planned.name,
        planned.run,
        str(store.runs.resolve()),
        features=planned.features,
        keep_states=keep.states,
        save_model=keep.model,
        resumable=keep.resumable,
        config={**config, "planned": position if experiment else {}},
        earlier=planned.earlier,
    )


def _count(progress: Progress, outcome: Outcome, task: Task, running: int) -> None:
    progress.running = running
    if outcome.status == "failed":
        of = f"{task.run.method} on {task.run.benchmark}"
        progress.failures.append(f"run {task.name} ({of}): {outcome.message}")
    else:
        progress.done += 1
        progress.diverged += outcome.status == "diverged"
        progress.pruned += outcome.status == "pruned"


def _follow(
    plan: Plan, store: Store, outcome: Outcome, names: set[str], progress: Progress
) -> list[Planned]:
    """What this outcome lets a study draw and nobody has done yet. After a failure its study
    waits for the next time.
    """
    fresh = plan.follow(outcome.name, store) if outcome.status != "failed" else []
    to_do = []
    for planned in fresh:
        if planned.name in names:
            continue
        names.add(planned.name)
        if _is_open(planned, store, [], discard=True):
            to_do.append(planned)
        else:
            progress.found, progress.done = progress.found + 1, progress.done + 1
    progress.total = len(names) + plan.ahead
    return to_do


def _look(elsewhere: deque[Task], queue: deque[Task]) -> None:
    """Runs of other processes that are finished, or given up, come back into the queue; a worker
    finds out which it is.
    """
    for _ in range(len(elsewhere)):
        task = elsewhere.popleft()
        back = task.folder.finished(features=task.features) or is_stale(task.folder.path)
        (queue if back else elsewhere).append(task)
