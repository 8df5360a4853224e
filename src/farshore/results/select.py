"""Which runs count: the best trial of each seed, by the rule of the experiment.

A seed whose trials all failed keeps its first one, so that its method is known to lack a score.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..runs.search.selection import Rule, Trial
from ..runs.search.selection import select as select_trial


def select(frame: pd.DataFrame, rule: Rule = "source-validation") -> pd.DataFrame:
    """The frame with `selected`: one run per seed of each method at each target in each order.

    A trial that is judged by runs with held-out sources counts once all of those have finished.
    """
    columns = ("experiment", "condition", "seed", "trial", "held_out", "status", "result")
    judging: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(dict)
    seeds: dict[tuple[Any, ...], list[tuple[int, int, str, Any]]] = defaultdict(list)
    rows = zip(*(frame[name] for name in columns), strict=True)
    for place, (*position, trial, held_out, status, result) in enumerate(rows):
        if held_out:
            judging[(*position, trial)][held_out] = result
        else:
            seeds[(*position,)].append((trial, place, status, result))
    selected = [False] * len(frame)
    for seed, runs in seeds.items():
        judged = {trial: judging.get((*seed, trial), {}) for trial, *_ in runs}
        selected[_best(runs, judged, rule)] = True
    return frame.assign(selected=selected)


def _best(
    runs: list[tuple[int, int, str, Any]], judging: Mapping[int, Mapping[str, Any]], rule: Rule
) -> int:
    """The place of the run that counts."""
    if len(runs) == 1:
        return runs[0][1]
    runs = sorted(runs, key=lambda run: run[:2])
    trials = [
        Trial(number, result, judging[trial])
        for number, (trial, _, _, result) in enumerate(runs)
        if result is not None and None not in judging[trial].values()
    ]
    best = select_trial(trials, rule)
    if best is not None:
        return runs[best.number][1]
    ended = [run for run in runs if run[2] != "missing"]
    return (ended or runs)[0][1]


def observed(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs that count."""
    return frame[frame["selected"].astype(bool)]


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs that count and have a score on the target."""
    runs = observed(frame)
    return runs[runs["score"].notna()]
