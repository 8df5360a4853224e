"""CPU time and peak memory of a command of farshore, here and at another commit, in turns.

    python bench/against.py 16f9588 --turns 3 -- run covertype ewc
    python bench/against.py 19d8ea4 --here "--design full" -- audit heart-hospitals

Each turn runs both in new processes and empty folders, with one thread. The other commit is checked
out into a temporary folder; `--here` is for options that it does not have. CPU time includes the
imports and all processes that the command starts; the ratio is the median over turns of here /
there.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import record

ROOT = record.BENCH.parent


def cost(source: Path, words: list[str]) -> tuple[float, float]:
    """CPU seconds and peak resident megabytes of one execution."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "farshore", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"farshore {shlex.join(words)} failed in {source}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measured(there: Path, words: list[str], here: list[str], turns: int) -> Iterator[list[str]]:
    pairs = []
    for _ in range(turns):
        pairs.append((cost(there, words), cost(ROOT, [*words, *here])))
        print(f"there, here: {pairs[-1]}", file=sys.stderr, flush=True)
    for index, name in enumerate(("CPU seconds", "peak memory, MB")):
        before, after = ([pair[side][index] for pair in pairs] for side in (0, 1))
        ratio = statistics.median(one / other for one, other in zip(after, before, strict=True))
        shown = (f"{statistics.median(each):.1f}" for each in (before, after))
        yield [f"farshore {shlex.join(words)}", name, *shown, f"{ratio:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--here", default="", help="further words, which only we get")
    record.add_save(parser)
    parser.add_argument("words", nargs="+", help="what follows `farshore`, after `--`")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        there = Path(name) / "there"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(there), args.commit], check=True)
        try:
            record.show(
                args,
                f"Whole commands, medians of {args.turns} turns",
                ["command", "what", f"at {args.commit}", "here", "here / there"],
                measured(there, args.words, shlex.split(args.here), args.turns),
            )
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)


if __name__ == "__main__":
    main()
