"""Target score with the true domain boundaries and with boundaries that were found without labels,
side by side.

python bench/auto_domains.py [--benchmark rotated-digits] [--seeds 3]
"""

from __future__ import annotations

import argparse
import statistics

from farshore import Result, Run, execute
from farshore.evaluation.averages import standard_error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--benchmark", default="rotated-digits")
    parser.add_argument("--methods", default="finetune,er,cl-coral")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    # Three blocks: the default four would hit the four equal sources by luck.
    ways = [(None, None), ("drift", None), ("blocks", 3), ("cluster", None)]
    found: dict[str, str] = {}
    print(
        f"| {asked.benchmark}, target accuracy, {asked.seeds} seeds | true | drift | 3 blocks | "
        "cluster |"
    )
    print("|---|---|---|---|---|")
    for method in asked.methods.split(","):
        cells = []
        for way, count in ways:
            results: list[Result] = [
                execute(
                    Run(
                        benchmark=asked.benchmark,
                        method=method,
                        seed=seed,
                        options={"domain_by": way, "domains": count},
                    )
                )
                for seed in range(asked.seeds)
            ]
            scores = [100 * (result.target_score or 0.0) for result in results]
            spread = standard_error(scores) or 0.0
            cells.append(f"{statistics.mean(scores):.1f} ± {spread:.1f}")
            found |= {way: results[0].notes[-1]} if way else {}
        print(f"| {method} | {' | '.join(cells)} |")
    print()
    for note in found.values():
        print(note)


if __name__ == "__main__":
    main()
