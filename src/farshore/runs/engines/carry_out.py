"""Carry out a plan. Every command that trains for measurement comes through here.

Finished runs are left alone, damaged ones are repeated, and runs of other processes are awaited.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...base.origin import commit, versions
from ...errors import StateError
from ..beginnings import family
from ..plan.plan import Plan, Planned
from ..store.claim import is_stale, remove_litter
from ..store.store import Store
from .engine import Engine
from .work import RESULT_ONLY, Keep, Work, WorkOutcome, tidy

POLL_SECONDS = 1.0


@dataclass
class Progress:
    """The progress of a plan.

    total: the most runs there can be; equal trials of a study turn out to be one run.
    already_done: results that existed at the start.
    done: all results, including those of diverged and pruned runs.
    """

    total: int
    already_done: int = 0
    done: int = 0
    diverged: int = 0
    pruned: int = 0
    running: int = 0
    slots: int = 1
    # The runs in progress, and whether others are carried out by another process.
    current: list[Planned] = field(default_factory=list)
    elsewhere: bool = False
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float | None:
        """The estimate by the pace so far; None until the first run has ended."""
        finished = self.done - self.already_done
        if not finished:
            return None
        remaining = self.total - self.done - len(self.failures)
        return (time.monotonic() - self.began) / finished * remaining


# Called after every run with its outcome; with None when runs start, and regularly while waiting.
ReportProgress = Callable[[Planned | None, WorkOutcome | None, Progress], None]


def open_runs(
    plan: Plan, store: Store, *, discard: bool = True
) -> tuple[dict[str, Planned], list[str]]:
    """Runs without a valid result, and messages of damaged ones, which `discard` deletes."""
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
    if discard:
        tidy(folder)
        remove_litter(folder.path)
    return False


def carry_out(
    plan: Plan,
    store: Store,
    engine: Engine,
    *,
    todo: Mapping[str, Planned],
    keep: Keep = RESULT_ONLY,
    report: ReportProgress | None = None,
) -> Progress:
    """Carry out `todo`, and what follows from it; a failure is reported, others continue."""
    names = set(plan.unique())
    known = dict(todo)
    done = len(names) - len(todo)
    progress = Progress(len(names) + plan.ahead, already_done=done, done=done, slots=engine.slots)
    config = {"commit": commit(), "versions": versions()}
    runs_folder = str(store.runs.resolve())

    def tasks(runs: Sequence[Planned]) -> Iterator[Work]:
        for planned, of_family in in_families(runs):
            position = {name: getattr(planned, name) for name in ("seed", "trial", "held_out")}
            position = {"experiment": plan.name, **position} if plan.name else {}
            yield Work(planned, runs_folder, keep, {**config, "planned": position}, of_family)

    queue = deque(tasks(list(todo.values())))
    elsewhere: deque[Work] = deque()  # claimed by another process
    running: dict[str, Work] = {}
    last_check = time.monotonic()
    while (queue or elsewhere or running) and not plan.over(engine.slots):
        started = False
        while queue and engine.free > 0:
            task = engine.choose(queue)
            running[task.name] = task
            engine.submit(task)
            started = True
        progress.running, progress.elsewhere = len(running), bool(elsewhere)
        progress.current = [known[name] for name in running]
        if started and report is not None:
            report(None, None, progress)
        outcome = engine.next(POLL_SECONDS) if running else None
        if outcome is not None:
            task = running.pop(outcome.name)
            outcome = _written(outcome, task)
            if outcome.status == "claimed":
                elsewhere.append(task)
            else:
                _count(progress, outcome, task, len(running))
                following = _follow(plan, store, outcome, names, progress)
                known |= {planned.name: planned for planned in following}
                queue.extend(tasks(following))
                if report is not None:
                    report(known[outcome.name], outcome, progress)
        elif not running and elsewhere:
            time.sleep(POLL_SECONDS)
        if elsewhere and time.monotonic() - last_check >= POLL_SECONDS:
            last_check = time.monotonic()
            for _ in range(len(elsewhere)):  # runs of others that are finished or abandoned
                task = elsewhere.popleft()
                finished = task.folder.finished(features=task.planned.features)
                (queue if finished or is_stale(task.folder.path) else elsewhere).append(task)
            if report is not None:
                report(None, None, progress)
    return progress


def in_families(runs: Sequence[Planned]) -> list[tuple[Planned, str]]:
    """The runs, those that begin alike one after another, with the family if it has several."""
    families = [family(planned.run) for planned in runs]
    members: dict[str, list[Planned]] = {}
    for number, (name, planned) in enumerate(zip(families, runs, strict=True)):
        members.setdefault(name or str(number), []).append(planned)
    groups = [(name if len(alike) > 1 else "", alike) for name, alike in members.items()]
    return [(planned, name) for name, alike in groups for planned in alike]


def _written(outcome: WorkOutcome, task: Work) -> WorkOutcome:
    """Write a result that the worker could not: its disk may have space again."""
    if outcome.unwritten is None:
        return outcome
    try:
        task.folder.write(outcome.unwritten)
    except StateError:
        return outcome
    tidy(task.folder)
    written = outcome.unwritten
    return WorkOutcome(outcome.name, written.status, written.message, outcome.seconds)


def _count(progress: Progress, outcome: WorkOutcome, task: Work, running: int) -> None:
    progress.running = running
    if outcome.status == "failed":
        what = f"{task.planned.run.method} on {task.planned.run.benchmark}"
        progress.failures.append(f"run {task.name} ({what}): {outcome.message}")
    else:
        progress.done += 1
        progress.diverged += outcome.status == "diverged"
        progress.pruned += outcome.status == "pruned"


def _follow(
    plan: Plan, store: Store, outcome: WorkOutcome, names: set[str], progress: Progress
) -> list[Planned]:
    """The open runs that studies add; after a failure a study waits for the next command."""
    new_runs = plan.follow(outcome.name, store) if outcome.status != "failed" else []
    to_do = []
    for planned in new_runs:
        if planned.name in names:
            continue
        names.add(planned.name)
        if _is_open(planned, store, [], discard=True):
            to_do.append(planned)
        else:
            progress.already_done += 1
            progress.done += 1
    progress.total = len(names) + plan.ahead
    return to_do
