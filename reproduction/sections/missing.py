"""How much of each experiment has run."""

from __future__ import annotations

from collections import Counter

from reproduction.collect import REPRODUCED, planned_runs
from reproduction.finished_runs import table
from reproduction.formatting import markdown


def missing_section() -> str:
    """How much of each experiment has run, and what is missing."""
    rows = []
    for name in REPRODUCED:
        finished = set(table(name)["run"])
        planned, missing = dict[str, Counter[str]](), dict[str, Counter[str]]()
        for run in planned_runs(name):
            benchmark, method = run.condition.benchmark, run.condition.method
            planned.setdefault(benchmark, Counter())[method] += 1
            missing.setdefault(benchmark, Counter())[method] += run.name not in finished
        for benchmark, counts in planned.items():
            open_runs = +missing[benchmark]
            lacking = ", ".join(f"`{method}` ({open_runs[method]})" for method in open_runs)
            if open_runs == counts:
                lacking = "all"
            elif len(open_runs) >= 12:
                lacking = f"runs of {len(open_runs)} methods"
            total = counts.total()
            rows.append(
                [
                    f"`{name}`",
                    benchmark,
                    str(total - open_runs.total()),
                    str(total),
                    lacking or "nothing",
                ]
            )
    header = ["experiment", "data set", "runs", "planned", "missing, by method"]
    return markdown(header, rows)
