"""Print a measured table; with `--save NAME`, keep it as bench/measured/NAME.csv.

README.md says how such a file becomes a table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import torch

BENCH = Path(__file__).resolve().parent
FOLDER = BENCH / "measured"


def add_save(parser: argparse.ArgumentParser) -> None:
    """The option that keeps the table."""
    parser.add_argument("--save", metavar="NAME", help="keep the table as bench/measured/NAME.csv")


def show(
    args: argparse.Namespace,
    measured: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    packages: Sequence[str] = (),
) -> None:
    """Print what is measured (the shapes) and the table, row by row, and save it if asked to.

    `args` are the program's arguments, with those of `add_save`. `packages` are those that were
    measured beside PyTorch, such as pandas.
    """
    about = {
        "measured": measured,
        "command": shlex.join(["python", f"bench/{Path(sys.argv[0]).name}", *_words()]),
        "machine": machine(getattr(args, "device", "cpu"), packages),
        "commit": commit(),
    }
    for key, value in about.items():
        print(f"{key}: {value}")
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)
    kept = []
    for row in rows:
        kept.append([str(cell) for cell in row])
        print("| " + " | ".join(kept[-1]) + " |", flush=True)
    if args.save is not None:
        FOLDER.mkdir(exist_ok=True)
        with (FOLDER / f"{args.save}.csv").open("w", newline="") as file:
            file.writelines(f"# {key}: {value}\n" for key, value in about.items())
            csv.writer(file, lineterminator="\n").writerows([columns, *kept])


def _words() -> list[str]:
    """What was typed after the program; of a path on this machine, only the name."""
    return [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]


def machine(device: str, packages: Sequence[str]) -> str:
    """The device, and the versions of what was measured."""
    if device == "cuda":
        name = torch.cuda.get_device_name()
    else:
        threads = torch.get_num_threads()
        capability = torch.backends.cpu.get_cpu_capability()
        name = f"{threads} CPU thread{'s' if threads > 1 else ''}, {capability}"
    return ", ".join([name, *(f"{each} {version(each)}" for each in ("torch", *packages))])


def commit() -> str:
    """The commit that was measured, with its date; says so if files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", BENCH, *words], capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "../src", "*.py")
    return git("log", "-1", "--format=%h of %cs") + (" with changes" if changed else "")
