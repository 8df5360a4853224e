"""How far scores of sites are apart: the atlas of src/farshore/results/expectation.py.

    python bench/atlas.py [--natural FOLDER] [--only TABLES] [--write]

Every site of a public table is left out in turn, and slda learns the others; where labels are
numbers, ridge with 400 features. Two spreads between sites are measured, each as the standard
deviation τ of y beyond chance: the one with the largest restricted likelihood if y_i ~ N(μ, τ² +
v_i), where v_i is the variance by chance over so many rows.

spread: y = log(p / (1 - p)) of the accuracy p, or the logarithm of the mean absolute error.
rows: y = log(p / (1 - p)) of the share p of a site's rows whose score is at most the value for
which the mean of these shares is 90%. A row's score is 1 - p(true class), or the absolute error.

`--natural` names a folder with crime.csv.gz, parkinsons.csv.gz, house.csv.gz and
appliances.csv.gz; without it, their rows of the file stay as they are. The sites of house are
postcodes, those of appliances months, those of `diabetes130 days` (the days in hospital) where
patients came from. The first site of a file scales its columns. Sites with fewer than 50 rows do
not count, and at most 1,000 rows of a site. `bench/next_site.py` leaves the table under test out of
the atlas.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sites
import torch
from scipy import optimize

from farshore.auditing.from_sums import SiteSums
from farshore.benchmarks import make_benchmark
from farshore.data.seal import FrozenModel
from farshore.results.expectation import LEVEL, POSITIVE, SHARE, Scale
from farshore.tasks.calibration import probabilities

TABLE = Path(__file__).resolve().parents[1] / "src" / "farshore" / "results" / "atlas.csv"
BENCHMARKS = ("heart-hospitals", "covertype", "covertype-zones", "diabetes130")
COLUMNS = ("table", "task", "sites", "spread", "rows")
# With fewer rows, a site's score is mostly chance.
FEWEST_ROWS = 50


def spread(scores: Sequence[float], rows: Sequence[int], scale: Scale) -> float:
    """The τ with the largest restricted likelihood."""
    values, many = np.asarray(scores, float), np.asarray(rows, float)
    y, v = scale.to(values, many), scale.error(values, many) ** 2

    def loss(log_spread: float) -> float:
        total = np.exp(2 * log_spread) + v
        mean = (y / total).sum() / (1 / total).sum()
        return float(
            np.log(total).sum() + np.log((1 / total).sum()) + ((y - mean) ** 2 / total).sum()
        )

    return float(np.exp(optimize.minimize_scalar(loss, bounds=(-4.6, 1.6), method="bounded").x))


def number_tables(natural: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables whose label is a number."""
    yield "parkinsons numbers", sites.numbers(natural, "parkinsons")
    yield "crime numbers", sites.numbers(natural, "crime")
    house = pd.read_csv(natural / "house.csv.gz").drop(columns="datesold")
    yield "house numbers", house.rename(columns={"postcode": "site", "price": "label"})
    energy = pd.read_csv(natural / "appliances.csv.gz")
    energy = energy.assign(site="month " + energy.pop("date").str[:7])
    yield "appliances numbers", energy.rename(columns={"Appliances": "label"})
    stays = sites.diabetes130().drop(columns="label")
    yield "diabetes130 days", stays.rename(columns={"time_in_hospital": "label"})


def own_tables(natural: Path, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables that no benchmark has: their name, and the options of the benchmark `table`."""
    tables = [("crime", sites.crime(natural)), *number_tables(natural)]
    for name, frame in tables:
        path = folder / f"{name}.csv"
        pd.concat(sites.sites_of(frame).values()).sort_index().to_csv(path, index=False)
        options = {"path": str(path), "domain": "site", "label": "label"}
        if name == "diabetes130 days":
            options["categories"] = ",".join(sites.CATEGORIES)
        task = "classification" if name == "crime" else "regression"
        yield name, options | {"metric": "accuracy" if name == "crime" else "mae", "task": task}


def measured(name: str, benchmark: str, options: dict[str, Any]) -> dict[str, object]:
    """The row of a table."""
    made = make_benchmark(benchmark, options)
    names, numbers = list(made.learnable_names()), options.get("task") == "regression"
    method = ("ridge", {"random_features": 400}) if numbers else ("slda", {})
    summed = SiteSums(made.scenario(target=names[-1], seed=0), *method)
    summed.add(made.scenario(target=names[1], seed=0).sources[-1])
    other = made.scenario(target=names[0], seed=0)
    without_first = SiteSums(other, *method)
    scores, found = [], []
    for left_out in names:
        used = without_first if left_out == names[0] else summed
        head = used.head(name for name in names if name != left_out)
        if used is without_first:
            used.system.model.install(*head)
            used.see(other.target.open(FrozenModel(used.system.predictor())))
        outputs, labels = used.outputs(head, left_out), used.labels[left_out]
        if len(labels) < FEWEST_ROWS:
            continue
        if numbers:
            deviations = used.task.row_scores(outputs, labels)
            if used is without_first:  # in another first site's deviations
                deviations = deviations * used.task.scale[0] / summed.task.scale[0]
            scores.append(float(deviations.mean()))
        else:
            shares = 1 - probabilities(outputs.double().numpy())
            deviations = shares[np.arange(len(labels)), labels]
            scores.append(float((outputs.argmax(dim=1) == labels).double().mean()))
        found.append(deviations)
    rows = [len(each) for each in found]
    most = optimize.brentq(
        lambda most: np.mean([(each <= most).mean() for each in found]) - LEVEL,
        0,
        max(each.max() for each in found) + 1,
    )
    covered = [float((each <= most).mean()) for each in found]
    taus = spread(scores, rows, POSITIVE if numbers else SHARE), spread(covered, rows, SHARE)
    task = "regression" if numbers else "classification"
    return dict(
        zip(COLUMNS, (name, task, len(found), *(f"{tau:.3f}" for tau in taus)), strict=True)
    )


def main() -> None:
    """Print the atlas, and write it with `--write`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--natural", type=Path)
    parser.add_argument("--only", help="names of tables, divided by commas")
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
            if args.only is None or name in args.only.split(","):
                known[name] = measured(name, benchmark, options)
                print(",".join(map(str, known[name].values())), flush=True)
    if args.write:
        with TABLE.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(known.values())


if __name__ == "__main__":
    main()
