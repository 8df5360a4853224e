"""Tidy tables of finished runs, one row per run, and what the generated pages make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from farshore.results.over_units import Difference, Scores, Unit
from farshore.runs.plan.experiment import make_book, read_experiment
from farshore.runs.plan.plan import Planned, make_plan
from farshore.runs.store.store import Store, row
from farshore.runs.transfer import Matrix
from reproduction import EXPERIMENTS, TABLES
from reproduction.covertype_rows import score_as_it_is

SCORE = "target_score_unseen"
# On covertype: the score if the classes of the target were as frequent as in its area.
AS_IT_IS = "target_score_as_it_is"
COLUMNS = (
    "run",
    "part",
    "benchmark",
    "method",
    "order",
    "target",
    "settings",
    "memory_rows",
    "steps_a_domain",
    "seed_number",
    "run_seed",
    "trial",
    "status",
    SCORE,
    "target_accuracy",
    "target_balanced_accuracy",
    "target_macro_f1",
    "target_auroc",
    "target_log_loss",
    "target_calibration_error",
    "source_validation_score",
    "source_train_score",
    "backward_transfer",
    "gain_by_learning",
    AS_IT_IS,
    "seconds_of_training",
    "device",
)
SORTED_BY = ["part", "benchmark", "method", "order", "run_seed", "trial"]


@cache
def planned_runs(name: str) -> list[Planned]:
    """All runs of an experiment, wherever their data are; none depends on another's result."""
    path = EXPERIMENTS / f"{name}.yaml"
    nothing = Store(TABLES)
    return make_plan(read_experiment(path), nothing, make_book(path), available_only=False).runs


def collect(runs: Path, experiments: Iterable[str]) -> None:
    """Copy the finished runs of these experiments from a store into the tables.

    Runs that the store does not have stay as they were collected before. Those that the experiment
    no longer plans are dropped: a run gets another name if the results version of its method or
    data set is raised.
    """
    store = Store(runs)
    TABLES.mkdir(exist_ok=True)
    for name in experiments:
        planned = planned_runs(name)
        new = [tidy_row(each, store) for each in planned if store.folder(each.name).finished()]
        known = table(name)
        current = known["run"].isin({each.name for each in planned})
        kept = known[current & ~known["run"].isin({each["run"] for each in new})]
        if new or len(kept) < len(known):
            parts = [part for part in (pd.DataFrame(new), kept) if len(part)]
            frame = pd.concat(parts or [kept])
            frame = frame.reindex(columns=[name for name in COLUMNS if name in frame])
            frame = frame.sort_values(SORTED_BY)
            frame.to_csv(TABLES / f"{name}.csv", index=False, float_format="%.6g")
    table.cache_clear()


def tidy_row(planned: Planned, store: Store) -> dict[str, Any]:
    """A finished run as a row of its experiment's table."""
    result = store.read(planned.name)
    tidy = row(planned.name, result, {"planned": {"seed": planned.seed, "trial": planned.trial}})
    tidy |= {
        "part": planned.condition.part,
        "gain_by_learning": gain_by_learning(result.matrices.get("validation", [])),
    }
    if result.run.benchmark.startswith("covertype") and result.target is not None:
        tidy[AS_IT_IS] = score_as_it_is(result.target.name, result.classes, result.target.confusion)
    return tidy


def gain_by_learning(matrix: Matrix) -> float | None:
    """1/(k-1) Σ_{i>1} (R[k][i] - R[i-1][i]): the final score minus the one before learning i.

    Unlike backward transfer, it is positive even if much is forgotten.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    return sum(matrix[last][i] - matrix[i - 1][i] for i in range(1, last + 1)) / last


@cache
def table(name: str) -> pd.DataFrame:
    """The tidy table of an experiment; empty if nothing of it was run."""
    path = TABLES / f"{name}.csv"
    if not path.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(path, dtype={"order": str, "target": str, "settings": str})


def rows_of(name: str, benchmark: str, settings: str | None = None) -> pd.DataFrame:
    """The runs of an experiment on one benchmark, with these settings if any are given."""
    frame = table(name)
    chosen = frame["benchmark"] == benchmark
    return frame[chosen if settings is None else chosen & (frame["settings"] == settings)]


def scores(frame: pd.DataFrame, column: str = SCORE, *, unit: str = "order") -> dict[str, Scores]:
    """Values in percent by method, unit and run; a unit is an order or a target."""
    by_method: dict[str, dict[Unit, dict[Any, float]]] = {}
    for entry in frame.dropna(subset=[column]).to_dict("records"):
        order, seed = tuple(str(entry["order"]).split(",")), int(entry["run_seed"])
        name, run = (order, seed) if unit == "order" else ((str(entry["target"]),), (order, seed))
        of_unit = by_method.setdefault(str(entry["method"]), {}).setdefault(name, {})
        of_unit[run] = 100 * float(entry[column])
    return dict(by_method)


def signed(value: float) -> str:
    """A number of points with its sign."""
    return f"{value:+.1f}"


def listed(words: Sequence[str]) -> str:
    """The words as they stand in a sentence."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


def interval(difference: Difference | None) -> str:
    """A difference with its interval."""
    if difference is None:
        return "-"
    if difference.low is None or difference.high is None:
        return signed(difference.mean)
    return f"{signed(difference.mean)} [{signed(difference.low)}, {signed(difference.high)}]"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def means(frame: pd.DataFrame, column: str = SCORE) -> dict[str, tuple[float, float]]:
    """Mean and standard error over seeds in percent, by method."""
    grouped = frame.dropna(subset=[column]).groupby("method")[column]
    return {
        str(method): (100 * values.mean(), 100 * values.std(ddof=1) / len(values) ** 0.5)
        for method, values in grouped
        if len(values) > 1
    }


def filled(head: Path, sections: Mapping[str, Callable[[], str]]) -> str:
    """The text of a head file with each mark `<!-- name -->` replaced by its section."""
    text = head.read_text()
    for name, write in sections.items():
        mark = f"<!-- {name} -->"
        assert mark in text, f"{head.name} lacks {mark}"
        text = text.replace(mark, write().rstrip())
    return text
