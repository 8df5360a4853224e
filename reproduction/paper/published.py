"""Writes published.csv: the paper's numbers, as `farshore report --published` joins them with ours.

    python -m reproduction.paper.published

- paper_tables.csv has every table as printed: table, variant, method, data set, mean and standard
  error;
- paper_averages.csv has the averages and ranks that the main table prints.

Two misprints are corrected, each with a note beside the numbers: the tables of reduced memory have
the columns of Covertype and CIFAR10C swapped, and the main table's average of URM is not the
average of its cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

HERE = Path(__file__).parent
PUBLISHED = HERE / "published.csv"

TITLES = {
    "target_main": "Main results: target domain performance",
    "target_vs_adaptation": "Extended main results: against adaptation to the target",
    "target_naive": "Naïve extensions versus CL baselines",
    "backward_transfer": "Backwards transfer for the main results",
    "runtime_minutes": "Runtimes in minutes",
    "source": "Source domain performance",
    "ablation_no_alignment": "Disabling the sequential invariance alignment",
    "ablation_dynamic_priors": "Dynamically recomputed priors",
    "buffer_50": "A 50% reduced buffer",
    "buffer_25": "A 75% reduced buffer",
    "other_target": "Different target domains",
    "half_budget": "A reduced compute budget",
}
# Experiment -> the paper's tables, as (table, variant in it, variant of our rows). Of several
# numbers for the same cell, the first counts. `compare` is a comparison of any methods.
SOURCES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "main": (("target_main", "", ""),),
    "adaptation": (("target_vs_adaptation", "", ""),),
    "naive": (("target_naive", "", ""),),
    "naive_vs_tailored": (("target_main", "", ""), ("target_naive", "", "")),
    "backward_transfer": (("backward_transfer", "", ""),),
    "source": (("source", "", ""),),
    "runtime": (("runtime_minutes", "", ""),),
    "no_alignment": (
        ("ablation_no_alignment", "W/o alignment", ""),
        ("ablation_no_alignment", "With alignment", "with alignment"),
    ),
    "dynamic_priors": (
        ("ablation_dynamic_priors", "Dynamic prior", ""),
        ("ablation_dynamic_priors", "Static prior", "static priors"),
    ),
    "memory_50": (("buffer_50", "", ""),),
    "memory_25": (("buffer_25", "", ""),),
    "other_target": (("other_target", "", ""),),
    "half_steps": (("half_budget", "", ""),),
    "compare": (
        ("target_main", "", ""),
        ("target_naive", "", ""),
        ("target_vs_adaptation", "", ""),
    ),
}
# Column of published.csv -> that of paper_averages.csv.
SUMMARIES = {
    "average": "average",
    "rank mean": "rank_arithmetic",
    "rank geometric mean": "rank_geometric",
    "rank median": "rank_median",
}
SWAPPED = ("buffer_50", "buffer_25")
SWAP = {"covertype": "cifar10-c", "cifar10-c": "covertype"}
SWAP_NOTE = (
    "The paper's table has the columns of Covertype and CIFAR10C swapped, as its main table "
    "shows; here its numbers are in the right columns."
)
URM_NOTE = (
    "The paper prints 73.3 as the average of URM, but its five cells give 73.6; this table "
    "uses the average of the cells."
)
# Adaptations were not searched.
NOT_SEARCHED = ("target_vs_adaptation",)
SEARCH_NOTE = "The paper's numbers are of the best of 20 trials for each of 3 seeds."


class Number(NamedTuple):
    """One row of published.csv; its fields are the columns."""

    experiment: str
    method: str
    variant: str
    column: str
    mean: str
    error: str
    title: str
    note: str


def numbers() -> Iterator[Number]:
    """Every number of the paper, by experiment."""
    for experiment, sources in SOURCES.items():
        known = set[tuple[str, str, str]]()
        for number in (each for source in sources for each in _cells(experiment, *source)):
            key = (number.method, number.variant, number.column)
            if key not in known:
                known.add(key)
                yield number
    yield from _summaries()


def _cells(experiment: str, table: str, printed: str, variant: str) -> Iterator[Number]:
    """The cells of one table with one variant; `variant` is what our rows call it."""
    for row in _read("paper_tables.csv"):
        if (row["table"], row["variant"]) != (table, printed):
            continue
        column, note = row["dataset"], "" if table in NOT_SEARCHED else SEARCH_NOTE
        if table in SWAPPED and column in SWAP:
            column, note = SWAP[column], SWAP_NOTE
        yield Number(
            experiment,
            row["method"],
            variant,
            column,
            row["mean"],
            row["stderr"],
            TITLES[table],
            note,
        )


def _summaries() -> Iterator[Number]:
    """The averages and ranks at the end of the main table."""
    for row in _read("paper_averages.csv"):
        for column, name in SUMMARIES.items():
            mean, note = row[name], SEARCH_NOTE
            if (row["method"], column) == ("urm", "average"):
                cells = _cells("main", "target_main", "", "")
                mean = f"{fmean(float(each.mean) for each in cells if each.method == 'urm'):.1f}"
                note = URM_NOTE
            if mean:
                title = TITLES["target_main"]
                yield Number("main", row["method"], "", column, mean, "", title, note)


@cache
def _read(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text() -> str:
    """The whole file."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerows([Number._fields, *numbers()])
    return written.getvalue()


def main() -> None:
    """Write the file."""
    PUBLISHED.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
