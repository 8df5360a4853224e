"""Claims: who carries out a run. Two sweeps, on one machine or on several, may share a folder of
runs.

A claim is a file `claim-N` that only one process can make. It says host and process, and its time
of change is the heartbeat. If its owner is gone, anybody may make `claim-N+1`; again only one can.
The highest number owns the run, so a take-over needs no moment without an owner, and an owner that
was only asleep finds out that it lost the run.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ..errors import FarshoreError

BEAT_SECONDS = 2.0
STALE_SECONDS = 120.0


class ClaimLostError(FarshoreError):
    """Another process took the run over, because this one gave no sign of life."""


class Claim:
    """This process carries out the run in `folder`. Use it as a context: a heartbeat goes on
    inside.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.number = number
        self.path = folder / f"claim-{number}"
        self.lost = threading.Event()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Claim:
        self._heart.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._heart.join()
        if not self.lost.is_set():
            release(self.folder)

    def check(self) -> None:
        """Stop if the run belongs to somebody else by now."""
        if self.lost.is_set():
            raise ClaimLostError(
                f"{self.folder} was taken over by another process, since this one gave no sign "
                "of life"
            )

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                os.utime(self.path)
                lost = newest(self.folder) != self.number
            except FileNotFoundError:
                lost = True
            except OSError:
                # a file system that answers badly for a moment is no reason to give a run up
                continue
            if lost:
                self.lost.set()
                return


def take(folder: Path, *, stale_seconds: float = STALE_SECONDS) -> Claim | None:
    """The claim on `folder`, or None if a living process has it."""
    folder.mkdir(parents=True, exist_ok=True)
    number = newest(folder)
    if number is not None and not is_stale(folder, stale_seconds=stale_seconds):
        return None
    claim = Claim(folder, 0 if number is None else number + 1)
    return claim if _make(claim.path) else None


def newest(folder: Path) -> int | None:
    """The number of the claim that holds, if there is one."""
    numbers = [int(path.name[6:]) for path in folder.glob("claim-*") if path.name[6:].isdigit()]
    return max(numbers, default=None)


def is_stale(folder: Path, *, stale_seconds: float = STALE_SECONDS) -> bool:
    """Whether nobody carries out the run: no claim, an owner on this machine that is gone, or
    one without a heartbeat.
    """
    number = newest(folder)
    if number is None:
        return True
    path = folder / f"claim-{number}"
    try:
        owner = json.loads(path.read_bytes())
        if owner["host"] == socket.gethostname() and not _alive(int(owner["pid"]), owner["began"]):
            return True
    except (OSError, KeyError, TypeError, ValueError):
        pass  # unreadable: its age decides
    try:
        return _now(folder) - path.stat().st_mtime > stale_seconds
    except FileNotFoundError:
        return True


def release(folder: Path, *, pid: int | None = None) -> None:
    """Give the run back; with `pid` only if that process of this machine has it. The newest
    claim goes last.
    """
    number = newest(folder)
    if number is None:
        return
    if pid is not None:
        try:
            owner = json.loads((folder / f"claim-{number}").read_bytes())
        except (OSError, ValueError):
            return
        if owner.get("pid") != pid or owner.get("host") != socket.gethostname():
            return
    for each in range(number + 1):
        (folder / f"claim-{each}").unlink(missing_ok=True)


def _make(path: Path) -> bool:
    """Make the file with its contents in one act; False if somebody else was first."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    beside.write_text(
        json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "began": _began(os.getpid())})
    )
    try:
        os.link(beside, path)
        return True
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)


def _alive(pid: int, began: str) -> bool:
    """Whether the process runs, and is the same one: numbers of processes are used again."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    now = _began(pid)
    return not now or not began or now == began


def _began(pid: int) -> str:
    """When the process began, in the kernel's count; empty where the system does not say, `gone`
    for one that only waits to be buried.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "gone" if fields[0] in ("Z", "X") else fields[19]


def _now(folder: Path) -> float:
    """The time by the clock of the disk that holds the folder, so that machines need not agree."""
    probe = folder / f".clock.{uuid.uuid4().hex[:8]}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def die_with_parent(
    parent: int, *, seconds: float = 0.5, end: Callable[[int], object] = os._exit
) -> None:
    """Watch the process that started this one, and end when it is gone: a killed sweep leaves no
    workers behind.
    """

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(seconds)
        end(1)

    threading.Thread(target=watch, daemon=True).start()
