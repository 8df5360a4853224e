"""How much of each experiment has run."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from reproduction.collect import REPRODUCED, planned_runs
from reproduction.finished_runs import table
from reproduction.formatting import markdown

PROVENANCE = ("code (commits)", "PyTorch, device", "seconds a run (median)")


def missing_section() -> str:
    """How much of each experiment has run, on what, and what is missing."""
    rows = []
    for name in REPRODUCED:
        runs = table(name)
        finished = set(runs["run"])
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
                    *provenance(runs[runs["benchmark"] == benchmark]),
                ]
            )
    header = ["experiment", "data set", "runs", "planned", "missing, by method", *PROVENANCE]
    return markdown(header, rows)


def provenance(runs: pd.DataFrame) -> tuple[str, str, str]:
    """Commits, PyTorch and device, and seconds of a run; runs of old code do not record them."""
    known = {
        name: sorted({str(each) for each in runs[name].dropna()}) if name in runs else []
        for name in ("commit", "torch_version", "device")
    }
    commits = ", ".join(sorted({commit[:7] for commit in known["commit"]}))
    places = ", ".join([*known["torch_version"], *known["device"]])
    seconds = runs["seconds_of_training"].median()
    took = "-" if pd.isna(seconds) else f"{seconds:.1f}"
    return commits or "not recorded", places or "not recorded", took
