"""Count the files of src of which a function runs: in a run, in its report, and in one step.

    python bench/executed_files.py         # how many files each of them executes
    python bench/executed_files.py step    # the files, and the functions that ran

- run: `farshore run heart-hospitals cl-coral`, a few steps
- report: `farshore report` on that run
- step: one step of it, in the second domain, which has rows to replay

Only calls count: neither imports nor what runs while a module or a class body is being defined.
Each is measured in a process of its own, so that nothing is left over from another one.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import farshore
from farshore.cli.app import app

SOURCE = Path(farshore.__file__).parent
BENCHMARK, METHOD, STEPS = "heart-hospitals", "cl-coral", 5
# The functions that ran, by file, both in the order of their first call.
Executed = dict[str, list[str]]


@contextmanager
def executed(found: Executed) -> Iterator[None]:
    """Add every function of src that is called inside to `found`."""
    seen: set[CodeType] = set()

    def called(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in seen and in_source(code) and not defining(frame):
            seen.add(code)
            file = str(Path(code.co_filename).relative_to(SOURCE))
            found.setdefault(file, []).append(code.co_qualname)

    before = sys.getprofile()
    threading.setprofile(called)
    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


def in_source(code: CodeType) -> bool:
    """Whether this is code of src."""
    return code.co_filename.startswith(f"{SOURCE}/")


def defining(frame: FrameType | None) -> bool:
    """Whether this happens while a module or a class of src is being defined."""
    while frame is not None:
        if in_source(frame.f_code) and not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return True
        frame = frame.f_back
    return False


def run(folder: Path) -> Executed:
    """What `farshore run` executes."""
    return traced("run", BENCHMARK, METHOD, "--steps", str(STEPS), "--out", str(folder))


def report(folder: Path) -> Executed:
    """What `farshore report` executes on a folder with that run."""
    run(folder)
    return traced("report", str(folder), "-o", str(folder / "report.html"))


def traced(*words: str) -> Executed:
    """What a command executes."""
    found: Executed = {}
    with executed(found), redirect_stdout(StringIO()):
        app(words, standalone_mode=False)
    return found


class OneStep(farshore.Observer):
    """Traces one turn of the training loop, from the end of a step to the end of the next."""

    def __init__(self) -> None:
        self.found: Executed = {}
        self.domains, self.tracing = 0, ExitStack()

    def start(self, domain: str, steps: int) -> None:
        self.domains += 1

    def step(self, domain: str, step: int, terms: Mapping[str, Any]) -> None:
        self.tracing.close()
        if self.domains == 2 and step == 1:
            self.tracing.enter_context(executed(self.found))


def one_step(_: Path | None = None) -> Executed:
    """What a step with replayed rows executes."""
    observer = OneStep()
    run = farshore.Run(benchmark=BENCHMARK, method=METHOD, steps=STEPS)
    farshore.execute(run, observer=observer)
    return observer.found


MEASURED = {"run": run, "report": report, "step": one_step}


def measure(name: str) -> Executed:
    """What one of them executes, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        return MEASURED[name](Path(folder))


def main() -> None:
    """Print the counts, or the files of one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", choices=MEASURED)
    name = parser.parse_args().name
    names = list(MEASURED) if name is None else [name]
    with get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        for each, found in zip(names, processes.imap(measure, names), strict=True):
            print(f"{each}: {len(found)} files")
            if name is not None:
                print("\n".join(f"{file}: {', '.join(found[file])}" for file in sorted(found)))


if __name__ == "__main__":
    main()
