"""The image data sets with a frozen backbone, where the paper fine-tunes the whole network."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.arithmetic import (
    Difference,
    enough,
    names,
    paired_difference,
    pooled,
    scores,
    summary_of,
    unit_of,
)
from reproduction.collect import planned_runs
from reproduction.compared import TAILORED, group
from reproduction.finished_runs import rows_of
from reproduction.formatting import interval, markdown, over, several
from reproduction.sections.invariance import CONTROL
from reproduction.sections.missing import provenance

EXPERIMENT = "frozen_backbone"
DATA = ("wm811k", "cifar10-c", "tinyimagenet-c")
COMPARED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "tailored methods beat replay (`er`)": (TAILORED, ["er"]),
    f"tailored methods beat replay and distillation (`{CONTROL}`)": (TAILORED, [CONTROL]),
    "tailored methods beat fine-tuning": (TAILORED, ["finetune"]),
    "tailored methods beat their naive forms": (TAILORED, group("naive")),
    "naive forms beat fine-tuning": (group("naive"), ["finetune"]),
    "replay beats fine-tuning": (["er"], ["finetune"]),
}


def frozen_section() -> str:
    """By data set: how much has run, the verdicts, and every method."""
    return "\n".join(map(data_section, DATA))


def data_section(benchmark: str) -> str:
    """One data set: what has run, the claims that it can judge, and its methods."""
    here = [run for run in planned_runs(EXPERIMENT) if run.condition.benchmark == benchmark]
    planned = {run.name for run in here}
    frame = rows_of(EXPERIMENT, benchmark)
    count = f"{len(planned & set(frame['run'])):,} of {several(len(planned), 'run')}"
    if frame.empty:
        return f"## {benchmark}\n\nNot run: needs its {several(len(planned), 'run')}.\n"
    by_method = scores(frame)
    code, place, seconds = provenance(frame)
    absent = dict.fromkeys(run.condition.method for run in here)
    lacking = ", ".join(f"`{name}`" for name in absent if name not in by_method) or "none"
    rows = []
    for claim, (first, second) in COMPARED.items():
        compared = [*first, *second]
        ran = [name for name in compared if name in enough(by_method)]
        ours, theirs = pooled(by_method, first), pooled(by_method, second)
        found = paired_difference(ours, theirs)
        n = "-"
        if found is not None:
            shared = [run for run in ours if run in theirs]
            unit, seeds = unit_of(shared), {run[4] for run in shared}
            n = f"{several(len(names(shared, unit)), str(unit))}, {several(len(seeds), 'seed')}"
        said = verdict(found) if found is None or len(ran) == len(compared) else "**open**"
        rows.append([claim, interval(found), n, f"{len(ran)} of {len(compared)}", said])
    header = ["claim", "difference [95%]", "n", "methods that have run", "verdict"]
    return (
        f"## {benchmark}\n\n{count} have finished; methods without any: {lacking}. Code {code}; "
        f"{place}; {seconds} seconds of training a run (median).\n\n"
        f"{markdown(header, rows)}\n{methods_table(benchmark)}"
    )


def verdict(found: Difference | None) -> str:
    """Whether the interval lies above or below zero."""
    if found is None or found.low is None:
        return "not run"
    if not found.certain:
        return "**not shown**"
    return "**holds**" if found.mean > 0 else "**the opposite**"


def methods_table(benchmark: str) -> str:
    """Every method that has run after three sources or more."""
    by_method = enough(scores(rows_of(EXPERIMENT, benchmark)))
    found = {name: summary_of(runs) for name, runs in by_method.items()}
    rows = [
        [
            f"`{name}`",
            *over(summary),
            interval(paired_difference(by_method[name], by_method["er"])) if name != "er" else "-",
            str(summary.runs),
        ]
        for name, summary in sorted(found.items(), key=lambda item: -item[1].mean)
    ]
    return markdown(["method", "target", "worst last source", "minus `er` [95%]", "runs"], rows)
