"""Claims: which process carries out a run, so that several sweeps can share a folder of runs.

A claim is a file `claim-N` that only one process can create. It names host and process, and its
modification time is the heartbeat. If its owner is gone, any process may create `claim-N+1`; again
only one succeeds. The highest number owns the run. A run is thus never without an owner during a
take-over, and an owner that was merely suspended notices that it has lost the run.
"""

import ctypes
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...base.files import TEMPORARY_END, read_file, refuse_links, temporary_path
from ...base.lock import is_running
from ...errors import FarshoreError

BEAT_SECONDS = 2.0
STALE_SECONDS = 120.0
# From Linux's <sys/prctl.h>: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1
# Heartbeats in the future, and when this process saw them first.
_ahead: dict[tuple[Path, float], float] = {}


class ClaimLostError(FarshoreError):
    """Another process took over the run because this one showed no heartbeat."""


class Claim:
    """This process carries out the run in `folder`.

    A context manager: the heartbeat runs inside it.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.number = number
        self.path = folder / f"claim-{number}"
        self.lost = threading.Event()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Claim":
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._heart.join()
        if not self.lost.is_set():
            release(self.folder)

    def check(self) -> None:
        """Raise if another process owns the run by now."""
        if self.lost.is_set():
            raise ClaimLostError(
                f"{self.folder} was taken over by another process, because this one showed no "
                "heartbeat"
            )

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                os.utime(self.path)
                lost = newest(self.folder) != self.number
            except FileNotFoundError:
                lost = True
            except OSError:
                # a temporary error of the file system is no reason to give up a run
                continue
            if lost:
                self.lost.set()
                return


def take(folder: Path, *, stale_seconds: float = STALE_SECONDS) -> Claim | None:
    """Claim the run in `folder`; None if a live process has claimed it."""
    refuse_links(folder)
    folder.mkdir(parents=True, exist_ok=True)
    number = newest(folder)
    if number is not None and not is_stale(folder, stale_seconds=stale_seconds):
        return None
    claim = Claim(folder, 0 if number is None else number + 1)
    return claim if _create(claim.path) else None


def newest(folder: Path) -> int | None:
    """The number of the valid claim, if there is one."""
    numbers = [int(path.name[6:]) for path in folder.glob("claim-*") if path.name[6:].isdigit()]
    return max(numbers, default=None)


def is_stale(folder: Path, *, stale_seconds: float = STALE_SECONDS) -> bool:
    """Whether no process carries out the run.

    There is no claim, its owner on this machine is gone, or its heartbeat has stopped.
    """
    number = newest(folder)
    if number is None:
        return True
    path = folder / f"claim-{number}"
    try:
        owner = json.loads(read_file(path))
        if owner["host"] == socket.gethostname() and not _alive(int(owner["pid"]), owner["began"]):
            return True
    except (OSError, KeyError, TypeError, ValueError):
        pass  # unreadable: its age decides
    try:
        return _silence(path) > stale_seconds
    except FileNotFoundError:
        return True


def _silence(path: Path) -> float:
    """For how many seconds a claim has shown no heartbeat.

    After a clock was set back, a heartbeat may be in the future: then, how long it has not moved
    since this process saw it first.
    """
    beat = path.stat().st_mtime
    seconds = _now(path.parent) - beat
    if seconds >= 0:
        return seconds
    return time.monotonic() - _ahead.setdefault((path, beat), time.monotonic())


def release(folder: Path, *, pid: int | None = None) -> None:
    """Release the run; with `pid`, only if that process on this machine has claimed it.

    The newest claim is deleted last.
    """
    number = newest(folder)
    if number is None:
        return
    if pid is not None:
        try:
            owner = json.loads(read_file(folder / f"claim-{number}"))
        except (OSError, ValueError):
            return
        if owner.get("pid") != pid or owner.get("host") != socket.gethostname():
            return
    for claim_number in range(number + 1):
        (folder / f"claim-{claim_number}").unlink(missing_ok=True)


def _create(path: Path) -> bool:
    """Create the file with its contents atomically; False if it exists already."""
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "began": _began(os.getpid())}
    temporary = temporary_path(path)
    try:
        with open(temporary, "x") as file:
            file.write(json.dumps(owner))
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)


def _alive(pid: int, began: str) -> bool:
    """Whether the process runs and is the same one: process numbers are reused."""
    actual = _began(pid)
    return is_running(pid) and (not actual or not began or actual == began)


def _began(pid: int) -> str:
    """When the process started, in clock ticks of the kernel.

    Empty if the system does not provide it; `gone` for a process that has ended but still waits
    for its parent (a zombie).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "gone" if fields[0] in ("Z", "X") else fields[19]


def _now(folder: Path) -> float:
    """The time by the clock of the folder's file system, so that machines need not agree.

    If nothing can be written there, the time by the clock of this machine.
    """
    probe = temporary_path(folder / "clock")
    try:
        probe.touch(exist_ok=False)
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def remove_litter(folder: Path) -> None:
    """Delete the claims of dead processes, and old files of processes killed while they claimed.

    For a run that is finished. Errors are ignored.
    """
    pattern = re.compile(rf"\.(?:claim-\d+|clock){TEMPORARY_END}")
    with suppress(OSError):
        if newest(folder) is not None and is_stale(folder):
            release(folder)
        for path in folder.iterdir():
            if pattern.fullmatch(path.name) and time.time() - path.stat().st_mtime > STALE_SECONDS:
                path.unlink(missing_ok=True)


def die_with_parent(
    parent: int, *, seconds: float = 0.5, end: Callable[[int], object] = os._exit
) -> None:
    """Exit when the parent process is gone: a killed sweep leaves no workers behind."""

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(seconds)
        end(1)

    threading.Thread(target=watch, daemon=True).start()


def killed_with_parent() -> None:
    """Ask Linux to kill this process when the thread that started it ends.

    Unlike `die_with_parent`, this works even while no Python code gets a turn. Elsewhere it does
    nothing.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
