"""RUNS/tables/NAME.csv: one row per method, data set, target and order of an experiment.

Means and standard errors are over seeds; there is no error from fewer than three.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..base.files import write_inside
from ..data.tables.spreadsheet import as_csv_text
from ..errors import FarshoreError
from ..runs import catalog
from ..runs.plan.experiment import Book, Experiment, TableName, check_dependencies
from ..runs.plan.plan import Condition, Missing, Plan, make_plan
from ..runs.plan.select import DRAWN
from ..runs.store.store import Store
from ..tasks.metrics import Metric
from .frame import frame_of_plan, results_in_metric
from .measures import NUMBERS, Reader, mean_of, step_milliseconds
from .select import observed, select
from .summary import Estimate, Scores, Unit, difference, estimate

NUMBER = Metric("number", "number", "", 1.0, low=-math.inf, high=math.inf)
# The columns of each table of selected runs, and how a run's value is read.
COLUMNS: dict[TableName, dict[str, Reader]] = {
    "backward transfer": {
        "backward_transfer_validation": lambda result: result.backward_transfer("validation"),
        "backward_transfer_train": lambda result: result.backward_transfer("train"),
        "forgetting_validation": lambda result: result.forgetting("validation"),
    },
    "source performance": {
        "source_train_score": NUMBERS["source_train_score"],
        "source_validation_score": NUMBERS["source_validation_score"],
    },
    "run time": {
        "seconds_in_all": NUMBERS["seconds"],
        "seconds_of_training": lambda result: result.seconds["training"],
        "milliseconds_a_step": step_milliseconds,
    },
    "step time": {"milliseconds_a_step": step_milliseconds},
}
# Further columns of every experiment that are called otherwise than the number that they show.
RENAMED = {"seconds": "seconds_a_run", "step_milliseconds": "milliseconds_a_step"}

CONDITION = ("benchmark", "method", "target", "order", "varied")
# Benchmark, method, and the target if there are several.
Key = tuple[str, str, str]


def experiment_table(plan: Plan, frame: pd.DataFrame) -> pd.DataFrame:
    """The selected runs of an experiment; a note counts the missing ones."""
    rows = []
    for condition, runs, missing in _by_condition(plan, frame):
        named = {name: getattr(condition, name) for name in CONDITION}
        row = {"experiment": plan.name, "part": condition.part + 1, **named}
        numbers = _numbers(runs) if missing is None else {"note": missing.sentence}
        rows.append({**row, "selection": plan.selection, **numbers})
    return pd.DataFrame(rows)


def _by_condition(
    plan: Plan, frame: pd.DataFrame
) -> Iterator[tuple[Condition, pd.DataFrame, Missing | None]]:
    conditions = {str(planned.condition): planned.condition for planned in plan.runs}
    for text, runs in frame.groupby("condition", sort=False):
        condition = conditions.get(str(text))
        if condition is not None:
            ahead = sum(study.ahead for (key, _), study in plan.studies.items() if key == condition)
            count = ahead + int((runs["status"] == "missing").sum())
            yield condition, runs, Missing(count, len(runs) + ahead) if count else None


def _numbers(runs: pd.DataFrame) -> dict[str, Any]:
    chosen = _chosen(runs)
    results = list(chosen["result"])
    target, error = _mean_and_error(_by_seed(chosen, lambda result: result.target_score))
    return {
        "seeds": len(chosen),
        "seeds_planned": runs["seed"].nunique(),
        "trials_selected": " ".join(map(str, chosen["trial"])),
        "target_score_unseen": target,
        "target_standard_error": error,
        **{
            RENAMED.get(name, name): mean_of(results, read)
            for name, read in NUMBERS.items()
            if name != "rows_per_step"
        },
    }


def _chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """The selected run of each seed that has one; all trials of a seed may have diverged."""
    chosen = observed(runs)
    chosen = chosen[chosen["status"] == "done"].sort_values("seed")
    return chosen.assign(result=results_in_metric(chosen))


def _by_seed(chosen: pd.DataFrame, read: Reader) -> Scores:
    runs = zip(chosen["seed"], chosen["result"], strict=True)
    values = {("", "", "", "", int(seed)): read(result) for seed, result in runs}
    return {place: value for place, value in values.items() if value is not None}


def _mean_and_error(scores: Scores) -> tuple[float | None, float | None]:
    found: Estimate | None = estimate(scores, Unit.SEED, NUMBER)
    return (found.mean, found.error) if found is not None else (None, None)


def derived_table(experiment: Experiment, store: Store, book: Book) -> pd.DataFrame:
    """The table of an experiment that reads others. Missing runs are listed with a note."""
    assert experiment.table is not None
    check_dependencies(experiment, book)
    found: dict[Key, pd.DataFrame | Missing] = {}
    for name in experiment.reads:
        for key, runs in _selected_by(book(name), store, book):
            found.setdefault(key, runs)
    chosen = {key: runs for key, runs in found.items() if not isinstance(runs, Missing)}
    missing = {key: runs for key, runs in found.items() if isinstance(runs, Missing)}
    if not chosen:
        texts = [f"{key[1]} on {key[0]}: {each.sentence}" for key, each in missing.items()]
        raise FarshoreError(
            f"{experiment.name} reads {' and '.join(experiment.reads)}, which have no finished "
            f"runs ({next(iter(texts), 'they have no runs')}): sweep them first"
        )
    if experiment.table == "naive and tailored":
        rows = _pairs(chosen)
    else:
        rows = [_head(key) | _columns(runs, experiment.table) for key, runs in chosen.items()]
    rows += [_head(key) | {"note": each.sentence} for key, each in missing.items()]
    return pd.DataFrame(rows)


def _selected_by(
    experiment: Experiment, store: Store, book: Book
) -> Iterator[tuple[Key, pd.DataFrame | Missing]]:
    """The runs in the listed order, or in the orders that were drawn with their settings."""
    plan = make_plan(experiment, store, book)
    frame = select(frame_of_plan(plan, store), plan.selection)
    for condition, runs, missing in _by_condition(plan, frame):
        if condition.order in ("listed", DRAWN) and not condition.varied:
            key = condition.benchmark, condition.method, condition.target
            yield key, runs if missing is None else missing
    for benchmark, absent in plan.absent.items():
        for part in experiment.parts:
            if benchmark in [data.title for data in part.data]:
                nothing = Missing(absent.runs, absent.runs, absent.why)
                yield from (((benchmark, method, ""), nothing) for method in part.systems)


def _head(key: Key) -> dict[str, Any]:
    """The columns that say what a row is about; `target` is empty if there is only one."""
    return dict(zip(("benchmark", "method", "target"), key, strict=True))


def _columns(runs: pd.DataFrame, table: TableName) -> dict[str, Any]:
    chosen = _chosen(runs)
    columns: dict[str, Any] = {"seeds": len(chosen), "seeds_planned": runs["seed"].nunique()}
    for name, read in COLUMNS[table].items():
        columns[name], columns[f"{name}_standard_error"] = _mean_and_error(_by_seed(chosen, read))
    return columns


def _pairs(chosen: Mapping[Key, pd.DataFrame]) -> list[dict[str, Any]]:
    """Each tailored method next to its naive form, if both have runs."""
    rows = []
    for (benchmark, method, target), runs in chosen.items():
        others = chosen.get((benchmark, f"naive-{method}", target))
        if catalog.find(method).group != "tailored" or others is None:
            continue
        row, scores = _head((benchmark, method, target)), []
        for form, each in (("tailored", runs), ("naive", others)):
            scores.append(_by_seed(_chosen(each), lambda result: result.target_score))
            mean, error = _mean_and_error(scores[-1])
            row |= {f"target_score_{form}": mean, f"{form}_standard_error": error}
        found = difference(scores[0], scores[1], Unit.SEED, NUMBER)
        rows.append(row | {"difference": found.mean if found is not None else None})
    return rows


def save_table(frame: pd.DataFrame, runs: Path, name: str) -> Path:
    """Write the table to RUNS/tables/NAME.csv."""
    path = runs / "tables" / f"{name}.csv"
    write_inside(runs, path, as_csv_text(frame).encode())
    return path
