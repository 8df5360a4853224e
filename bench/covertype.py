"""covertype with the paper's steps and defaults, to check that protocol and data match the paper.

    python bench/covertype.py [--seeds 3]

The paper reports a source accuracy of 81.5 for its replay baseline (ER-ACE) and 64.3 for finetune.
Needs `farshore prepare covertype`.
"""

from __future__ import annotations

import argparse
import statistics

from farshore import Run, execute


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    print(
        "| method | preprocessing | source accuracy (training rows) | source accuracy "
        "(validation rows) | target accuracy |"
    )
    print("|---|---|---|---|---|")
    for method in ("er", "finetune"):
        for preprocess in ("first", "all-sources"):
            runs = [
                Run(
                    benchmark="covertype",
                    method=method,
                    seed=seed,
                    options={"preprocess": preprocess},
                )
                for seed in range(args.seeds)
            ]
            results = [execute(run) for run in runs]
            columns = [
                [result.source_score(2) for result in results],
                [result.source_score(1) for result in results],
                [result.target_score for result in results],
            ]
            cells = []
            for column in columns:
                values = [100 * (value or 0.0) for value in column]
                spread = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
                cells.append(f"{statistics.mean(values):.1f} ± {spread:.1f}")
            print(f"| {method} | {preprocess} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
