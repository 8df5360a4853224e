"""Hostile cases in a process of their own, which may neither crash, nor hang, nor eat memory.

`confine("module:function", cases=100, seed=7)` starts a process that calls `function(chance)` once
per case, each with a generator of its own. The process may allocate `memory` bytes more than it
has after its imports and the module's `warm_up()`, and a case may take `seconds`. What a case
raises, a crash, an allocation beyond the limit (MemoryError) or a case that hangs fails the test,
which names the case.
"""

from __future__ import annotations

import importlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parent
GIB = 1 << 30


def confine(
    function: str,
    *,
    cases: int,
    seed: int,
    memory: int = GIB,
    seconds: int = 30,
    arguments: tuple[str, ...] = (),
) -> None:
    """Run the cases; fail with the number of the case at which the process ended."""
    print(f"{cases} cases of {function}, seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "case"
        log.write_text("none")
        numbers = [str(number) for number in (cases, seed, memory, seconds)]
        done = subprocess.run(
            [sys.executable, str(TESTS / "confined.py"), function, str(log), *numbers, *arguments],
            capture_output=True,
            text=True,
            timeout=1500,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
        )
        assert done.returncode == 0, (
            f"{function} with seed {seed} ended with {done.returncode} at case {log.read_text()}:\n"
            f"{done.stderr[-4000:]}"
        )


def chance_of(seed: int, case: int) -> random.Random:
    """The generator of one case, to repeat it alone."""
    return random.Random(f"{seed} {case}")


def limit_memory(more: int) -> None:
    """Allow this process `more` bytes of address space than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Run all cases in this process."""
    name, log, cases, seed, memory, seconds = sys.argv[1:7]
    module, function = name.split(":")
    sys.path[:0] = [str(TESTS), str(TESTS / "soak")]
    cases_of = importlib.import_module(module)
    called = getattr(cases_of, function)
    cases_of.warm_up(*sys.argv[7:])
    limit_memory(int(memory))
    for case in range(int(cases)):
        Path(log).write_text(str(case))
        signal.alarm(int(seconds))
        called(chance_of(int(seed), case), *sys.argv[7:])


if __name__ == "__main__":
    main()
