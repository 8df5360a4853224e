"""Tables of an experiment: mean and standard error of the selected runs over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...base.files import write_output
from ...data.tables.spreadsheet import as_csv_text
from ...errors import FarshoreError
from .. import catalog
from ..averages import mean, standard_error
from ..result import Result
from ..search.selection import Chosen
from ..store.store import Store
from .experiment import Book, Experiment, TableName, check_dependencies
from .plan import Missing, Plan, Selections, select_all, selected

# Reads one number from a result.
Reader = Callable[[Result], float | None]


def summary(plan: Plan, store: Store) -> pd.DataFrame:
    """One row per condition with the scores of the selected runs, or how many runs are missing."""
    rows = []
    for condition, chosen in selected(plan, store).items():
        head = {
            "experiment": plan.name,
            "part": condition.part + 1,
            "benchmark": condition.benchmark,
            "method": condition.method,
            "target": condition.target,
            "order": condition.order,
            "varied": condition.varied,
            "selection": plan.selection,
        }
        numbers = {"note": chosen.sentence} if isinstance(chosen, Missing) else _measures(chosen)
        rows.append(head | numbers)
    return pd.DataFrame(rows)


def derived(experiment: Experiment, store: Store, book: Book) -> pd.DataFrame:
    """The table of an experiment that reads others. Missing runs are listed with a note."""
    assert experiment.table is not None
    check_dependencies(experiment, book)
    choices: Selections = {}
    for name in experiment.reads:
        for key, choice in select_all(book(name), store, book).items():
            choices.setdefault(key, choice)
    missing = {key: choice for key, choice in choices.items() if isinstance(choice, Missing)}
    chosen = {key: choice for key, choice in choices.items() if isinstance(choice, Chosen)}
    if not chosen:
        why = next(
            (
                f"{method} on {benchmark}: {choice.sentence}"
                for (benchmark, method, _), choice in missing.items()
            ),
            "they have no runs",
        )
        raise FarshoreError(
            f"{experiment.name} reads {' and '.join(experiment.reads)}, which have no finished "
            f"runs ({why}): sweep them first"
        )
    if experiment.table == "naive and tailored":
        rows = _pairs(chosen)
    else:
        rows = [_head(key) | _columns(choice, experiment.table) for key, choice in chosen.items()]
    rows += [_head(key) | {"note": choice.sentence} for key, choice in missing.items()]
    return pd.DataFrame(rows)


def _head(key: tuple[str, str, str]) -> dict[str, Any]:
    """The columns that say what a row is about; `target` is empty if there is only one."""
    return dict(zip(("benchmark", "method", "target"), key, strict=True))


def save_table(frame: pd.DataFrame, runs: Path, name: str) -> Path:
    """Write the table to RUNS/tables/NAME.csv."""
    path = runs / "tables" / f"{name}.csv"
    write_output(path, as_csv_text(frame).encode())
    return path


def _measures(chosen: Chosen) -> dict[str, Any]:
    target, error = chosen.target()
    results = chosen.results
    return {
        "seeds": len(results),
        "seeds_planned": chosen.seeds,
        "trials_selected": " ".join(
            str(chosen.trials[seed].number) for seed in sorted(chosen.trials)
        ),
        "target_score_unseen": target,
        "target_standard_error": error,
        "source_validation_score": mean([result.source_score(1) for result in results]),
        "source_train_score": mean([result.source_score(2) for result in results]),
        "backward_transfer": mean([result.backward_transfer() for result in results]),
        "forgetting": mean([result.forgetting() for result in results]),
        "seconds_a_run": mean([result.seconds["total"] for result in results]),
        "milliseconds_a_step": mean([_step(result) for result in results]),
    }


# The columns of each table of selected runs, and how a run's value is read.
COLUMNS: dict[TableName, dict[str, Reader]] = {
    "backward transfer": {
        "backward_transfer_validation": lambda result: result.backward_transfer("validation"),
        "backward_transfer_train": lambda result: result.backward_transfer("train"),
        "forgetting_validation": lambda result: result.forgetting("validation"),
    },
    "source performance": {
        "source_train_score": lambda result: result.source_score(2),
        "source_validation_score": lambda result: result.source_score(1),
    },
    "run time": {
        "seconds_in_all": lambda result: result.seconds["total"],
        "seconds_of_training": lambda result: result.seconds["training"],
        "milliseconds_a_step": lambda result: _step(result),
    },
    "step time": {"milliseconds_a_step": lambda result: _step(result)},
}


def _columns(chosen: Chosen, table: TableName) -> dict[str, Any]:
    columns: dict[str, Any] = {"seeds": len(chosen.results), "seeds_planned": chosen.seeds}
    for name, read in COLUMNS[table].items():
        columns |= _mean(name, [read(result) for result in chosen.results])
    return columns


def _pairs(chosen: Mapping[tuple[str, str, str], Chosen]) -> list[dict[str, Any]]:
    """Each tailored method next to its naive form, if both have runs."""
    rows = []
    for (benchmark, method, target), tailored in chosen.items():
        naive = chosen.get((benchmark, f"naive-{method}", target))
        if catalog.find(method).group != "tailored" or naive is None:
            continue
        (ours, ours_error), (theirs, theirs_error) = tailored.target(), naive.target()
        rows.append(
            _head((benchmark, method, target))
            | {
                "target_score_tailored": ours,
                "tailored_standard_error": ours_error,
                "target_score_naive": theirs,
                "naive_standard_error": theirs_error,
                "difference": ours - theirs if ours is not None and theirs is not None else None,
            }
        )
    return rows


def _mean(name: str, values: Sequence[float | None]) -> dict[str, float | None]:
    known = [value for value in values if value is not None]
    return {name: mean(known), f"{name}_standard_error": standard_error(known)}


def _step(result: Result) -> float | None:
    return mean(result.step_milliseconds)
