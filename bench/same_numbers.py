"""Whether a change of the code changes numbers: every system on the embedded benchmarks, exactly.

    python bench/same_numbers.py --save before.json      # at the old commit
    python bench/same_numbers.py --against before.json   # at the new one

One thread, fixed seeds. Scores of the target and of the sources are compared, and a checksum of the
frozen weights. `--benchmarks rotated-mnist --methods er --steps 100` tries others.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import farshore
from farshore import catalog


def measured(benchmark: str, method: str, seed: int, steps: int | None) -> dict[str, Any]:
    run = farshore.Run(
        benchmark=benchmark, method=method, seed=seed, steps=steps, settings={"threads": 1}
    )
    result = farshore.execute(run)
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
    asked = parser.parse_args()
    numbers = {
        f"{benchmark} {method} {asked.seed}": measured(benchmark, method, asked.seed, asked.steps)
        for benchmark in asked.benchmarks.split(",")
        for method in asked.methods.split(",")
    }
    if asked.save is not None:
        asked.save.write_text(json.dumps(numbers, indent=1))
    if asked.against is None:
        return 0
    before = json.loads(asked.against.read_text())
    different = [name for name in numbers if name in before and numbers[name] != before[name]]
    absent = [name for name in numbers if name not in before]
    print(f"{len(numbers)} runs: {len(different)} differ, {len(absent)} have nothing to compare")
    for name in different:
        print(f"differs: {name}")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
