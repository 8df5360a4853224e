"""MAE on house prices and the energy use of appliances, beside published numbers.

    python bench/regression.py FOLDER [--seeds 1] [--steps 50] [--save NAME]

FOLDER has house.csv.gz (columns datesold, postcode, price, propertyType, bedrooms) and
appliances.csv.gz (UCI 374). The design was written down before the runs:

house: each of the last five years in turn, learned from the years before it, one year after the
other; the price in 1,000 dollars, from the postcode (a category), the type of the property and the
number of bedrooms.
appliances: the last month, learned from the four before it; Wh in ten minutes, from all 27 columns
but the time.
both: labels as they are (no logarithm), the default settings of every method, 50 steps per domain
and one seed, so that the table takes minutes. Nothing was chosen by looking at a target.

The published numbers (Koodos, NeurIPS 2024, table 4) are in units, and from features, that are not
given, so no win or loss follows from this table: it says what the methods here do beside each
other, and beside the sources' mean (`majority`).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import record
import torch

import farshore
from farshore.benchmarks import make_benchmark

METHODS = ("finetune", "er", "joint", "ridge", "trees", "auto", "majority")
OPTIONS = {
    "house": {
        "domain": "datesold:year",
        "time": "datesold",
        "time_format": "%m/%d/%Y %H:%M",
        "label": "price",
        "categories": "postcode",
        "unit": "1,000 dollars",
    },
    "appliances": {
        "domain": "date:month",
        "time": "date",
        "label": "Appliances",
        "unit": "Wh",
    },
}
TARGETS = {"house": ("2015", "2016", "2017", "2018", "2019"), "appliances": ("2016-05",)}
# Published MAE.
PUBLISHED = {
    "offline, all sources": ("11.0", "10.2"),
    "incremental fine-tuning": ("9.7", "8.9"),
    "DRAIN": ("9.3", "6.4"),
    "Koodos": ("8.8", "4.8"),
}


def measured(
    folder: Path, name: str, target: str, method: str, seed: int, steps: int
) -> dict[str, float | None]:
    """The scores of one run."""
    options = {"path": str(folder / f"{name}.csv"), **OPTIONS[name]}
    kind = make_benchmark("table", options)
    names = list(kind.domain_names())
    place = names.index(target)
    run = farshore.Run.build(
        benchmark="table",
        options=options,
        method=method,
        target=target,
        left_out=tuple(names[place + 1 :]),
        seed=seed,
        steps=steps,
    )
    result = farshore.execute(run)
    assert result.target is not None
    return result.target.scores


def rows(arguments: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    """A row per method, and one per published number."""
    for name in OPTIONS:
        table = pd.read_csv(arguments.folder / f"{name}.csv.gz")
        if name == "house":
            table["price"] /= 1000
        table.to_csv(folder / f"{name}.csv", index=False)
    for method in METHODS:
        cells = [f"`{method}`"]
        for name, targets in TARGETS.items():
            found = [
                measured(folder, name, target, method, seed, arguments.steps)
                for target in targets
                for seed in range(arguments.seeds)
            ]
            error, skill = (np.mean([each[score] for each in found]) for score in ("mae", "skill"))
            cells += [f"{error:.1f}", f"{100 * skill:+.1f}"]
        yield cells
    for name, (house, appliances) in PUBLISHED.items():
        yield [f"published: {name}", f"({house})", "-", f"({appliances})", "-"]


COLUMNS = (
    *("method", "house: MAE, 1,000 dollars", "house: skill, %"),
    *("appliances: MAE, Wh", "appliances: skill, %"),
)


def main() -> None:
    """Measure, and print the means over targets and seeds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50)
    record.add_save(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seeds = f"{arguments.seeds} seed{'s' if arguments.seeds > 1 else ''}"
    about = (
        "Mean absolute error at the newest domain, after those before it: 5 years of house, the "
        f"last month of appliances, {arguments.steps} steps per domain, {seeds}; in brackets "
        "published numbers in their own units, from other features"
    )
    with tempfile.TemporaryDirectory() as folder:
        record.show(arguments, about, COLUMNS, rows(arguments, Path(folder)), ["scikit-learn"])


if __name__ == "__main__":
    main()
