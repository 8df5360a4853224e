"""The paper's numbers, by experiment: what stands beside our cells.

files/paper_tables.csv     every table as it is printed: table, variant, method, data set, mean,
standard error files/paper_averages.csv   the averages and ranks that the main table prints

Two things are wrong in print and are put right here, with a note wherever they are shown: the
tables of reduced memory have the columns of Covertype and CIFAR10C swapped, and the main table's
average of URM is not that of its cells.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

Number = tuple[float, float | None]

SWAPPED = ("buffer_50", "buffer_25")
SWAP = {"covertype": "cifar10-c", "cifar10-c": "covertype"}
SWAP_NOTE = (
    "The paper's table has the columns of Covertype and CIFAR10C swapped (its own main table "
    "shows which is which); "
    "its numbers stand here in the right columns."
)
URM_NOTE = (
    "The paper prints 73.3 as the average of URM, where its five cells give 73.6; the "
    "average of the cells is used here."
)
TABLES = {
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
# Experiment -> the paper's tables, as (table, variant in it, variant of the rows here).
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
    # A comparison at the defaults may hold any method.
    "compare": (
        ("target_main", "", ""),
        ("target_naive", "", ""),
        ("target_vs_adaptation", "", ""),
    ),
}


@dataclass(frozen=True)
class PaperTable:
    """The paper's numbers for one of our tables, by (method, variant, data set)."""

    name: str
    title: str
    numbers: Mapping[tuple[str, str, str], Number]
    # What the paper prints at the end of a row: the average, and mean, geometric mean and median of
    # the ranks.
    averages: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def number(self, method: str, dataset: str, variant: str = "") -> Number | None:
        """Mean and standard error, where the paper has them."""
        return self.numbers.get((method, variant, dataset))

    def datasets(self) -> list[str]:
        """Those it has numbers on."""
        return list(dict.fromkeys(dataset for _, _, dataset in self.numbers))


def paper_table(experiment: str) -> PaperTable | None:
    """What the paper has beside an experiment; None where it has nothing."""
    sources = SOURCES.get(experiment)
    if sources is None:
        return None
    numbers: dict[tuple[str, str, str], Number] = {}
    notes: list[str] = []
    for table, variant, ours in sources:
        for (of, in_variant, method, dataset), number in _printed().items():
            if (of, in_variant) == (table, variant):
                numbers.setdefault(
                    (method, ours, SWAP.get(dataset, dataset) if table in SWAPPED else dataset),
                    number,
                )
        if table in SWAPPED:
            notes.append(SWAP_NOTE)
    averages, ranks = _printed_averages() if experiment == "main" else ({}, {})
    if experiment == "main":
        notes.append(URM_NOTE)
        averages = {method: value for method, value in averages.items() if method != "urm"}
    return PaperTable(sources[0][0], TABLES[sources[0][0]], numbers, averages, ranks, tuple(notes))


def _read(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath("files", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def _printed() -> dict[tuple[str, str, str, str], Number]:
    """Every printed cell by table, variant, method and data set."""
    return {
        (row["table"], row["variant"], row["method"], row["dataset"]): (
            float(row["mean"]),
            float(row["stderr"]) if row["stderr"] else None,
        )
        for row in _read("paper_tables.csv")
    }


@cache
def _printed_averages() -> tuple[dict[str, float], dict[str, tuple[float, float, float]]]:
    rows = _read("paper_averages.csv")
    averages = {row["method"]: float(row["average"]) for row in rows}
    ranks = {
        row["method"]: (
            float(row["rank_arithmetic"]),
            float(row["rank_geometric"]),
            float(row["rank_median"]),
        )
        for row in rows
        if row["rank_arithmetic"]
    }
    return averages, ranks
