"""Run the experiments behind docs/reproduction.md and rewrite the page.

python -m reproduction.run --table rotated-mnist --device cuda

`make reproduce TABLE=... DEVICE=...` calls it. You can stop it at any time: the same command
resumes. With `--missing` (`MISSING=yes`) it carries out only the runs that the tables do not have
yet. `--scale tiny` runs everything in minutes on built-in data and writes no page.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import typer

from farshore.base.files import check_writable
from farshore.cli.engine_options import EngineOptions, carry_out_plan, print_line
from farshore.cli.tables import make_console
from farshore.errors import FarshoreError, unknown
from farshore.runs.plan.experiment import Experiment, make_book, read_experiment
from farshore.runs.plan.narrow import narrow
from farshore.runs.plan.plan import Plan, make_plan
from farshore.runs.plan.record import TINY, record_experiment
from farshore.runs.plan.tiny import tiny
from farshore.runs.store.store import Store
from reproduction import EXPERIMENTS
from reproduction.finished_runs import table
from reproduction.pages.reproduction import COLLECTED, write


def experiments_of(data_set: str) -> list[str]:
    """The experiments that include the data set."""
    included: dict[str, list[str]] = {}
    for name in COLLECTED:
        parts = read_experiment(EXPERIMENTS / f"{name}.yaml").parts
        for benchmark in dict.fromkeys(data.benchmark for part in parts for data in part.data):
            included.setdefault(benchmark, []).append(name)
    if data_set not in included:
        raise unknown("data set", data_set, included)
    return included[data_set]


def make_plans(
    data_set: str, store: Store, device: str, *, scale: str | None = None, missing: bool = False
) -> list[Plan]:
    """The plans of these experiments, which are also recorded in the store.

    missing: only the runs that the tables do not have.
    """

    def change(experiment: Experiment) -> Experiment:
        return tiny(experiment) if scale == "tiny" else experiment

    plans = []
    for name in experiments_of(data_set):
        path = EXPERIMENTS / f"{name}.yaml"
        whole, book = change(read_experiment(path)), make_book(path, change)
        # At tiny scale, other data take the place of the data set.
        narrowed = whole if scale == "tiny" else narrow(whole, [data_set], None)
        plan = make_plan(narrowed, store, book, device=device)
        if missing:
            finished = set(table(name)["run"])
            plan.runs = [planned for planned in plan.runs if planned.name not in finished]
        record_experiment(whole, store.runs, book, ending=TINY if scale == "tiny" else "")
        plans.append(plan)
    return plans


def main() -> None:
    """Carry out the experiments one after the other, then collect the runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True, help="data set, for example rotated-mnist")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/reproduction"))
    parser.add_argument(
        "--missing", action="store_true", help="only the runs that the tables do not have yet"
    )
    parser.add_argument("--scale", choices=["tiny"], default=None)
    given = parser.parse_args()
    check_writable(given.runs, "--runs")
    store, console, options = Store(given.runs), make_console(), EngineOptions(device=given.device)
    plans = make_plans(given.table, store, given.device, scale=given.scale, missing=given.missing)
    failed = False
    for plan in plans:
        print_line(console, f"{plan.name}: {len(plan.unique())} runs")
        failed |= carry_out_plan(console, plan, store, options)
    if given.scale is None:
        write(given.runs)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    try:
        main()
    except FarshoreError as error:
        raise SystemExit(str(error)) from None
    except typer.Exit as stopped:  # Ctrl-C
        raise SystemExit(stopped.exit_code) from None
