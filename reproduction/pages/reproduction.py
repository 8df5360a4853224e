"""Generate docs/reproduction.md: our numbers beside the paper's, claim by claim.

`python -m reproduction.pages.reproduction --collect RUNS` first copies the finished runs of the
experiments below from a store into reproduction/tables/*.csv, which are committed; the page is made
from those tables alone. `make docs` writes the page, and a test checks that it is up to date.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import pandas as pd

from farshore.benchmarks.source import make_benchmark
from farshore.results.over_units import FEWEST_UNITS, over_units, paired_difference
from farshore.runs import catalog
from reproduction import DOCS
from reproduction.finished_runs import (
    collect,
    filled,
    interval,
    markdown,
    means,
    planned_runs,
    rows_of,
    scores,
    signed,
    table,
)
from reproduction.paper_scores import paper_numbers, papers_scores, printed
from reproduction.sections.claims import (
    BENCHMARKS,
    PENALISED,
    REPLAY,
    TAILORED,
    claims_section,
    pooled,
)
from reproduction.sections.covertype import (
    cope_section,
    methods_table,
    orders_table,
    search_section,
    second_section,
    share_section,
)
from reproduction.sections.paper_claims import gains_section, leads_section
from reproduction.sections.rotated_mnist import column_section, last_section, searched_section
from reproduction.sections.search import ablated_section, protocol_section
from reproduction.sections.sensitivity import sensitivity_section

PAGE = DOCS / "reproduction.md"
HEAD = Path(__file__).parent / "reproduction-head.md"
# The data sets of the search with drawn orders.
SEARCHED = (*BENCHMARKS, "covertype-natural")
# In the order of their importance.
COLLECTED = (
    "all_orders",
    "fitted_order",
    "searched_order",
    "readings",
    "orders_ablated",
    "orders_sensitivity",
    "paper_protocol",
    "protocol_ablated",
    "image_benchmarks",
)


def orders_section(benchmark: str) -> str:
    """Every method over all orders, paired with er and with the best replay baseline."""
    frame = rows_of("all_orders", benchmark)
    by_method = scores(frame)
    summaries = {
        name: summary
        for name, values in by_method.items()
        if (summary := over_units(values)) is not None and summary.units >= FEWEST_UNITS
    }
    best = best_replay({name: summary.mean for name, summary in summaries.items()})
    rows = []
    for name, summary in sorted(summaries.items(), key=lambda item: -item[1].mean):
        to_er = paired_difference(by_method[name], by_method["er"]) if name != "er" else None
        to_best = paired_difference(by_method[name], by_method[best]) if name != best else None
        rows.append(
            [
                f"`{name}`",
                f"{summary.mean:.1f} ± {summary.error or 0.0:.1f}",
                f"{summary.worst:.1f} ({' '.join(summary.worst_unit)})",
                interval(to_er),
                f"{to_er.won} of {to_er.units}" if to_er is not None else "-",
                interval(to_best),
                str(summary.runs),
            ]
        )
    orders = max(summary.units for summary in summaries.values())
    seeds = max(len(of_order) for values in by_method.values() for of_order in values.values())
    return (
        f"### {benchmark}: {orders} orders, {seeds} {'seed' if seeds == 1 else 'seeds'} each\n\n"
        + markdown(
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
            summary = over_units(theirs)
            assert summary is not None
            same_target = not name.startswith("target")
            drop = paired_difference(theirs, pooled(usual, methods)) if same_target else None
            lead = paired_difference(theirs, changed["er"]) if "er" in changed else None
            rows.append(
                [
                    benchmark,
                    name,
                    str(len(methods)),
                    f"{summary.mean:.1f}",
                    interval(drop),
                    interval(lead),
                    str(summary.units),
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


def images_section() -> str:
    """The image data sets, by order: too few orders for an interval over them."""
    return "\n".join(map(images_table, ("wm811k", "cifar10-c")))


def images_table(benchmark: str) -> str:
    """Methods on one image data set in the listed and in the reversed order."""
    frame = rows_of("image_benchmarks", benchmark)
    if frame.empty:
        return f"### {benchmark}\n\nNot run yet.\n"
    kind = make_benchmark(benchmark, {})
    listed = [name for name in kind.domains if name != kind.default_target]
    orders = {"listed": listed, "reversed": listed[::-1]}
    by_order = [means(frame[frame["order"] == ",".join(order)]) for order in orders.values()]
    overall = means(frame)
    paper = papers_scores(benchmark, "main")
    rows = [
        [
            f"`{name}`",
            *(f"{of_order[name][0]:.1f} ± {of_order[name][1]:.1f}" for of_order in by_order),
            *(
                signed(of_order[name][0] - of_order["er"][0]) if name != "er" else "-"
                for of_order in by_order
            ),
            printed(paper.get(name)),
        ]
        for name in sorted(overall, key=lambda name: -overall[name][0])
        if all(name in of_order for of_order in by_order)
    ]
    header = ["method", *orders, *(f"{order}, minus `er`" for order in orders), "paper"]
    return f"### {benchmark}\n\nThe listed order is {', '.join(listed)}.\n\n" + markdown(
        header, rows
    )


def transfer_section() -> str:
    """Backward transfer beside the paper's, and the gain by learning each source."""
    theirs = {
        key: mean for key, (mean, _) in paper_numbers("backward_transfer").items() if not key[1]
    }
    positive = sum(mean > 0 for mean in theirs.values())
    plain = [mean for (name, _, _), mean in theirs.items() if name == "finetune"]
    rows = []
    for benchmark in BENCHMARKS:
        frame = rows_of("all_orders", benchmark)
        ours = {
            column: scores(frame, column) for column in ("backward_transfer", "gain_by_learning")
        }
        paper = papers_scores(benchmark, "backward_transfer")
        for name in catalog.names():
            summaries = [over_units(by_method.get(name, {})) for by_method in ours.values()]
            transfer, gain = summaries
            if (
                name not in paper
                or transfer is None
                or gain is None
                or transfer.units < FEWEST_UNITS
            ):
                continue
            rows.append(
                [
                    benchmark,
                    f"`{name}`",
                    f"{paper[name][0]:+.1f} ± {paper[name][1]:.1f}",
                    f"{transfer.mean:+.1f} ({transfer.worst:+.1f} to {transfer.best:+.1f})",
                    f"{gain.mean:+.1f} ({gain.worst:+.1f} to {gain.best:+.1f})",
                ]
            )
    summary = (
        f"In the paper, {positive} of {len(theirs)} values are positive, including fine-tuning's "
        f"({min(plain):+.1f} to {max(plain):+.1f}).\n\n"
    )
    header = ["data set", "method", "paper", "backward transfer", "final minus before learning"]
    return summary + markdown(header, rows) + "\n" + transfer_errors()


def transfer_errors() -> str:
    """Standard errors over seeds: the paper's, and ours in a single order."""
    paper = papers_scores("rotated-mnist", "backward_transfer")
    fitted = table("fitted_order")
    theirs = median(error for _, error in paper.values())
    transfer, gain = (
        median(error for name, (_, error) in means(fitted, column).items() if name in paper)
        for column in ("backward_transfer", "gain_by_learning")
    )
    return (
        "The standard errors over three seeds are informative too. On rotated-mnist, the median of "
        f"the paper's is {theirs:.1f} points. The median of ours, in a single order (experiment "
        f"`fitted_order`), is {transfer:.1f} for backward transfer and {gain:.1f} for the last "
        "column.\n"
    )


def runtime_section() -> str:
    """Training time and its multiple of fine-tuning's, beside the paper's."""
    frame = rows_of("all_orders", "rotated-mnist")
    ours = frame.groupby("method")["seconds_of_training"].mean()
    paper = {
        name: mean
        for (name, variant, dataset), (mean, _) in paper_numbers("runtime").items()
        if dataset == "rotated-mnist" and not variant
    }
    rows = [
        [
            f"`{name}`",
            f"{ours[name]:.0f}",
            f"{paper[name]:.1f}" if name in paper else "-",
            f"{ours[name] / ours['finetune']:.2f}",
            f"{paper[name] / paper['finetune']:.2f}" if name in paper else "-",
        ]
        for name in catalog.names()
        if name in ours and (name in paper or name == "er")
    ]
    header = ["method", "ours, seconds", "paper, minutes", "ours / finetune", "paper / finetune"]
    return markdown(header, rows)


def missing_section() -> str:
    """How much of each experiment has run, and what is missing."""
    rows = []
    for name in COLLECTED:
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


def text() -> str:
    """The whole page."""
    sections = {
        "leads": leads_section,
        "claims": claims_section,
        "orders rotated-mnist": lambda: orders_section("rotated-mnist"),
        "orders covertype": lambda: orders_section("covertype"),
        "column": column_section,
        "last": last_section,
        "searched": searched_section,
        "share": share_section,
        "orders of covertype": orders_table,
        "methods on covertype": methods_table,
        "search on covertype": search_section,
        "second covertype": second_section,
        "cope": cope_section,
        "readings": readings_section,
        "gains": gains_section,
        "ablations": ablations_section,
        "sensitivity": lambda: "\n".join(
            sensitivity_section(benchmark, PENALISED) for benchmark in BENCHMARKS
        ),
        "protocol": lambda: "\n".join(map(protocol_section, SEARCHED)),
        "protocol ablated": lambda: ablated_section("covertype"),
        "images": images_section,
        "transfer": transfer_section,
        "runtime": runtime_section,
        "missing": missing_section,
    }
    return filled(HEAD, sections)


def write(runs: Path | None = None) -> None:
    """Write the page; if a store is given, first copy its finished runs into the tables."""
    if runs is not None:
        collect(runs, COLLECTED)
    PAGE.write_text(text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collect", type=Path, metavar="RUNS", help="store to copy runs from")
    write(parser.parse_args().collect)
