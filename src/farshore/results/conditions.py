"""What was measured, in one line that stands below a verdict."""

from __future__ import annotations

import pandas as pd

from ..base.names import natural_key
from ..tasks.metrics import guess_text
from .frame import SEPARATOR
from .select import scored
from .summary import metric_of
from .words import listed, several

# How many data sets and domains the line names.
NAMED, DOMAINS = 5, 8


def conditions(frame: pd.DataFrame) -> str:
    """What was measured: data, sources, target, what guessing scores, seeds, orders and steps."""
    runs = scored(frame)
    # A method that learns all sources at once may have run in another order.
    continual = runs[runs["kind"] == "continual"]
    runs = continual if len(continual) else runs
    if runs.empty:
        return "No run has a score on the target."
    datasets = list(dict.fromkeys(runs["benchmark"]))
    places = runs.groupby(["benchmark", "target", "order", "row"])["seed"].nunique()
    counts = [several(int(places.max()), "seed")]
    if len(datasets) > 1:
        return f"{several(len(datasets), 'data set')} ({listed(datasets, NAMED)}); {counts[0]}."
    targets = list(dict.fromkeys(runs["target"]))
    orders = int(runs.groupby("target")["order"].nunique().max())
    parts = [f"{datasets[0]}, {metric_of(frame).label}", _domains(runs, targets, orders)]
    guesses = runs.drop_duplicates("target")["guess"].dropna().astype(float)
    parts.append(
        guess_text(str(runs["metric"].iloc[0]), int(runs["classes"].iloc[0]), guesses.tolist())
    )
    counts.append(several(orders, "order") + (" per target" if len(targets) > 1 else ""))
    steps = {result.steps for result in runs["result"]}
    if len(steps) == 1:
        counts.append(f"{steps.pop()} steps per domain")
    return "; ".join([*parts, ", ".join(counts)]) + "."


def _domains(runs: pd.DataFrame, targets: list[str], orders: int) -> str:
    if any(result.run.left_out for result in runs["result"]):
        return (
            f"unseen targets {_few(targets)}, each learned from the domains before it, in "
            "chronological order"
        )
    if len(targets) > 1:
        return f"unseen targets {_few(targets)}, each learned from the other domains"
    sources = str(runs["sources"].iloc[0]).split(SEPARATOR)
    if orders == 1 and runs["sources"].nunique() == 1:
        return f"sources in the order {SEPARATOR.join(sources)}, unseen target {targets[0]}"
    return f"sources {_few(sorted(sources, key=natural_key))}, unseen target {targets[0]}"


def _few(names: list[str]) -> str:
    if len(names) <= DOMAINS:
        return ", ".join(names)
    return f"{', '.join(names[: DOMAINS - 1])} and {len(names) - DOMAINS + 1} more"
