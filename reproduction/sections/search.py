"""The paper's search with the order drawn in each trial, for docs/reproduction.md."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from reproduction.arithmetic import (
    average,
    by_trial,
    means,
    paired_difference,
    pooled,
    selected,
    whole,
)
from reproduction.compared import METHODS
from reproduction.finished_runs import rows_of
from reproduction.formatting import markdown, printed, with_count
from reproduction.paper.scores import papers_scores


@dataclass(frozen=True)
class Ablation:
    """One change to the tailored methods: the setting, and the paper's table and its variant."""

    text: str
    setting: str
    value: float | str
    table: str
    variant: str


ABLATIONS = (
    Ablation("no alignment", "alignment_weight", 0.0, "no_alignment", "with alignment"),
    Ablation("dynamic priors", "priors", "dynamic", "dynamic_priors", "static priors"),
)


def protocol_section(benchmark: str) -> str:
    """The selected runs of every method whose trials have all run, with their last source."""
    frame = whole(rows_of("paper_protocol", benchmark))
    if frame.empty:
        return f"## {benchmark}\n\nNo method has finished all its trials yet.\n"
    chosen = selected(frame)
    paper = papers_scores(benchmark.removesuffix("-natural"), "main", "naive")
    scored = means(chosen)
    rows = []
    for name, of_method in ((str(key), part) for key, part in chosen.groupby("method")):
        last = Counter(str(order).split(",")[-1] for order in of_method["order"])
        rows.append(
            [
                f"`{name}`",
                str(len(of_method)),
                printed(scored[name]) if name in scored else f"{average(of_method):.1f}",
                ", ".join(f"{source} ({count})" for source, count in last.most_common()),
                printed(paper.get(name)),
            ]
        )
    rows.sort(key=lambda line: -float(line[2].split()[0]))
    header = ["method", "seeds", "selected, target", "last source of the selected", "paper"]
    return f"## {benchmark}\n\n" + markdown(header, rows)


def ablated_section(benchmark: str) -> str:
    """The unchanged methods minus the ablated ones, trial by trial, and the selected runs."""
    usual = whole(rows_of("paper_protocol", benchmark))
    frame = rows_of("protocol_ablated", benchmark)
    rows = []
    for ablation in ABLATIONS:
        settings = frame["settings"].map(json.loads)
        changed = whole(frame[[each.get(ablation.setting) == ablation.value for each in settings]])
        methods = [name for name in METHODS if name in set(changed["method"])]
        pairs = {name: (by_trial(usual, name), by_trial(changed, name)) for name in methods}
        scored = [means(selected(part)) for part in (usual, changed)]
        paper = [
            papers_scores(benchmark, ablation.table, variant=variant)
            for variant in (ablation.variant, "")
        ]
        for name in methods:
            rows.append(
                [
                    ablation.text,
                    f"`{name}`",
                    with_count(paired_difference(*pairs[name])),
                    *(printed(of_part.get(name)) for of_part in (*scored, *paper)),
                ]
            )
        unchanged, ablated = (
            pooled({name: pairs[name][side] for name in methods}, methods) for side in (0, 1)
        )
        if methods:
            difference = with_count(paired_difference(unchanged, ablated))
            rows.append([ablation.text, "their mean", difference, *[""] * 4])
    header = [
        "change",
        "method",
        "unchanged minus changed, all trials [95%]",
        "selected, unchanged",
        "selected, changed",
        "paper, unchanged",
        "paper, changed",
    ]
    return markdown(header, rows)
