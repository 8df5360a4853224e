"""What a run of a committee costs beside runs of its members, each alone.

    python bench/committee_cost.py [--benchmark heart-hospitals] [--turns 3] [--save NAME]

All runs are carried out in one process, in turns, as `farshore run` carries them out: CPU time with
the reading of the data, all evaluations and the target, without imports. The first turn loads what
a run needs and does not count. Of the others, the least is shown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import record
import torch

from farshore import Run, execute
from farshore.runs import catalog
from farshore.systems.committee.members import read_members


def seconds(run: Run) -> float:
    """CPU seconds of a run."""
    before = time.process_time()
    execute(run)
    return time.process_time() - before


def table(args: argparse.Namespace) -> Iterator[list[str]]:
    """A row per member, their sum, and the committee."""
    members = read_members(catalog.find(args.method).Settings().chosen(table=True))
    common = {"benchmark": args.benchmark, "steps": args.steps}
    runs = {
        each.text: Run.build(method=each.entry.name, settings={**each.settings}, **common)
        for each in members
    } | {args.method: Run.build(method=args.method, **common)}
    turns = [{name: seconds(run) for name, run in runs.items()} for _ in range(args.turns + 1)]
    least = {name: min(turn[name] for turn in turns[1:]) for name in runs}
    total = sum(least[each.text] for each in members)
    shown = {each.text: least[each.text] for each in members}
    for name, value in {**shown, "sum of members": total, args.method: least[args.method]}.items():
        yield [name, f"{value:.2f}", f"{value / total:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmark", default="heart-hospitals", help="a table")
    parser.add_argument("--method", default="auto", choices=["auto", "best"])
    parser.add_argument("--steps", type=int, help="per domain; default: the benchmark's own")
    parser.add_argument("--turns", type=int, default=3)
    record.add_save(parser)
    args = parser.parse_args()
    torch.set_num_threads(1)
    record.show(
        args,
        f"Runs of {args.benchmark}, seed 0; least of {args.turns} turns",
        ["run", "CPU seconds", "x sum of members"],
        table(args),
    )


if __name__ == "__main__":
    main()
