"""Target scores with the true domain boundaries and with boundaries found without labels.

python bench/auto_domains.py [--benchmark rotated-digits] [--seeds 3]
"""

from __future__ import annotations

import argparse
import statistics

from farshore import Result, Run, execute


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--benchmark", default="rotated-digits")
    parser.add_argument("--methods", default="finetune,er,cl-coral")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    # Three blocks: the default of four would match the four equal sources by luck.
    constructions = [(None, None), ("drift", None), ("blocks", 3), ("cluster", None)]
    notes: dict[str, str] = {}
    print(
        f"| {args.benchmark}, target accuracy, {args.seeds} seeds | true | drift | 3 blocks | "
        "cluster |"
    )
    print("|---|---|---|---|---|")
    for method in args.methods.split(","):
        cells = []
        for construction, count in constructions:
            results: list[Result] = [
                execute(
                    Run(
                        benchmark=args.benchmark,
                        method=method,
                        seed=seed,
                        options={"domain_by": construction, "domains": count},
                    )
                )
                for seed in range(args.seeds)
            ]
            scores = [100 * (result.target_score or 0.0) for result in results]
            spread = statistics.stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else 0.0
            cells.append(f"{statistics.mean(scores):.1f} ± {spread:.1f}")
            notes |= {construction: results[0].notes[-1]} if construction else {}
        print(f"| {method} | {' | '.join(cells)} |")
    print()
    for note in notes.values():
        print(note)


if __name__ == "__main__":
    main()
