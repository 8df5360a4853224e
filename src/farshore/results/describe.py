"""What tables and verdicts say about their runs: title, numbers, conditions and remarks."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..base.names import natural_key
from ..runs.plan.experiment import Experiment
from ..runs.plan.plan import Plan
from ..runs.plan.select import DRAWN
from ..runs.store.store import TINY
from ..tasks.metrics import guess_text, listed, several
from .frame import ALONE, SEPARATOR
from .measures import Measure
from .select import observed, scored
from .summary import FEWEST_UNITS, Unit, meaning, metric_of, unit_of
from .tables import Description

UNKNOWN_PLAN = (
    "What was planned is not recorded with these runs, so nothing says whether some are missing."
)
COMPARED = "All methods ran with their defaults or the given settings, without a search."
ORACLE = (
    "Settings were selected on the target itself. This measures what honest selection costs; it is "
    "not a result."
)
TINY_SCALE = (
    "Tiny scale: two steps per domain on embedded data. This shows that the experiment runs; its "
    "numbers mean nothing."
)
EACH_TARGET = (
    "Several domains were the target in turn, and each target counts once: more orders and seeds "
    "do not make the error smaller. Differences are paired: the same target, the same order, the "
    "same seed."
)
ONE_ORDER = (
    "One order of the sources. Another order may change the scores by more than the methods "
    "differ; the orders all or balanced:8 measure it."
)


def is_ranked(plans: Sequence[Plan]) -> bool:
    """Whether methods can be ranked: not if settings vary, or the best seed alone is shown."""
    parts = [part for plan in plans for part in (plan.experiment.parts if plan.experiment else ())]
    return not any(part.vary or part.best_seed for part in parts)


def describe(
    name: str,
    experiment: Experiment | None,
    plans: Sequence[Plan],
    frame: pd.DataFrame,
    measure: Measure,
) -> Description:
    """All about the table of these runs but its numbers; `plans` are those that it shows."""
    runs = observed(frame)
    title = _capitalized(measure.title)
    if experiment is None:
        return _without_plan(name, runs, title, measure)
    searched = next((plan.experiment for plan in plans if plan.experiment), experiment)
    whole = not any(plan.waiting or plan.absent for plan in plans)
    about = f"{title} ({measure.unit}): {_mean(runs)}{_search(searched)}."
    remarks = tuple(_remarks(name, experiment, plans, runs))
    return Description(name, _capitalized(experiment.about), about, remarks, whole)


def _without_plan(name: str, runs: pd.DataFrame, title: str, measure: Measure) -> Description:
    if len(runs) == 1:
        run = runs.iloc[0]
        about = f"{title} ({measure.unit}) of a single run, seed {run['seed']}."
        return Description(name, f"{run['method']} on {run['benchmark']}", about)
    heading = "runs without a recorded plan" if name == ALONE else f"{name}: runs without a plan"
    about = f"{title} ({measure.unit}): {_mean(runs)}."
    return Description(name, _capitalized(heading), about, (UNKNOWN_PLAN,), planned=False)


def _mean(runs: pd.DataFrame) -> str:
    """What the number of a cell is."""
    if runs["benchmark"].nunique() > 1:
        return (
            "mean, and standard error over the units of the column (targets, else last sources, "
            f"orders or seeds) if there are at least {FEWEST_UNITS}"
        )
    unit, count = unit_of(runs), _count(runs)
    if count < FEWEST_UNITS:
        return f"mean over {several(count, unit)}" if count > 1 else "one run per cell"
    return f"mean ± standard error over {several(count, unit)}"


def _count(runs: pd.DataFrame) -> int:
    """How many units these runs of one data set have."""
    columns = {Unit.TARGET: "target", Unit.LAST_SOURCE: "last_source", Unit.ORDER: "order"}
    return int(runs[columns.get(unit_of(runs), "seed")].nunique())


def _search(experiment: Experiment) -> str:
    search = experiment.search
    if any(part.search is not None or part.settings_from is not None for part in experiment.parts):
        return ""
    seeds = several(len(search.run_seeds), "seed")
    if experiment.command == "compare":
        return f"; {seeds}"
    if search.trials == 1:
        return f"; {seeds} at the defaults"
    best = f"the best of {search.trials} trials"
    return f"; {seeds}, each with {best}, selected by {experiment.selection}"


def _remarks(
    name: str, experiment: Experiment, plans: Sequence[Plan], runs: pd.DataFrame
) -> Iterator[str]:
    if name.endswith(TINY):
        yield TINY_SCALE
    if any(plan.selection == "oracle" for plan in plans):
        yield ORACLE
    if experiment.command == "compare":
        yield COMPARED
    for plan in plans:
        for benchmark, absent in plan.absent.items():
            yield f"{benchmark}: {absent.why}; {several(absent.runs, 'run')} cannot be looked up."
        if plan.waiting:
            more = f" (and {len(plan.waiting) - 1} more)" if len(plan.waiting) > 1 else ""
            yield f"Not planned yet: {plan.waiting[0].sentence}{more}."
    units = {unit_of(of_set) for _, of_set in runs.groupby("benchmark")}
    if Unit.TARGET in units:
        yield EACH_TARGET
    elif units & {Unit.LAST_SOURCE, Unit.ORDER}:
        if runs["benchmark"].nunique() == 1 and _count(runs) >= FEWEST_UNITS:
            yield from meaning(runs)
    elif not name.endswith(TINY) and not (runs["order"] == DRAWN).any():
        yield ONE_ORDER


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


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
    guesses = runs.drop_duplicates("target")["guess"].dropna().astype(float).tolist()
    parts.append(guess_text(str(runs["metric"].iloc[0]), int(runs["classes"].iloc[0]), guesses))
    counts.append(several(orders, "order") + (" per target" if len(targets) > 1 else ""))
    steps = {result.steps for result in runs["result"]}
    if len(steps) == 1:
        counts.append(f"{steps.pop()} steps per domain")
    return "; ".join([*parts, ", ".join(counts)]) + "."


def _domains(runs: pd.DataFrame, targets: list[str], orders: int) -> str:
    each = f"unseen targets {_few(targets)}, each learned from the"
    if any(result.run.left_out for result in runs["result"]):
        return f"{each} domains before it, in chronological order"
    if len(targets) > 1:
        return f"{each} other domains"
    sources = str(runs["sources"].iloc[0]).split(SEPARATOR)
    if orders == 1 and runs["sources"].nunique() == 1:
        return f"sources in the order {SEPARATOR.join(sources)}, unseen target {targets[0]}"
    return f"sources {_few(sorted(sources, key=natural_key))}, unseen target {targets[0]}"


def _few(names: list[str]) -> str:
    if len(names) <= DOMAINS:
        return ", ".join(names)
    return f"{', '.join(names[: DOMAINS - 1])} and {len(names) - DOMAINS + 1} more"
