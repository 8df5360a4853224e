"""How far scores of sites are apart: the atlas of src/farshore/results/expectation.py.

    python bench/atlas.py [--natural FOLDER] [--write]

Every site of a public table is left out in turn, and slda learns the others. The spread is the
standard deviation of log(p / (1 - p)) of the accuracy p between sites beyond chance: the τ with the
largest restricted likelihood if y_i ~ N(μ, τ² + v_i), where v_i is the variance by chance of a
share of so many rows. `--natural` names a folder with crime.csv.gz; without it, its row of the file
stays as it is. `bench/next_site.py` leaves the table under test out of the atlas.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import optimize

from farshore.auditing.from_sums import from_sums
from farshore.benchmarks import make_benchmark
from farshore.deployment.unlike import read_sites
from farshore.results.expectation import SHARE

TABLE = Path(__file__).resolve().parents[1] / "src" / "farshore" / "results" / "atlas.csv"
BENCHMARKS = ("heart-hospitals", "covertype", "covertype-zones", "diabetes130")
COLUMNS = ("table", "task", "sites", "spread")
METHOD = "slda"
# With fewer rows, a site's score is mostly chance.
FEWEST_ROWS = 50


def spread(scores: list[float], rows: list[int]) -> float:
    """The τ with the largest restricted likelihood."""
    y = np.array([SHARE.to(*pair) for pair in zip(scores, rows, strict=True)])
    v = np.array([SHARE.error(*pair) ** 2 for pair in zip(scores, rows, strict=True)])

    def loss(log_spread: float) -> float:
        total = np.exp(2 * log_spread) + v
        mean = (y / total).sum() / (1 / total).sum()
        return float(
            np.log(total).sum() + np.log((1 / total).sum()) + ((y - mean) ** 2 / total).sum()
        )

    return float(np.exp(optimize.minimize_scalar(loss, bounds=(-4.6, 1.6), method="bounded").x))


def own_tables(natural: Path, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables that no benchmark has: their name, and the options of the benchmark `table`."""
    frame = pd.read_csv(natural / "crime.csv.gz", na_values="?")
    frame = frame[frame["ViolentCrimesPerPop"].notna()]
    high = frame["ViolentCrimesPerPop"] > frame["ViolentCrimesPerPop"].median()
    inputs = (
        frame.iloc[:, 5:-18].copy().assign(site=frame["state"], label=np.where(high, "high", "low"))
    )
    enough = inputs.groupby("site")["label"].transform("size") >= FEWEST_ROWS
    inputs[enough].to_csv(folder / "crime.csv", index=False)
    options = {"path": str(folder / "crime.csv"), "domain": "site", "label": "label"}
    yield "crime", options | {"metric": "accuracy"}


def measured(name: str, benchmark: str, options: dict[str, Any]) -> dict[str, object] | None:
    """The row of a table; None if its sites cannot be left out of sums."""
    made = make_benchmark(benchmark, options)
    found = from_sums(made, METHOD)
    if found is None:
        return None
    counts = read_sites(benchmark, options).counts
    enough = [site for site in found.scores if counts[site] >= FEWEST_ROWS]
    tau = spread([found.scores[site] for site in enough], [counts[site] for site in enough])
    return dict(zip(COLUMNS, (name, "classification", len(enough), f"{tau:.3f}"), strict=True))


def main() -> None:
    """Print the atlas, and write it with `--write`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--natural", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    known: dict[str, dict[str, object]] = {}
    if TABLE.is_file():
        with TABLE.open() as file:
            known = {row["table"]: dict(row) for row in csv.DictReader(file)}
    with tempfile.TemporaryDirectory() as folder:
        tables: list[tuple[str, str, dict[str, Any]]] = [(each, each, {}) for each in BENCHMARKS]
        if args.natural is not None:
            own = own_tables(args.natural, Path(folder))
            tables += [(name, "table", options) for name, options in own]
        for name, benchmark, options in tables:
            if (absent := make_benchmark(benchmark, options).missing()) is not None:
                print(f"{name} is left out: {absent}")
                continue
            row = measured(name, benchmark, options)
            print(row or f"{name} has no sums", flush=True)
            known |= {name: row} if row is not None else {}
    if args.write:
        with TABLE.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(known.values())


if __name__ == "__main__":
    main()
