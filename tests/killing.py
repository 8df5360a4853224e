"""Kill a command at a chosen moment: before its n-th change of the disk, or after some seconds.

Run as a script, this file is a server: it imports Farshore once and forks for every command, so
that a kill costs no start of an interpreter. The moments are counted by an audit hook, which Python
calls before every change of a file: nothing in the product takes part.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve()
# Read by sitecustomize.py in `killed_workers`, which every worker process imports at its start.
WORKER_MOMENT = "KILL_A_WORKER"
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.truncate"}


def before_every_change(folder: str, act: Callable[[], None]) -> None:
    """Call `act` before this process changes anything on disk inside `folder`."""

    def inside(path: object, descriptor: object = -1) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        text = os.fsdecode(path)
        if isinstance(descriptor, int) and descriptor >= 0:
            text = os.path.join(os.readlink(f"/proc/self/fd/{descriptor}"), text)
        return os.path.abspath(text).startswith(folder + os.sep) or text == folder

    def hook(event: str, details: tuple[Any, ...]) -> None:
        if event == "open":
            changes = isinstance(details[2], int) and bool(details[2] & WRITING)
            if changes and inside(details[0]):
                act()
        elif event in CHANGES and inside(details[0], details[1] if event == "os.remove" else -1):
            act()

    sys.addaudithook(hook)


def alive(group: int) -> list[int]:
    """The running processes of a group, without zombies."""
    running = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] not in ("Z", "X"):
                running.append(int(path.parent.name))
    return running


def count_or_kill(folder: str, moment: int | None, counted: list[int]) -> None:
    """Count the changes; kill this process before the one with this number."""

    def act() -> None:
        counted[0] += 1
        if counted[0] == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    before_every_change(folder, act)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (-9: killed), its changes of the disk, what it printed.

    Its process, and those that it started, are the process group `group`.
    """

    group: int
    code: int
    changes: int
    printed: str
    seconds: float


class Killer:
    """A context manager that runs commands of Farshore in forks of one warm process."""

    def __enter__(self) -> Self:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "FARSHORE_STATE_SECONDS": "0"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def run(
        self,
        words: list[object],
        folder: Path,
        *,
        change: int | None = None,
        seconds: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run a command; kill it before a change of `folder`, or after some seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {
            "words": [str(word) for word in words],
            "folder": str(folder),
            "change": change,
            "seconds": seconds,
            "environment": dict(environment or {}),
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Ended(**json.loads(self.process.stdout.readline()))


def serve() -> None:
    """Answer requests, one line each, until the input ends."""
    import tempfile

    from farshore.cli.app import main

    _import_all(main)
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as count:
            began = time.monotonic()
            child = os.fork()
            if child == 0:
                _carry_out(request, main, output.name, count.name)
            code = _wait(child, request["seconds"])
            ended = Ended(
                child,
                code,
                int(Path(count.name).read_text() or 0),
                Path(output.name).read_text(errors="replace"),
                time.monotonic() - began,
            )
        print(json.dumps(vars(ended)), flush=True)


def _import_all(main: Callable[[], None]) -> None:
    """Import what commands import, so that a fork starts at once.

    A fork carries out a run and tells which modules it has: here, nothing may be computed yet.
    """
    import contextlib
    import importlib
    import io

    import farshore.deployment.changes
    import farshore.report.build  # noqa: F401

    reader, writer = os.pipe()
    if os.fork() == 0:
        sys.argv = ["farshore", "run", "heart-hospitals", "er", "--steps", "1"]
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            main()
        with open(writer, "w") as file:
            file.write("\n".join(sys.modules))
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        names = file.read().split("\n")
    os.wait()
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _wait(child: int, seconds: float | None) -> int:
    deadline = time.monotonic() + (seconds if seconds is not None else 120)
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _carry_out(request: dict[str, Any], main: Callable[[], None], output: str, count: str) -> None:
    """In the child: run the command and exit."""
    code, counted = 0, [0]
    try:
        os.setsid()
        descriptor = os.open(output, os.O_WRONLY | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.update(request["environment"])
        sys.argv = ["farshore", *request["words"]]
        count_or_kill(request["folder"], request["change"], counted)
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    Path(count).write_text(str(counted[0]))
    os._exit(code)


if __name__ == "__main__":
    serve()
