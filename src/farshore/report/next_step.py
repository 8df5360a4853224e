"""The command to type next, and what for."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..benchmarks import BENCHMARKS
from ..runs.plan.experiment import Experiment
from .compared import compare_commands
from .contest import Contest
from .verdict import Outcome, Verdict

OWN_DATA = "farshore audit your-table.csv --domain SITE --label CLASS"
SEEDS = 5


def next_step(
    contest: Contest, verdict: Verdict, experiment: Experiment | None, runs: Path
) -> tuple[str, str]:
    """A command and the reason to type it; it depends on what the verdict lacks."""
    folder = "" if runs == Path("runs") else f" --runs {shlex.quote(str(runs))}"
    compared = experiment is not None and experiment.command == "compare"
    if experiment is not None and not contest.whole:
        command = (
            compare_commands(experiment, folder)[0]
            if compared
            else f"farshore sweep {_recorded(experiment, runs)}{folder}"
        )
        return command, "finish the runs that are missing"
    if experiment is None or not compared:
        return _from_runs(contest, verdict, experiment)
    part = experiment.parts[0]
    sources = max(len(place.order) for place in contest.places)
    one_order = len(part.orders) == 1 and not part.orders[0].startswith(("all", "balanced"))
    if one_order and sources > 1 and not _in_time(experiment):
        word = "all" if sources < 3 else f"balanced:{sources}"
        changed = part.model_copy(update={"orders": [word]})
        return _again(experiment, changed, folder), "see whether another order changes it"
    if verdict.outcome is Outcome.UNTESTED:
        search = experiment.search.model_copy(update={"seeds": list(range(SEEDS))})
        changed = part.model_copy(update={"search": search})
        return _again(experiment, changed, folder), "add seeds to test the difference"
    if BENCHMARKS.get(part.data[0].benchmark).own_data and verdict.leader is not None:
        label = part.data[0].options.get("label", "CLASS")
        return (
            f'farshore learn model/ first-site.csv --name "site 1" --label '
            f"{shlex.quote(str(label))} --method {verdict.leader.method}",
            "train the model that you deploy, one site after another",
        )
    return OWN_DATA, "ask the same question about your own data"


def _recorded(experiment: Experiment, runs: Path) -> str:
    """The file of the experiment that a sweep writes into the folder of runs."""
    return shlex.quote(f"{runs}/experiments/{experiment.name}.yaml")


def _again(experiment: Experiment, part: object, folder: str) -> str:
    return compare_commands(experiment.model_copy(update={"parts": [part]}), folder)[0]


def _from_runs(
    contest: Contest, verdict: Verdict, experiment: Experiment | None
) -> tuple[str, str]:
    """After a sweep: what the leader does. After single runs: a comparison."""
    leader = verdict.leader
    if experiment is not None:
        if leader is None:
            return "", ""
        return f"farshore methods {leader.method}", "see what the leading method does"
    datasets = contest.datasets
    known = [name for name in datasets if name in BENCHMARKS]
    if not known:
        return "", ""
    methods = dict.fromkeys(["finetune", "er", *(one.method for one in contest.entrants)])
    sources = max((len(place.order) for place in contest.places), default=0)
    orders = f" --orders balanced:{sources}" if sources > 2 else ""
    command = f"farshore compare {known[0]} --methods {','.join(list(methods)[:8])}{orders}"
    return command, "compare with other methods over several orders"


def _in_time(experiment: Experiment) -> bool:
    return any(part.data[0].options.get("time") is not None for part in experiment.parts)
