"""Methods over all orders of the sources, and what other settings change there."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from reproduction.arithmetic import (
    enough,
    mean,
    means,
    paired_difference,
    pooled,
    scores,
    summary_of,
)
from reproduction.compared import BENCHMARKS, REPLAY, TAILORED
from reproduction.finished_runs import rows_of
from reproduction.formatting import interval, markdown, over, printed, several
from reproduction.paper.scores import papers_scores


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
    orders = max(summary.units for summary in summaries.values())
    seeds = max(len(of_order) for values in by_method.values() for of_order in values.values())
    return f"### {benchmark}: {orders} orders, {several(seeds, 'seed')} each\n\n" + markdown(
        [
            "method",
            "mean ± standard error over orders",
            "worst order",
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
                    str(len(theirs)),
                ]
            )
    header = [
        "data set",
        "change",
        "methods",
        "their mean",
        "minus the defaults [95%]",
        "minus `er` with the same change [95%]",
        "orders",
    ]
    return markdown(header, rows)
