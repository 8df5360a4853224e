"""Reading and predicting large tables, beside pandas and beside another commit.

    python bench/tables.py reading 19d8ea4
    python bench/tables.py predicting 19d8ea4 --rows 1000000
    python bench/tables.py predicting --rows 10000000 --parquet --turns 1

Every reading and every command is a process of its own, and they take turns: CPU time (of reading
alone, or of the whole command) and peak memory of the process. The other commit is checked out
into a temporary folder. Predicted is a table with 20 columns by an mlp that `er` has trained on
three sites.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import record

ROOT = record.BENCH.parent
SITE_ROWS, PART = 3000, 1_000_000
# The last line that a process prints: its CPU seconds and peak MB, which those of a process that
# started it would otherwise hide.
TOLD = """
import atexit, re, sys, time
from pathlib import Path
since = 0.0
def tell():
    peak = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
    print(time.process_time() - since, int(peak) / 1024)
atexit.register(tell)
"""
READ = """
if sys.argv[1] == "without":
    sys.modules["pyarrow"] = None
import pandas
if sys.argv[1] == "pandas":
    read = pandas.read_csv
else:
    from farshore.data.tables.read_table import read_table as read
read(Path("small.csv"))
since = time.process_time()
read(Path(sys.argv[2]))
"""
COMMAND = """
from farshore.cli.app import main
main()
"""


def table(rows: int, columns: int, seed: int) -> pd.DataFrame:
    """Numbers, the name of a site, and two classes that depend on the first two columns."""
    draws = np.random.default_rng(seed)
    inputs = draws.normal(size=(rows, columns - 2)).round(4)
    frame = pd.DataFrame(inputs, columns=[f"x{number}" for number in range(columns - 2)])
    frame.insert(0, "site", f"site {seed}")
    signal = inputs[:, 0] + 0.7 * inputs[:, 1] + draws.normal(size=rows) / 2
    return frame.assign(label=np.where(signal > 0, "yes", "no"))


def write(path: Path, rows: int, columns: int, seed: int = 0) -> Path:
    """A table as a file, written in parts."""
    writer = None
    for number, start in enumerate(range(0, rows, PART)):
        part = table(min(PART, rows - start), columns, seed + number)
        if path.suffix == ".csv":
            part.to_csv(path, index=False, mode="a", header=start == 0)
            continue
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        rows_of_part = pyarrow.Table.from_pandas(part, preserve_index=False)
        writer = writer or ParquetWriter(path, rows_of_part.schema)
        writer.write_table(rows_of_part)
    if writer is not None:
        writer.close()
    return path


def measure(source: Path, folder: Path, words: list[str]) -> tuple[float, float]:
    """CPU seconds and peak MB of a process."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD + words[0], *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, megabytes = done.stdout.splitlines()[-1].split()
    return float(seconds), float(megabytes)


def in_turns(
    ways: Mapping[str, tuple[Path, list[str]]], folder: Path, turns: int
) -> Iterator[list[str]]:
    """One row per way: the least CPU time, which other work disturbs least, and the peak."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(turns):
        for name, (source, words) in ways.items():
            found[name].append(measure(source, folder, words))
            print(f"{name}: {found[name][-1]}", file=sys.stderr, flush=True)
    first = min(next(iter(found.values())))[0]
    for name, pairs in found.items():
        seconds, memory = min(pairs)[0], max(megabytes for _, megabytes in pairs)
        yield [name, f"{seconds:.2f}", f"{seconds / first:.2f}", f"{memory:.0f}"]


def ways_to_read(folder: Path, data: Path, there: Path | None) -> dict[str, tuple[Path, list[str]]]:
    write(folder / "small.csv", 100, 12)
    ways = {
        "pandas": (ROOT, [READ, "pandas", str(data)]),
        "Farshore": (ROOT, [READ, "with", str(data)]),
        "Farshore without pyarrow": (ROOT, [READ, "without", str(data)]),
    }
    return ways | ({"Farshore before": (there, [READ, "with", str(data)])} if there else {})


def ways_to_predict(
    folder: Path, data: Path, there: Path | None
) -> dict[str, tuple[Path, list[str]]]:
    for seed in (1, 2, 3):
        site = write(folder / f"site{seed}.csv", SITE_ROWS, 20, seed)
        words = ["learn", "model", str(site), "--label", "label", "--drop", "site"]
        measure(ROOT, folder, [COMMAND, *words, "--name", f"site {seed}"])
    words = [COMMAND, "predict", "model", str(data), "-o", "predictions.csv"]
    return ({"before": (there, words)} if there else {}) | {"now": (ROOT, words)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["reading", "predicting", "showing"])
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parquet", action="store_true", help="predict a Parquet file")
    parser.add_argument("--turns", type=int, default=3)
    record.add_save(parser)
    args = parser.parse_args()
    columns = 20 if args.what == "predicting" else 12
    kind = "parquet" if args.parquet else "csv"
    with tempfile.TemporaryDirectory() as name:
        folder, there = Path(name), None
        git = ["git", "-C", str(ROOT), "worktree"]
        if args.commit is not None:
            there = folder / "there"
            subprocess.run([*git, "add", "--quiet", "--detach", there, args.commit], check=True)
        try:
            data = write(folder / f"table.{kind}", args.rows, columns)
            if args.what == "reading":
                ways = ways_to_read(folder, data, there)
            else:
                ways = ways_to_predict(folder, data, there)
            if args.what == "showing":
                imports = {"import numpy, pandas": (ROOT, ["import numpy, pandas"])}
                ways = imports | {"farshore show": (ROOT, [COMMAND, "show", "model"])}
            before = f"; before: {args.commit}" if args.commit else ""
            record.show(
                args,
                f"{args.what.capitalize()} {args.rows:,} rows x {columns} columns ({kind}){before}"
                f"; least of {args.turns} turns",
                ["way", "CPU seconds", f"x {next(iter(ways))}", "peak MB"],
                in_turns(ways, folder, args.turns),
                ["pandas", "pyarrow"],
            )
        finally:
            if there is not None:
                subprocess.run([*git, "remove", "--force", there], check=True)


if __name__ == "__main__":
    main()
