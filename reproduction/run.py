"""Run the experiments behind docs/reproduction.md on one data set, then rewrite the pages.

    python -m reproduction.run --table rotated-mnist --device cuda

`make reproduce TABLE=... DEVICE=...` calls it. You can stop it at any time: the same command
resumes. With `--missing` (`MISSING=yes`) it carries out only the runs that the tables do not have
yet. `--scale tiny` runs everything in minutes on built-in data and writes no page.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from reproduction import EXPERIMENTS, TABLES
from reproduction.collect import REPRODUCED, collect
from reproduction.finished_runs import table
from reproduction.pages import write

# Exit codes of `farshore sweep` after which the next experiment can start: done, and a run failed.
GO_ON = (0, 1)


def data_sets(experiment: str) -> set[str]:
    """The data sets that an experiment includes."""
    parts = yaml.safe_load((EXPERIMENTS / f"{experiment}.yaml").read_text())["parts"]
    return {name for part in parts for name in part["benchmarks"]}


def commands(
    data_set: str, runs: Path, device: str, *, scale: str | None = None, missing: bool = False
) -> Iterator[list[str]]:
    """One `farshore sweep` for each experiment that includes the data set."""
    for name in REPRODUCED:
        if data_set not in data_sets(name):
            continue
        command = ["farshore", "sweep", str(EXPERIMENTS / f"{name}.yaml")]
        command += ["--runs", str(runs), "--device", device]
        if scale is not None:  # other data take the place of the data set
            command += ["--scale", scale]
        else:
            command += ["--benchmarks", data_set]
        if missing and len(table(name)):
            command += ["--done", str(TABLES / f"{name}.csv")]
        yield command


def carry_out(command: list[str]) -> int:
    """The exit code of a command, which stops by itself at Ctrl-C."""
    with subprocess.Popen([sys.executable, "-m", *command]) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the command got it, too: it says how to go on, and ends
                continue


def main() -> int:
    """Carry out the experiments one after the other, then collect the runs and write the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = sorted(set().union(*map(data_sets, REPRODUCED)))
    parser.add_argument("--table", required=True, choices=known, help="the data set")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/reproduction"))
    parser.add_argument(
        "--missing", action="store_true", help="only the runs that the tables do not have yet"
    )
    parser.add_argument("--scale", choices=["tiny"], default=None)
    given = parser.parse_args()
    planned = commands(
        given.table, given.runs, given.device, scale=given.scale, missing=given.missing
    )
    codes = []
    for command in planned:
        print(shlex.join(command), flush=True)
        codes.append(carry_out(command))
        if codes[-1] not in GO_ON:
            return codes[-1]
    if given.scale is None:
        collect(given.runs)
        write.main()
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
