"""How wide ridge's random projection should be, with every domain left out in turn.

    python bench/ridge_width.py [--folder ridge-width] [--widths 400,800,2000] [--benchmarks elec2]

The tables are those of own_defaults.py, further benchmarks by name, and made ones: `sensors`, 128
columns that answer to six gases and whose gains drift from domain to domain, with the next domain
as the target (all after the third), and `blobs`, scikit-learn's classes in 30 columns, moved from
domain to domain. Each width is compared with the default by the paired difference over targets, in
points. Seconds are process time of all runs of a width. Runs are kept in the folder.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from own_defaults import _as_table, _write, difference, write_tables
from sklearn.datasets import make_classification

import farshore
from farshore.benchmarks import BENCHMARKS
from farshore.results.select import scored
from farshore.results.summary import Scores, Unit, by_unit, scores_of

SENSORS, GASES, PERIODS, ROWS = 128, 6, 8, 400


def sensors(seed: int) -> pd.DataFrame:
    """Rows of eight periods: the gains of the sensors walk at random, and saturate."""
    rng = np.random.default_rng(seed)
    response = rng.gamma(2.0, 1.0, (GASES, SENSORS))
    power = rng.uniform(0.3, 1.0, SENSORS)
    gain, frames = np.zeros(SENSORS), []
    for period in range(PERIODS):
        gas = rng.integers(GASES, size=ROWS)
        strength = rng.lognormal(0.0, 1.0, ROWS)
        answers = np.exp(gain) * response[gas] * strength[:, None] ** power
        noisy = answers / (1 + 0.1 * answers) * rng.lognormal(0.0, 0.1, answers.shape)
        frame = pd.DataFrame(noisy.round(5)).add_prefix("s")
        frames.append(frame.assign(domain=f"period {period + 1}", label=gas))
        gain = gain + rng.normal(0.0, 0.3, SENSORS)
    return pd.concat(frames, ignore_index=True)


def blobs(seed: int) -> pd.DataFrame:
    """Five domains of scikit-learn's classes, each with its own shift of the columns."""
    rng = np.random.default_rng(seed)
    inputs, labels = make_classification(
        2000, 30, n_informative=8, n_classes=4, class_sep=1.5, random_state=seed
    )
    domain = np.arange(len(inputs)) % 5
    frame = pd.DataFrame((inputs + rng.normal(size=(5, 30))[domain]).round(5)).add_prefix("x")
    return frame.assign(domain=[f"site {number}" for number in domain], label=labels)


def tables(folder: Path, benchmarks: list[str]) -> Iterator[tuple[str, Path, dict[str, str]]]:
    """Name, path and columns of every table."""
    yield from write_tables(folder)
    yield "sensors", _write(sensors(0), folder / "sensors.csv"), {}
    yield "blobs", _write(blobs(0), folder / "blobs.csv"), {}
    for name in benchmarks:
        table = _as_table(BENCHMARKS.get(name)())
        yield name, _write(table, folder / f"{name}.csv"), {}


def measured(path: Path, roles: dict[str, str], width: int | None, runs: Path) -> Scores:
    """The scores of ridge at this width, None for the default."""
    compared = farshore.compare(
        str(path),
        **{"domain": "domain", "label": "label", **roles},
        methods=["ridge"],
        target="each",
        seeds=2,
        settings={} if width is None else {"random_features": width},
        runs=runs,
    )
    return scores_of(scored(compared.frame), "ridge")


def main() -> None:
    """Print a table of widths by data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("ridge-width"))
    parser.add_argument("--widths", default="100,400,800,2000")
    parser.add_argument("--benchmarks", default="", help="further ones, comma-separated")
    parser.add_argument("--only", default="", help="names of data sets, comma-separated")
    args = parser.parse_args()
    widths = [int(width) for width in args.widths.split(",")]
    named = [name for name in args.benchmarks.split(",") if name]
    print(f"| data set | default | {' | '.join(map(str, widths))} | seconds |")
    print(f"|---|---|{'---|' * len(widths)}---|")
    for name, path, roles in tables(args.folder / "data", named):
        if args.only and name not in args.only.split(","):
            continue
        usual = measured(path, roles, None, args.folder / "runs")
        mean = 100 * float(np.mean(list(by_unit(usual, Unit.TARGET).values())))
        cells, seconds = [], []
        for width in widths:
            began = time.process_time()
            scores = measured(path, roles, width, args.folder / "runs")
            seconds.append(f"{time.process_time() - began:.0f}")
            cells.append(difference(scores, usual))
        print(f"| {name} | {mean:.1f} | {' | '.join(cells)} | {', '.join(seconds)} |", flush=True)


if __name__ == "__main__":
    main()
