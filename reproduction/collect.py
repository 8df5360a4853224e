"""Copy finished runs from a folder of runs into tables/*.csv, from which the pages are made.

    python -m reproduction.collect runs/reproduction

The tables are committed. Runs that the folder does not have stay as they were collected before, so
that runs from several machines add up.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from farshore.results.tidy_table import row
from farshore.runs.plan.experiment import make_book, read_experiment
from farshore.runs.plan.plan import Planned, make_plan
from farshore.runs.store.store import Store
from reproduction import EXPERIMENTS, ROOT, TABLES
from reproduction.doses import dose_columns
from reproduction.finished_runs import AS_IT_IS, COLUMNS, table

# The experiments behind docs/reproduction.md, in the order of their importance.
REPRODUCED = (
    "all_orders",
    "fitted_order",
    "searched_order",
    "readings",
    "orders_ablated",
    "orders_sensitivity",
    "paper_protocol",
    "protocol_ablated",
    "image_benchmarks",
)
# Those behind docs/recommended.md, the question whether invariance helps, docs/referee.md and the
# frozen backbone come last.
COLLECTED = (*REPRODUCED, "control", "auto", "dose", "referee", "frozen_backbone")
# The one network in a file that these experiments name; nothing but this package's own is imported.
BACKBONE = "reproduction/efficientnet_lite0.py:pooled"
# So many runs are worth the start of further processes.
MANY_RUNS = 200
SORTED_BY = ["part", "benchmark", "method", "order", "run_seed", "trial"]
# Rows of covertype's areas by class in the official file (checked by a test where the file is at
# hand), before the benchmark balances them. It drops cottonwood; a model cannot predict it, so that
# its rows are always wrong.
ROWS = {
    "rawah": {"spruce-fir": 105_717, "lodgepole-pine": 146_197, "aspen": 3_781, "krummholz": 5_101},
    "cache-la-poudre": {
        "lodgepole-pine": 3_026,
        "ponderosa-pine": 21_454,
        "cottonwood": 2_747,
        "douglas-fir": 9_741,
    },
}


@cache
def planned_runs(name: str) -> list[Planned]:
    """All runs of an experiment, wherever their data are; none depends on another's result."""
    path, nothing = EXPERIMENTS / f"{name}.yaml", Store(TABLES)
    with chdir(ROOT):  # where the backbone's name is a path
        experiment, book = read_experiment(path, [BACKBONE]), make_book(path, own=[BACKBONE])
        return make_plan(experiment, nothing, book, available_only=False).runs


def collect(runs: Path, experiments: Iterable[str] = COLLECTED) -> None:
    """Copy the finished runs of these experiments from a folder of runs into the tables.

    Runs that the experiment no longer plans are dropped: a run gets another name if the results
    version of its method or data set is raised.
    """
    store = Store(runs)
    TABLES.mkdir(exist_ok=True)
    for name in experiments:
        planned = planned_runs(name)
        new = tidy_rows([each for each in planned if store.folder(each.name).finished()], store)
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


def tidy_rows(finished: Sequence[Planned], store: Store) -> list[dict[str, Any]]:
    """These runs as rows; many are read by several processes."""
    if len(finished) < MANY_RUNS:
        return [tidy_row(each, store) for each in finished]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(tidy_row, finished, [store] * len(finished), chunksize=20))


def tidy_row(planned: Planned, store: Store) -> dict[str, Any]:
    """A finished run as a row of its experiment's table."""
    result = store.read(planned.name)
    config = store.folder(planned.name).read_config() or {}
    position = {"seed": planned.seed, "trial": planned.trial}
    tidy = row(planned.name, result, {"planned": position, "commit": config.get("commit", "")})
    tidy |= {
        "part": planned.condition.part,
        "gain_by_learning": gain_by_learning(result.matrices.get("validation", [])),
    }
    if planned.features:
        tidy |= dose_columns(result, store.folder(planned.name).features)
    if result.run.benchmark.startswith("covertype") and result.target is not None:
        tidy[AS_IT_IS] = score_as_it_is(result.target.name, result.classes, result.target.confusion)
    return tidy


def gain_by_learning(matrix: Sequence[Sequence[float]]) -> float | None:
    """1/(k-1) Σ_{i>1} (R[k][i] - R[i-1][i]): the final score minus the one before learning i.

    Unlike backward transfer, it is positive even if much is forgotten.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    return sum(matrix[last][i] - matrix[i - 1][i] for i in range(1, last + 1)) / last


def score_as_it_is(
    area: str, classes: Sequence[str], confusion: Sequence[Sequence[int]]
) -> float | None:
    """The accuracy if the target had all rows of its area: recalls weighted by class size.

    confusion: rows are true classes, columns are predicted ones, on the balanced target.
    """
    counts = ROWS.get(area)
    if counts is None:
        return None
    recalls = {
        name: row[index] / sum(row)
        for index, (name, row) in enumerate(zip(classes, confusion, strict=True))
        if sum(row)
    }
    right = sum(count * recalls.get(name, 0.0) for name, count in counts.items())
    return right / sum(counts.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, help="folder of runs, as given to --runs")
    collect(parser.parse_args().runs)
