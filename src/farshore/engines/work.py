"""What a worker does with one run: claim it, carry it out or go on with it, write the result,
give the claim back.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from ..errors import FarshoreError, StateError
from ..observer import Observer
from ..protocol import Run, execute
from ..resume import Resume
from ..search.optuna_search import promising, seen_scores
from ..store.claim import Claim, ClaimLostError, take
from ..store.folder import RunFolder
from ..store.identity import description
from .features import feature_saver

# Domains that took less together are learned again rather than saved: writing their state would
# cost more. Workers are processes of their own, so another number comes to them through the
# environment.
LEAST_SECONDS = float(os.environ.get("FARSHORE_STATE_SECONDS", "1"))
Status = Literal["done", "diverged", "pruned", "claimed", "failed"]


@dataclass(frozen=True)
class Task:
    """A run to carry out, and where. `config` is recorded beside it and decides nothing.

    earlier: in a search by successive halving, the scores of the trials before, which this one must
    keep up with.
    resumable: whether the state is saved between domains; a store that is deleted at the end needs
    none.
    """

    name: str
    run: Run
    runs: str
    features: bool = False
    keep_states: bool = False
    save_model: bool = False
    resumable: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    earlier: tuple[tuple[float, ...], ...] = ()

    @property
    def folder(self) -> RunFolder:
        """Where the run lies."""
        return RunFolder(Path(self.runs) / self.name)


@dataclass(frozen=True)
class Outcome:
    """What became of a task. `claimed`: another process has it; `failed`: the message says why,
    and the same command tries again.
    """

    name: str
    status: Status
    message: str = ""
    seconds: float = 0.0
    # Of an error that nobody foresaw.
    trace: str = ""


class Lines(Observer):
    """Writes one line per finished domain, and stops a run that was taken over."""

    def __init__(self, folder: RunFolder, claim: Claim) -> None:
        self.folder = folder
        self.claim = claim

    def note(self, text: str) -> None:
        """A note about the data."""
        self._write({"note": text})

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        """Between two steps a run can be given up."""
        self.claim.check()

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        """The scores after a domain."""
        self.claim.check()
        self._write({"learned": domain, "scores": dict(scores)})

    def _write(self, line: dict[str, Any]) -> None:
        try:
            with open(self.folder.progress, "a") as file:
                file.write(json.dumps({"at": round(time.time(), 3), **line}) + "\n")
        except OSError as error:
            raise StateError(
                f"could not write {self.folder.progress}: {error.strerror or error}"
            ) from error


class Together(Observer):
    """Several observers as one; each hears everything, in this order."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers

    def note(self, text: str) -> None:
        """Handed on."""
        for observer in self.observers:
            observer.note(text)

    def start(self, domain: str, steps: int) -> None:
        """Handed on."""
        for observer in self.observers:
            observer.start(domain, steps)

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        """Handed on."""
        for observer in self.observers:
            observer.step(domain, step, terms)

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        """Handed on."""
        for observer in self.observers:
            observer.domain(domain, scores)


def carry_out_task(task: Task, observer: Observer | None = None) -> Outcome:
    """Carry out one run; `observer` sees it live. Whatever goes wrong with the run becomes an
    outcome, so that one bad run ends no other; Ctrl-C passes through.
    """
    began = time.perf_counter()
    folder = task.folder
    try:
        claim = take(folder.path)
        if claim is None:
            return Outcome(task.name, "claimed")
        with claim:
            status, message = _finish(task, folder, claim, observer)
    except ClaimLostError:
        return Outcome(task.name, "claimed")
    except FarshoreError as error:
        return _failed(task, str(error), began)
    except OSError as error:
        return _failed(task, f"{error.filename or folder.path}: {error.strerror or error}", began)
    except Exception as error:
        return _failed(task, f"{type(error).__name__}: {error}", began, traceback.format_exc())
    return Outcome(task.name, status, message, time.perf_counter() - began)


def _finish(
    task: Task, folder: RunFolder, claim: Claim, observer: Observer | None
) -> tuple[Status, str]:
    """The result of a claimed run: one that is there already, or a new one."""
    # Somebody may have finished it between the plan and the claim.
    if folder.finished(features=task.features):
        there = folder.read()
        return there.status, there.message
    folder.write_config(
        {"run": task.run.model_dump(mode="json"), "named_by": description(task.run), **task.config}
    )
    stages = (
        Resume(folder.stages, keep=task.keep_states, least_seconds=LEAST_SECONDS)
        if task.resumable
        else None
    )
    opened = feature_saver(folder.features) if task.features else None
    keeps_up = (
        (lambda matrix: promising(task.earlier, seen_scores(matrix))) if task.run.halving else None
    )
    lines = Lines(folder, claim)
    result = execute(
        task.run,
        observer=lines if observer is None else Together(lines, observer),
        save_model=folder.model if task.save_model else None,
        resume=stages,
        opened=opened,
        promising=keeps_up,
    )
    claim.check()
    folder.write(result)
    if stages is not None:
        stages.clear()
    folder.failure.unlink(missing_ok=True)
    return result.status, result.message


def _failed(task: Task, message: str, began: float, trace: str = "") -> Outcome:
    """A failure is written down where the run lies, if the disk lets us; it is no result."""
    with suppress(OSError):
        task.folder.failure.write_text(f"{message}\n{trace}")
    return Outcome(task.name, "failed", message, time.perf_counter() - began, trace)
