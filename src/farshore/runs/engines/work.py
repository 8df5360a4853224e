"""How a worker carries out one run: claim it, start or resume it, write the result, release it."""

import json
import os
import shutil
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from ...base.files import append_line, reason, remove_temporary, write_inside
from ...errors import FarshoreError, StateError
from ...loggers import make_logger
from ...observer import Observer
from ..beginnings import Beginnings
from ..plan.plan import Planned
from ..protocol import execute
from ..result import Matrix, Result
from ..resume import Resume, is_litter
from ..search.optuna_search import promising, seen_scores
from ..store.claim import Claim, ClaimLostError, take
from ..store.store import WRITTEN, RunFolder
from .features import feature_saver

# Domains that took less time than this in total are learned again rather than saved, because
# writing their state would cost more. The environment sets another value for worker processes.
LEAST_SECONDS = float(os.environ.get("FARSHORE_STATE_SECONDS", "1"))
TaskStatus = Literal["done", "diverged", "pruned", "claimed", "failed"]


@dataclass(frozen=True)
class Keep:
    """What is kept of a run in addition to its result.

    states: the state after every domain.
    model: the trained model.
    resumable: save the state between domains while the run is in progress.
    log: the name of a logger, which writes into RUNS/logs.
    """

    states: bool = False
    model: bool = False
    resumable: bool = True
    log: str | None = None


RESULT_ONLY = Keep()


@dataclass(frozen=True)
class Work:
    """A planned run, the folder of runs to write to, and what is recorded beside it."""

    planned: Planned
    runs: str
    keep: Keep = RESULT_ONLY
    config: Mapping[str, Any] = field(default_factory=dict)
    # The runs of a family begin alike; empty if there is no other one to carry out.
    family: str = ""

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.planned.name

    @property
    def folder(self) -> RunFolder:
        """The folder of the run."""
        return RunFolder(Path(self.runs) / self.name)

    def on(self, device: str) -> "Work":
        """The same task on another device."""
        return replace(self, planned=replace(self.planned, named=self.planned.named.on(device)))


@dataclass(frozen=True)
class WorkOutcome:
    """How a task ended.

    `claimed`: another process has claimed the run. `failed`: the message gives the reason; running
    the same command again retries it.
    """

    name: str
    status: TaskStatus
    message: str = ""
    seconds: float = 0.0
    # The traceback of an unexpected error.
    trace: str = ""
    # The result of a finished run that could not be written, for example because the disk is full.
    unwritten: Result | None = None


class UnwrittenError(StateError):
    """A run is finished, but its result could not be written."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class Lines(Observer):
    """Writes one line per finished domain, and stops a run that another process took over."""

    def __init__(self, folder: RunFolder, claim: Claim) -> None:
        self.folder = folder
        self.claim = claim

    def note(self, text: str) -> None:
        """Write a note."""
        self._write({"note": text})

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        """Stop between two steps if the claim is lost."""
        self.claim.check()

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        """Write the scores after a domain."""
        self.claim.check()
        self._write({"learned": domain, "scores": dict(scores)})

    def _write(self, line: dict[str, Any]) -> None:
        # These lines are for people: a full disk must not cost the run.
        with suppress(OSError):
            append_line(self.folder.progress, json.dumps({"at": round(time.time(), 3), **line}))


class Together(Observer):
    """Several observers as one; each receives every event, in this order."""

    def __init__(self, *observers: Observer) -> None:

        def tell(name: str, *event: Any) -> None:
            for each in observers:
                getattr(each, name)(*event)

        for name in ("note", "start", "step", "domain"):
            setattr(self, name, partial(tell, name))


def carry_out_work(
    task: Work, observer: Observer | None = None, beginnings: Beginnings | None = None
) -> WorkOutcome:
    """Carry out one run, watched by `observer`; every error but Ctrl-C becomes an outcome."""
    began = time.perf_counter()
    folder = task.folder
    try:
        claim = take(folder.path)
        if claim is None:
            return WorkOutcome(task.name, "claimed")
        with claim:
            status, message = _finish(task, folder, claim, observer, beginnings)
    except UnwrittenError as error:
        return replace(_failed(task, str(error), began), unwritten=error.result)
    except ClaimLostError:
        return WorkOutcome(task.name, "claimed")
    except FarshoreError as error:
        return _failed(task, str(error), began)
    except OSError as error:
        return _failed(task, f"{error.filename or folder.path}: {reason(error)}", began)
    except Exception as error:
        return _failed(task, f"{type(error).__name__}: {error}", began, traceback.format_exc())
    return WorkOutcome(task.name, status, message, time.perf_counter() - began)


def _finish(
    task: Work,
    folder: RunFolder,
    claim: Claim,
    observer: Observer | None,
    beginnings: Beginnings | None,
) -> tuple[TaskStatus, str]:
    """The status of a claimed run, which is carried out unless it has a result."""
    planned, run, keep = task.planned, task.planned.run, task.keep
    # Another process may have finished it since the plan was made.
    if folder.finished(features=planned.features):
        existing = folder.read()
        tidy(folder)
        return existing.status, existing.message
    named_by = dict(planned.named.described)
    folder.write_config({"run": run.model_dump(mode="json"), "named_by": named_by, **task.config})
    resume = Resume(folder.stages, keep=keep.states, least_seconds=LEAST_SECONDS)

    def is_promising(matrix: Matrix) -> bool:
        return promising(planned.earlier, seen_scores(matrix))

    watching: list[Observer] = [Lines(folder, claim), *([observer] if observer is not None else [])]
    logger = make_logger(keep.log, log_folder(task.runs, keep.log), task.name) if keep.log else None
    try:
        result = execute(
            run,
            normal=True,
            observer=Together(*watching, *([logger] if logger is not None else [])),
            save_model=folder.model if keep.model else None,
            resume=resume if keep.resumable else None,
            opened=feature_saver(folder.features) if planned.features else None,
            promising=is_promising if run.halving else None,
            beginnings=beginnings if task.family else None,
        )
    except BaseException:
        if logger is not None:
            logger.close()
        raise
    claim.check()
    try:
        folder.write(result)
    except StateError as error:
        raise UnwrittenError(str(error), result) from error
    tidy(folder)
    if keep.resumable:
        resume.clear()
    if logger is not None:  # at the end: a log that cannot be written must not cost the result
        logger.finish(result)
    return result.status, result.message


def log_folder(runs: str | Path, log: str) -> Path:
    """The folder into which a logger writes the runs of a store."""
    return Path(runs) / "logs" / log


def tidy(folder: RunFolder) -> None:
    """Delete what a finished run no longer needs, also what killed attempts left of it."""
    with suppress(OSError):
        folder.failure.unlink(missing_ok=True)
    remove_temporary(folder.path, WRITTEN)
    if folder.stages.is_dir() and is_litter(folder.stages):
        shutil.rmtree(folder.stages, ignore_errors=True)


def _failed(task: Work, message: str, began: float, trace: str = "") -> WorkOutcome:
    """Record a failure in the run's folder if the disk permits; it does not count as a result."""
    with suppress(FarshoreError):
        write_inside(Path(task.runs), task.folder.failure, f"{message}\n{trace}".encode())
    return WorkOutcome(task.name, "failed", message, time.perf_counter() - began, trace)
