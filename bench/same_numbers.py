"""Check that a code change changes no number, with every system on the embedded benchmarks.

    python bench/same_numbers.py --save before.json      # at the old commit
    python bench/same_numbers.py --against before.json   # at the new one

One thread, fixed seeds. Compares the scores of the target and of the sources, and a checksum of the
frozen weights, exactly. `--benchmarks rotated-mnist --methods er --steps 100` chooses other runs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import farshore
from farshore.runs import catalog


def measured(benchmark: str, method: str, seed: int, steps: int | None) -> dict[str, Any]:
    run = farshore.Run(
        benchmark=benchmark, method=method, seed=seed, steps=steps, settings={"threads": 1}
    )
    try:
        result = farshore.execute(run)
    except farshore.FarshoreError as error:  # such as trees on images
        return {"status": str(error)}
    target = result.target
    return {
        "status": result.status,
        "target": target.scores if target is not None else None,
        "weights": target.weights if target is not None else None,
        "matrices": result.matrices,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--benchmarks", default="rotated-digits,heart-hospitals")
    parser.add_argument("--methods", default=",".join(catalog.names()))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    args = parser.parse_args()
    numbers = {
        f"{benchmark} {method} {args.seed}": measured(benchmark, method, args.seed, args.steps)
        for benchmark in args.benchmarks.split(",")
        for method in args.methods.split(",")
    }
    if args.save is not None:
        args.save.write_text(json.dumps(numbers, indent=1))
    if args.against is None:
        return 0
    before = json.loads(args.against.read_text())
    different = [name for name in numbers if name in before and numbers[name] != before[name]]
    absent = [name for name in numbers if name not in before]
    print(f"{len(numbers)} runs: {len(different)} differ, {len(absent)} are not in the file")
    for name in different:
        print(f"differs: {name}")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
