"""Methods over all orders of the sources, and what other settings change there."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from reproduction.arithmetic import (
    Unit,
    enough,
    mean,
    means,
    names,
    paired_difference,
    pooled,
    scores,
    summary_of,
    variance,
)
from reproduction.compared import BENCHMARKS, REPLAY, TAILORED
from reproduction.finished_runs import rows_of
from reproduction.formatting import interval, markdown, over, printed, several
from reproduction.paper.scores import papers_scores

LEVELS = (Unit.LAST_SOURCE, Unit.ORDER, Unit.SEED)


def orders_section(benchmark: str) -> str:
    """Every method over all orders, paired with er and with the best replay baseline."""
    frame = rows_of("all_orders", benchmark)
    by_method = scores(frame)
    summaries = {name: summary_of(runs) for name, runs in enough(by_method).items()}
    best = best_replay({name: summary.mean for name, summary in summaries.items()})
    rows = []
    for name, summary in sorted(summaries.items(), key=lambda item: -item[1].mean):
        to_er = paired_difference(by_method[name], by_method["er"]) if name != "er" else None
        to_best = paired_difference(by_method[name], by_method[best]) if name != best else None
        rows.append(
            [
                f"`{name}`",
                *over(summary),
                interval(to_er),
                f"{to_er.won} of {to_er.units}" if to_er is not None else "-",
                interval(to_best),
                str(summary.runs),
            ]
        )
    fullest = max(by_method.values(), key=len)
    lasts, orders, seeds = (
        several(len(names(fullest, level)), str(level))
        for level in (Unit.LAST_SOURCE, Unit.ORDER, Unit.SEED)
    )
    return f"## {benchmark}: {lasts}, {orders}, {seeds}\n\n" + markdown(
        [
            "method",
            "mean ± standard error over last sources",
            "worst last source",
            "minus `er` [95%]",
            "better than `er`",
            f"minus `{best}`, the best replay baseline [95%]",
            "runs",
        ],
        rows,
    )


def best_replay(means: Mapping[str, float]) -> str:
    """The paper's replay baseline with the highest mean; er if none was run."""
    return max((name for name in REPLAY if name in means), key=means.__getitem__, default="er")


def readings_section() -> str:
    """Readings side by side: scores on the target and on the sources, which may decide a choice."""
    rows = []
    for benchmark in BENCHMARKS:
        paper = papers_scores(benchmark, "main", "adaptation")
        frame = rows_of("readings", benchmark)
        for (method, settings), part in frame.groupby(["method", "settings"]):
            if len(part) < 2:
                continue
            validation, _ = means(part, "source_validation_score")[str(method)]
            words = f"`{str(settings).strip('{}')}`".replace('"', "")
            rows.append(
                [
                    f"`{method}`",
                    benchmark,
                    "defaults" if settings == "{}" else words,
                    printed(means(part)[str(method)]),
                    f"{validation:.1f}",
                    f"{paper[str(method)][0]:.1f}" if method in paper else "-",
                ]
            )
    rows.sort(key=lambda line: (line[0], line[1] != BENCHMARKS[0], line[2] != "defaults"))
    header = ["method", "data set", "settings", "target", "source validation", "paper"]
    return markdown(header, rows)


def ablated(benchmark: str) -> dict[str, pd.DataFrame]:
    """The runs of orders_ablated by what was changed."""
    frame = rows_of("orders_ablated", benchmark)
    usual = rows_of("all_orders", benchmark).iloc[0]
    memory, steps = usual["memory_rows"], usual["steps_a_domain"]
    settings = frame["settings"]
    other_target = frame["target"] != usual["target"]
    changes = {
        "no alignment": settings == '{"alignment_weight": 0.0}',
        "dynamic priors": settings == '{"priors": "dynamic"}',
        "memory of 50%": frame["memory_rows"] == memory // 2,
        "memory of 25%": frame["memory_rows"] == memory // 4,
        "half the steps": frame["steps_a_domain"] == steps // 2,
    }
    named = {name: frame[chosen] for name, chosen in changes.items()}
    for target in sorted(set(frame["target"][other_target])):
        named[f"target {target}"] = frame[frame["target"] == target]
    return {name: part for name, part in named.items() if len(part)}


def ablations_section() -> str:
    """What each change does to the tailored methods, and whether they stay ahead of er."""
    rows = []
    for benchmark in BENCHMARKS:
        usual = scores(rows_of("all_orders", benchmark))
        for name, frame in ablated(benchmark).items():
            changed = scores(frame)
            methods = [method for method in TAILORED if method in changed]
            theirs = pooled(changed, methods)
            if not theirs:
                continue
            same_target = not name.startswith("target")
            drop = paired_difference(theirs, pooled(usual, methods)) if same_target else None
            lead = paired_difference(theirs, changed["er"]) if "er" in changed else None
            rows.append(
                [
                    benchmark,
                    name,
                    str(len(methods)),
                    f"{mean(theirs):.1f}",
                    interval(drop),
                    interval(lead),
                    ", ".join(several(len(names(theirs, level)), str(level)) for level in LEVELS),
                ]
            )
    header = [
        "data set",
        "change",
        "methods",
        "their mean",
        "minus the defaults [95%]",
        "minus `er` with the same change [95%]",
        "over",
    ]
    return markdown(header, rows)


def variance_section() -> str:
    """Where the variance of a method's scores lies, on each data set."""
    rows = []
    for benchmark in BENCHMARKS:
        for name, runs in enough(scores(rows_of("all_orders", benchmark))).items():
            if name in (*TAILORED, *REPLAY, "finetune", "er", "der++"):
                found = variance(runs)
                shares = (f"{found[level]:.0%}" if level in found else "-" for level in LEVELS)
                rows.append([benchmark, f"`{name}`", *shares])
    return markdown(["data set", "method", *map(str, LEVELS)], rows)


def sources_section() -> str:
    """Scores on the sources' training rows: replay alone beside the tailored methods."""
    rows = []
    for benchmark in BENCHMARKS:
        by_method = scores(rows_of("all_orders", benchmark), "source_train_score")
        tailored = pooled(by_method, TAILORED)
        gaps = [paired_difference(tailored, by_method[name]) for name in ("er", "der++")]
        rows.append([benchmark, f"{mean(tailored):.1f}", *map(interval, gaps)])
    return markdown(["data set", "tailored", "minus `er` [95%]", "minus `der++` [95%]"], rows)
