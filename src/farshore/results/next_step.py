"""The command to type next, and what for."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ..benchmarks import BENCHMARKS
from ..runs.plan.commands import compare_commands, comparison_after
from ..runs.plan.experiment import Experiment, Part
from .frame import SEPARATOR, whole
from .select import observed
from .verdict import Outcome, Verdict

OWN_DATA = "farshore audit your-table.csv --domain SITE --label CLASS"
SEEDS = 5


def next_step(
    frame: pd.DataFrame, verdict: Verdict, experiment: Experiment | None, runs: Path
) -> tuple[str, str]:
    """A command and the reason to type it; it depends on what the verdict lacks."""
    folder = "" if runs == Path("runs") else f" --runs {shlex.quote(str(runs))}"
    if experiment is None:
        return _from_runs(frame)
    if experiment.command != "compare":
        if not whole(frame):
            command = f"farshore sweep {shlex.quote(experiment.name)}.yaml{folder}"
            return command, "finish the runs that are missing"
        if verdict.recommendation is None:
            return "", ""
        command = f"farshore methods {verdict.recommendation.method}"
        return command, "see what the recommended method does"
    if not whole(frame):
        return compare_commands(experiment, folder)[0], "finish the runs that are missing"
    return _after_comparison(frame, verdict, experiment, folder)


def _after_comparison(
    frame: pd.DataFrame, verdict: Verdict, experiment: Experiment, folder: str
) -> tuple[str, str]:
    part = experiment.parts[0]
    data = part.data[0]
    sources = _most_sources(observed(frame)["sources"])
    one_order = len(part.orders) == 1 and not part.orders[0].startswith(("all", "balanced"))
    in_time = any(each.data[0].options.get("time") is not None for each in experiment.parts)
    if one_order and sources > 1 and not in_time:
        word = "all" if sources < 3 else f"balanced:{sources}"
        changed = part.model_copy(update={"orders": [word]})
        return _again(experiment, changed, folder), "see whether another order changes it"
    own = BENCHMARKS.get(data.benchmark).own_data
    if own and verdict.outcome is Outcome.UNTESTED and part.target is not None:
        changed = part.model_copy(update={"target": None})  # every domain in turn
        return _again(experiment, changed, folder), "leave every domain out in turn"
    if verdict.outcome is Outcome.UNTESTED and not own:
        search = experiment.search.model_copy(update={"seeds": list(range(SEEDS))})
        changed = part.model_copy(update={"search": search})
        return _again(experiment, changed, folder), "add seeds to test the difference"
    if own and verdict.recommendation is not None:
        label = shlex.quote(str(data.options.get("label", "CLASS")))
        return (
            f'farshore learn model/ first-site.csv --name "site 1" --label {label} '
            f"--method {verdict.recommendation.method}",
            "train the model that you deploy, one site after another",
        )
    return OWN_DATA, "ask the same question about your own data"


def _again(experiment: Experiment, part: Part, folder: str) -> str:
    return compare_commands(experiment.model_copy(update={"parts": [part]}), folder)[0]


def _from_runs(frame: pd.DataFrame) -> tuple[str, str]:
    """After single runs: a comparison."""
    results = [result for result in observed(frame)["result"] if result is not None]
    known = [result.run for result in results if result.run.benchmark in BENCHMARKS]
    if not known:
        return "", ""
    sources = max(len(result.sources) for result in results)
    return comparison_after(known[0], [result.run.method for result in results], sources)


def _most_sources(sources: Iterable[str]) -> int:
    return max((len(each.split(SEPARATOR)) for each in sources), default=0)
