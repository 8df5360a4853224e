"""Carry out the runs behind docs/reproduction.md and write the page again.

python docs/reproduce.py --table rotated-mnist --device cuda

`make reproduce TABLE=... DEVICE=...` calls it. It may be stopped at any time: the same command
resumes. `--scale tiny` runs everything in minutes on embedded data and writes no page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tidy_tables import EXPERIMENTS
from write_reproduction import COLLECTED, write

from farshore.plan.experiment import read_experiment


def commands(table: str, runs: Path, device: str, scale: str | None) -> list[list[str]]:
    """The sweeps of all experiments that include the data set."""
    sweeps, known = [], dict[str, None]()
    for name in COLLECTED:
        path = EXPERIMENTS / f"{name}.yaml"
        parts = read_experiment(path).parts
        tables = [data.benchmark for part in parts for data in part.data]
        known.update(dict.fromkeys(tables))
        if table in tables:
            sweep = [sys.executable, "-m", "farshore", "sweep", str(path), "--runs", str(runs)]
            narrowed = ["--scale", scale] if scale else ["--benchmarks", table, "--device", device]
            sweeps.append([*sweep, *narrowed])
    if not sweeps:
        raise SystemExit(f"no experiment includes {table!r}: use one of {', '.join(known)}")
    return sweeps


def main() -> None:
    """Run the sweeps one after the other, then collect the runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True, help="data set, for example rotated-mnist")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--runs", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--scale", choices=["tiny"], default=None)
    given = parser.parse_args()
    for command in commands(given.table, given.runs, given.device, given.scale):
        subprocess.run(command, check=True)
    if given.scale is None:
        write(given.runs)


if __name__ == "__main__":
    main()
