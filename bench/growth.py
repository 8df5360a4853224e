"""What learning one more domain costs as a problem grows: its domains, classes, columns or rows.

    python bench/growth.py --axis domains [--methods er,ridge] [--values 4,10] [--save NAME]

Every method learns the domains of a random table one after another, with the replay budget `total`,
in a process of its own. Along `domains`, one process learns them all and is read at every value.
Domains whose time is not read are learned with one step, which makes the states that count.
Along the other axes there are four domains and a process per value. The process time of learning
the newest domains (their median) is printed with the peak memory of the process, which includes
about 400 MB for Python and PyTorch. A process stops after `--seconds` of process time, or if it
needs more than `--limit-gb`, and its cells say so.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import record
import torch

from farshore.data.domain import Domain
from farshore.learner.learner import Learner
from farshore.methods import METHODS

AXES = {
    "domains": (4, 10, 100, 1000),
    "classes": (2, 10, 100, 1000),
    "columns": (10, 200, 2000),
    "rows": (10_000, 100_000, 1_000_000),
}
SHAPES = {
    "domains": "domains of 100 rows, 20 columns, 4 classes; memory 1,000",
    "classes": "4 domains of 1,000 rows, 20 columns; memory 1,000",
    "columns": "4 domains of 500 rows, 4 classes; memory 1,000",
    "rows": "4 domains that share the rows, 20 columns, 4 classes; memory 1,000",
}
STEPS, MEMORY = 5, 1000
# The newest domains, over which the median is taken.
NEWEST = 5


def domain(number: int, rows: int, columns: int, classes: int) -> Domain:
    """Rows of overlapping classes, moved a little by domain; all of them are for training."""
    generator = torch.Generator().manual_seed(number)
    labels = torch.arange(rows) % classes
    centres = torch.randn(classes, columns, generator=torch.Generator().manual_seed(classes))
    noise = torch.randn(rows, columns, generator=generator)
    inputs = centres[labels] + noise + 0.1 * torch.randn(columns, generator=generator)
    return Domain.divided(f"site {number}", inputs, labels, validation=0)


def learner(method: str, classes: int) -> Learner:
    """A learner of this method, whose penalties have their weights from the first step on."""
    fields = METHODS.get(method).Settings.model_fields
    no_warmup = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    settings = {"replay_budget": "total", **no_warmup}
    return Learner(
        "mlp",
        method,
        memory=MEMORY,
        settings=settings,
        classes=list(range(classes)),
        preprocess="none",
    )


def shape(axis: str, value: int) -> tuple[int, int, int, int]:
    """Domains, rows of each, columns and classes of a cell."""
    return {
        "domains": (value, 100, 20, 4),
        "classes": (4, 1000, 20, value),
        "columns": (4, 500, value, 4),
        "rows": (4, value // 4, 20, 4),
    }[axis]


def work(method: str, axis: str, values: list[int], seconds: int) -> Iterator[dict[str, Any]]:
    """Learn domain after domain; yields at every value of `domains`, or at the end."""
    domains, rows, columns, classes = shape(axis, values[-1])
    made = learner(method, classes)
    times: list[float] = []
    for number in range(domains):
        if time.process_time() > seconds:  # a limit of the kernel would make this clock tick
            return
        newest = domain(number, rows, columns, classes)
        read = axis != "domains" or any(0 <= each - number - 1 < NEWEST for each in values)
        began = time.process_time()
        made.learn_domain(newest, steps=STEPS if read else 1)
        times.append(time.process_time() - began)
        if number + 1 in (values if axis == "domains" else [domains]):
            last = times[1:][-NEWEST:] if axis == "domains" else times[-1:]
            usage = made.system.usage()
            yield {
                "value": values[-1] if axis != "domains" else number + 1,
                "milliseconds": 1000 * statistics.median(last),
                "peak_mb": peak() / 1e6,
                "kept_mb": (usage.memory_bytes + usage.method_bytes) / 1e6,
            }


def peak() -> int:
    """The peak resident memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child(method: str, axis: str, values: list[int], args: argparse.Namespace) -> dict[int, Any]:
    """Run `work` in a process; what it measured, by value, as far as it came."""
    command = [sys.executable, __file__, "--child", "--axis", axis, "--methods", method]
    command += ["--values", ",".join(map(str, values)), "--seconds", str(args.seconds)]
    command += ["--limit-gb", str(args.limit_gb)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[int, Any] = {each["value"]: each for each in lines}
    if done.returncode and "DivergedError" in done.stderr:
        found |= dict.fromkeys(set(values) - set(found), "diverged")
    elif done.returncode and "FarshoreError" in done.stderr:
        found |= dict.fromkeys(set(values) - set(found), "refused")
    elif done.returncode and ("emory" in done.stderr or "bad_alloc" in done.stderr):
        found |= dict.fromkeys(set(values) - set(found), f"> {args.limit_gb} GB")
    elif done.returncode > 0:
        raise SystemExit(done.stderr)
    return {value: found.get(value, f"> {args.seconds} s") for value in values}


def table(args: argparse.Namespace, values: list[int]) -> Iterator[list[str]]:
    """A line per method."""
    for method in args.methods.split(","):
        if args.axis == "domains":
            found = child(method, args.axis, values, args)
        else:
            found = {}
            for value in values:
                found |= child(method, args.axis, [value], args)
        measured = [each for each in found.values() if isinstance(each, dict)]
        times = [
            f"{each['milliseconds']:.1f}" if isinstance(each, dict) else each
            for each in found.values()
        ]
        ratio = "-"
        if args.axis == "domains" and isinstance(found.get(values[-1]), dict):
            tenth = found[values[1]]["milliseconds"]
            ratio = f"{found[values[-1]]['milliseconds'] / tenth:.2f}"
        last = measured[-1] if measured else {"peak_mb": 0, "kept_mb": 0}
        ends = [f"{last['peak_mb']:.0f}", f"{last['kept_mb']:.1f}"]
        yield [method, *times, *([ratio] if args.axis == "domains" else []), *ends]


def in_turn() -> list[str]:
    """The methods that learn domains in turn."""
    return [
        name for name in METHODS.names() if METHODS.get(name).kind in ("continual", "reference")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--axis", choices=AXES, default="domains")
    parser.add_argument("--methods", help="by default all that learn domains in turn")
    parser.add_argument("--values", help="of the axis, ascending")
    parser.add_argument("--seconds", type=int, default=120, help="process time of a process")
    parser.add_argument("--limit-gb", type=int, default=8, help="memory of a process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    record.add_save(parser)
    args = parser.parse_args()
    values = [int(value) for value in args.values.split(",")] if args.values else AXES[args.axis]
    args.methods = args.methods or ",".join(in_turn())
    torch.set_num_threads(1)
    if args.child:
        resource.setrlimit(resource.RLIMIT_DATA, (args.limit_gb * 10**9,) * 2)
        for found in work(args.methods, args.axis, list(values), args.seconds):
            print(json.dumps(found), flush=True)
        return
    columns = ["method", *(f"{value:,}: ms" for value in values)]
    if args.axis == "domains":
        columns.append(f"{values[-1]:,} / {values[1]:,}")
    record.show(
        args,
        f"Process time of learning one more domain, by the number of {args.axis}; "
        f"{SHAPES[args.axis]}, {STEPS} steps, mlp; peak and kept megabytes are those of the last "
        "value that was measured",
        [*columns, "peak MB", "kept MB"],
        table(args, list(values)),
    )


if __name__ == "__main__":
    main()
