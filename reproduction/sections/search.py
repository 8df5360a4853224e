"""The paper's search with the order drawn in each trial, for docs/reproduction.md."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

import pandas as pd

from farshore.results.over_units import Difference, Scores, paired_difference
from farshore.runs import catalog
from reproduction.finished_runs import SCORE, interval, markdown, means, rows_of
from reproduction.paper_scores import papers_scores, printed
from reproduction.sections.claims import pooled

# Trials of the paper's search.
TRIALS = 20


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


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """The searches of which all trials have run."""
    complete = frame.groupby(["method", "run_seed"])["trial"].transform("nunique") >= TRIALS
    return frame[complete].reset_index(drop=True)


def selected(frame: pd.DataFrame) -> pd.DataFrame:
    """For every method and seed, the trial with the best score on the sources' validation rows."""
    best = frame.groupby(["method", "run_seed"])["source_validation_score"].idxmax()
    return frame.loc[best]


def protocol_section(benchmark: str) -> str:
    """The selected runs of every method whose trials have all run, with their last source."""
    frame = whole(rows_of("paper_protocol", benchmark))
    if frame.empty:
        return f"### {benchmark}\n\nNo method has finished all its trials yet.\n"
    chosen = selected(frame)
    paper = papers_scores(benchmark.removesuffix("-natural"), "main", "naive")
    scored = means(chosen)
    rows = []
    for name, of_method in ((str(key), part) for key, part in chosen.groupby("method")):
        mean = 100 * of_method[SCORE].mean()
        last = Counter(str(order).split(",")[-1] for order in of_method["order"])
        rows.append(
            [
                f"`{name}`",
                str(len(of_method)),
                printed(scored[name]) if name in scored else f"{mean:.1f}",
                ", ".join(f"{source} ({count})" for source, count in last.most_common()),
                printed(paper.get(name)),
            ]
        )
    rows.sort(key=lambda line: -float(line[2].split()[0]))
    header = ["method", "seeds", "selected, target", "last source of the selected", "paper"]
    return f"### {benchmark}\n\n" + markdown(header, rows)


def by_trial(frame: pd.DataFrame, method: str) -> Scores:
    """The target scores of a method in percent by draw: the seed and the trial."""
    of_method = frame[frame["method"] == method].dropna(subset=[SCORE])
    return {
        (str(entry["run_seed"]), str(entry["trial"])): {0: 100 * entry[SCORE]}
        for entry in of_method.to_dict("records")
    }


def ablated_section(benchmark: str) -> str:
    """The unchanged methods minus the ablated ones, trial by trial, and the selected runs."""
    usual = whole(rows_of("paper_protocol", benchmark))
    frame = rows_of("protocol_ablated", benchmark)
    rows = []
    for ablation in ABLATIONS:
        settings = frame["settings"].map(json.loads)
        changed = whole(frame[[each.get(ablation.setting) == ablation.value for each in settings]])
        methods = [name for name in catalog.names() if name in set(changed["method"])]
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


def with_count(difference: Difference | None) -> str:
    """A difference with its interval and the number of pairs that it won."""
    if difference is None:
        return "-"
    return f"{interval(difference)}, better in {difference.won} of {difference.units}"
