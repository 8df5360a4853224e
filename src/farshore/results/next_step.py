"""The command to type next, and what for."""

import shlex
from pathlib import Path
from typing import Any

import pandas as pd

from ..benchmarks import BENCHMARKS
from ..benchmarks.own.table import OwnTable
from ..runs.plan import commands
from ..runs.plan.commands import assignments, compare_commands
from ..runs.plan.experiment import Experiment
from ..runs.plan.select import BETWEEN_NAMES, EACH
from ..runs.store.store import FOLDER
from ..tasks.labels import FROM_FILE
from .frame import SEPARATOR, whole
from .select import observed
from .summary import FEWEST_UNITS, Unit
from .verdict import Outcome, Recommendation, Verdict

# After a benchmark: the same question about a table, in commands that run as they are printed.
OWN_DATA = (
    "farshore demo --data patients.csv && "
    "farshore audit patients.csv --domain hospital --label disease"
)
SEEDS = 5
# Options of the user's data that `farshore learn` has, too.
LEARN_FLAGS = frozenset(
    {
        *("label", "drop", "time", "time_format", "group", "categories", "text", "weight"),
        *("separator", "encoding", "decimal", "metric", "classes", "size", "skip_broken"),
        *("weights", "task", "log_label", "unit"),
    }
)
# Those that a folder of images has, too.
FOLDER_FLAGS = frozenset({"metric", "classes", "size", "skip_broken", "weights"})


def next_step(
    frame: pd.DataFrame, verdict: Verdict, experiment: Experiment | None, runs: Path
) -> tuple[str, str]:
    """A command and the reason to type it; it depends on what the verdict lacks."""
    folder = "" if runs == Path("runs") else f" --runs {shlex.quote(str(runs))}"
    if experiment is None:  # after single runs: a comparison
        results = [result for result in observed(frame)["result"] if result is not None]
        known = [result.run for result in results if result.run.benchmark in BENCHMARKS]
        if not known:
            return "", ""
        sources = max(len(result.sources) for result in results)
        methods = [result.run.method for result in results]
        return commands.comparison_after(known[0], methods, sources)
    if experiment.command != "compare":
        if not whole(frame):
            recorded = runs / FOLDER / f"{experiment.name}.yaml"
            command = f"farshore sweep {shlex.quote(str(recorded))}{folder}"
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
    counts = [len(each.split(SEPARATOR)) for each in observed(frame)["sources"]]
    sources = max(counts, default=0)
    one_order = len(part.orders) == 1 and not part.orders[0].startswith(("all", "balanced"))
    in_time = any(each.data[0].options.get("time") is not None for each in experiment.parts)
    if one_order and sources > 1 and not in_time:
        word = "all" if sources < 3 else f"balanced:{sources}"
        again = compare_commands(experiment.but(parts=[part.but(orders=[word])]), folder)[0]
        return again, "see whether another order changes it"
    own = BENCHMARKS.get(part.data[0].benchmark).own_data
    if verdict.outcome is Outcome.UNTESTED:
        changes, reason = _more_units(experiment, verdict.ranking.unit, sources, own)
        if changes:
            parts = [part.but(**changes)]
            return compare_commands(experiment.but(parts=parts), folder)[0], reason
    return deploy(experiment, verdict.recommendation)


def deploy(experiment: Experiment, recommendation: Recommendation | None) -> tuple[str, str]:
    """After a comparison or an audit with a clear answer: train the model on your own data."""
    part = experiment.parts[0]
    data = part.data[0]
    if not BENCHMARKS.get(data.benchmark).own_data:
        return OWN_DATA, "the same question about a table, such as your own"
    if recommendation is None:
        return "", ""
    in_table = data.benchmark == OwnTable.name
    flags, site = (LEARN_FLAGS, "first-site.csv") if in_table else (FOLDER_FLAGS, "first-site/")
    options = {
        name: value
        for name, value in data.options.items()
        if name in flags and (name, value) != ("classes", FROM_FILE)
    }
    words = ["farshore", "learn", "model/", site, "--name", "site 1"]
    words += commands.data_words(data.benchmark, options)[1:]
    words += ["--method", recommendation.method]
    words += ["--network", part.network] if part.network is not None else []
    words += assignments("--network-set", part.network_settings)
    words += commands.setting_words(part.settings)
    return shlex.join(words), "train the model that you deploy, one site after another"


def _more_units(
    experiment: Experiment, unit: Unit, sources: int, own: bool
) -> tuple[dict[str, Any], str]:
    """What to change so that there are enough units for a test, and the reason."""
    part = experiment.parts[0]
    if unit is Unit.SEED and not own:
        search = experiment.search.but(seeds=list(range(SEEDS)))
        return {"search": search}, "add seeds to test the difference"
    if unit in (Unit.LAST_SOURCE, Unit.ORDER) and sources >= FEWEST_UNITS and not own:
        return {"orders": [f"balanced:{sources}"]}, "test the difference over more orders"
    constructed = part.data[0].options.get("domain_by") is not None
    if part.target == EACH or sources < 2 or constructed:
        return {}, ""
    # An order of all sources has no place for the domain that was the target so far.
    orders = [word for word in part.orders if BETWEEN_NAMES not in word] or ["listed"]
    return {"target": None if own else EACH, "orders": orders}, "leave every domain out in turn"
