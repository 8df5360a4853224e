"""How long a command takes to start its first run, here and at another commit, in turns.

    python bench/planning.py 19d8ea4 --turns 2
    python bench/planning.py --audit 10

The first form starts `farshore compare` with 200 runs on a made table and stops it as soon as the
first run has begun: CPU time of the command and its workers until then, with the imports. The other
commit is checked out into a temporary folder. The second form times an audit of many small sites
with so many minutes, by the clock, and names the design that it chose.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import record

ROOT = record.BENCH.parent
# Rows, columns and sites of the tables.
LARGE, MANY = (7000, 128, 8), (4000, 10, 200)
# 8 targets in 5 orders with 5 seeds.
ORDERS, SEEDS = "listed,reversed,random1,random2,random3", 5


def write(folder: Path, shape: tuple[int, int, int]) -> Path:
    """A table with two classes that depend on the first column."""
    rows, columns, sites = shape
    draws = np.random.default_rng(0)
    inputs = draws.normal(size=(rows, columns)).round(4)
    table = pd.DataFrame(inputs, columns=[f"x{number}" for number in range(columns)])
    table["site"] = np.repeat([f"site{number:03d}" for number in range(sites)], rows // sites)
    table["label"] = np.where(inputs[:, 0] + draws.normal(size=rows) > 0, "yes", "no")
    table.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def start(source: Path, folder: Path, words: list[str]) -> subprocess.Popen[bytes]:
    """Start a command of farshore in a process group of its own."""
    words = [*words, "--domain", "site", "--label", "label", "--device", "cpu"]
    return subprocess.Popen(
        [sys.executable, "-m", "farshore", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def until_first_run(source: Path, table: Path) -> float:
    """CPU seconds until the first run has begun."""
    words = ["compare", str(table), "--methods", "finetune", "--target", "each", "--steps", "1"]
    words += ["--orders", ORDERS, "--seeds", str(SEEDS), "--workers", "1"]
    with tempfile.TemporaryDirectory() as folder:
        before = children()
        process = start(source, Path(folder), words)
        while not any(Path(folder, "runs").glob("*/config.json")):
            if process.poll() is not None:
                raise SystemExit(f"farshore {' '.join(words)} failed in {source}")
            time.sleep(0.05)
        worker = sum(
            cpu_of(int(child))
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children")
            .read_text()
            .split()
        )
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return children() - before + worker


def children() -> float:
    """CPU seconds of the processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(process: int) -> float:
    """CPU seconds of a process that runs."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def planned(there: Path, table: Path, turns: int) -> Iterator[list[str]]:
    pairs = []
    for _ in range(turns):
        pairs.append((until_first_run(there, table), until_first_run(ROOT, table)))
        print(f"there, here: {pairs[-1]}", file=sys.stderr, flush=True)
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    ratio = statistics.median(one / other for one, other in zip(after, before, strict=True))
    times = [f"{statistics.median(each):.1f}" for each in (before, after)]
    yield ["200 runs of compare, to the first", *times, f"{ratio:.2f}"]


def audited(table: Path, minutes: float) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        before, began = children(), time.monotonic()
        process = start(ROOT, Path(folder), ["audit", str(table), "--minutes", f"{minutes:g}"])
        if process.wait():
            raise SystemExit("the audit failed")
        spent = time.monotonic() - began
        numbers = json.loads(next(Path(folder, "runs").glob("audit-*.json")).read_text())
    cpu = children() - before
    yield [f"{minutes:g}", numbers["design"], f"{spent / 60:.1f}", f"{cpu / 60:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--audit", type=float, metavar="MINUTES")
    record.add_save(parser)
    args = parser.parse_args()
    if (args.commit is None) == (args.audit is None):
        parser.error("give a commit, or --audit")
    shape = MANY if args.audit else LARGE
    shown = "a table of {} rows x {} columns from {} sites".format(*shape)
    with tempfile.TemporaryDirectory() as name:
        table, there = write(Path(name), shape), Path(name) / "there"
        if args.audit:
            columns = ["minutes", "design", "minutes by the clock", "CPU minutes"]
            record.show(args, f"An audit of {shown}", columns, audited(table, args.audit))
            return
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(there), args.commit], check=True)
        try:
            columns = ["CPU seconds", f"at {args.commit}", "here", "here / there"]
            record.show(args, f"On {shown}", columns, planned(there, table, args.turns))
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)


if __name__ == "__main__":
    main()
