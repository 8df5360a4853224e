"""Which defaults suit own data: steps, replay budget and scaling, with every domain left out.

    python bench/own_defaults.py [--folder own-defaults] [--only heart,zones] [--settings steps]

Each data set is a table, as a user would bring it. Every setting is tried with every domain as the
target in turn, for er, cl-coral, finetune and ridge; a setting is compared with the usual one by
the paired difference over targets (the same data set, target, method and seed; each target counts
once). The usual setting is 250 steps, scaling by median and standard deviation, and one replay
batch of each past domain. `zones` needs `farshore prepare covertype-zones`; it is left out
otherwise. `heavy zones` has the same rows with every measurement z replaced by exp(2 z). Runs are
kept in the folder, so a bench that was stopped resumes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy import stats
from torch import Tensor

import farshore
from farshore.benchmarks.covertype import CovertypeZones
from farshore.benchmarks.rotated_digits import RotatedDigits, RotatedDigitsStream
from farshore.data.seal import FrozenModel
from farshore.data.tables import columns
from farshore.data.tables.cells import as_numbers
from farshore.data.tables.table import TablePreprocessing
from farshore.results.select import scored
from farshore.results.summary import Place, Scores, Unit, by_unit
from farshore.results.summary import difference as paired_difference
from farshore.results.summary import scores_of as scores_of_row
from farshore.tasks.metrics import METRICS

METHODS = ("er", "cl-coral", "finetune", "ridge")
MEASURED = 10
ROWS_PER_ZONE = 1000
# A small network, so that the bench takes minutes.
WIDTH = 64
PER_DOMAIN = {"replay_budget": "per-domain"}
KNOTS = np.linspace(0, 1, 101)


class Rescaled(TablePreprocessing):
    """Replaces the deviation of a column by another scale, if that is positive."""

    @staticmethod
    def scale(values: np.ndarray) -> float:
        """The scale of a column."""
        raise NotImplementedError

    def learn(self, frame: pd.DataFrame) -> TablePreprocessing:
        """Fit new columns, then replace their deviation."""
        unknown = [column for column, fixed in self.numbers.items() if fixed is None]
        super().learn(frame)
        for column in unknown:
            fixed = self.numbers[column]
            values = as_numbers(frame[column])
            values = values[np.isfinite(values)]
            if fixed is not None and len(values):
                scale = self.scale(values)
                self.numbers[column] = (fixed[0], scale if scale > 0 else fixed[1])
        return self


class Robust(Rescaled):
    """Scales by the interquartile range, as wide as a normal distribution's deviation."""

    @staticmethod
    def scale(values: np.ndarray) -> float:
        """The interquartile range of a normal distribution is 1.349 deviations."""
        low, high = np.quantile(values, [0.25, 0.75])
        return float(high - low) / 1.349


class Winsorized(Rescaled):
    """Scales by the deviation of the values, the outermost 1% on each side set to its edge."""

    @staticmethod
    def scale(values: np.ndarray) -> float:
        """The deviation without tails."""
        return float(np.clip(values, *np.quantile(values, [0.01, 0.99])).std())


class Quantile(TablePreprocessing):
    """Maps the quantiles of a column to those of a normal distribution."""

    def learn(self, frame: pd.DataFrame) -> TablePreprocessing:
        """Keep the quantiles of new columns."""
        self.knots: dict[str, np.ndarray] = getattr(self, "knots", {})
        for column in self.numbers:
            values = as_numbers(frame[column])
            values = values[np.isfinite(values)]
            if column not in self.knots and len(values):
                self.knots[column] = np.quantile(values, KNOTS)
        super().learn(frame)
        self.numbers = {
            column: (0.0, 1.0) if column in self.knots else fixed
            for column, fixed in self.numbers.items()
        }
        return self

    def transform(self, frame: pd.DataFrame) -> Tensor:
        """Map every number to its place among the quantiles."""
        mapped = frame.rename(columns=str).copy()
        for column, knots in getattr(self, "knots", {}).items():
            values = as_numbers(mapped[column])
            # The middle of the shares at which a repeated value lies.
            low = np.searchsorted(knots, values, "left") / len(KNOTS)
            high = np.searchsorted(knots, values, "right") / len(KNOTS)
            share = np.clip((low + high) / 2, 0.005, 0.995)
            mapped[column] = np.where(np.isfinite(values), stats.norm.ppf(share), np.nan)
        return super().transform(mapped)


@dataclass(frozen=True)
class Candidate:
    """A setting that is compared with the usual one."""

    name: str
    scaling: type[TablePreprocessing] = TablePreprocessing
    steps: int = 250
    settings: Mapping[str, Any] = field(default_factory=lambda: PER_DOMAIN)


USUAL = Candidate("usual")
CANDIDATES = (
    Candidate("robust scaling (interquartile range)", scaling=Robust),
    Candidate("deviation without the outermost 1%", scaling=Winsorized),
    Candidate("quantiles to normal", scaling=Quantile),
    Candidate("one replay batch in total", settings={"replay_budget": "total"}),
    Candidate("50 steps", steps=50),
    Candidate("100 steps", steps=100),
    Candidate("500 steps", steps=500),
)


def write_tables(folder: Path) -> Iterator[tuple[str, Path, dict[str, str]]]:
    """Write the data sets; yield name, path and columns of each."""
    folder.mkdir(parents=True, exist_ok=True)
    heart = pd.read_csv(str(files("farshore.benchmarks") / "files" / "heart.csv"))
    heart["num"] = np.where(heart["num"] > 0, "ill", "well")
    yield "heart", _write(heart, folder / "heart.csv"), {"domain": "hospital", "label": "num"}
    for name, kind in (("digits", RotatedDigits), ("stream", RotatedDigitsStream)):
        yield name, _write(_as_table(kind()), folder / f"{name}.csv"), {}
    if CovertypeZones().missing() is None:
        zones = _as_table(CovertypeZones()).groupby("domain").sample(frac=1, random_state=0)
        zones = zones.groupby("domain").head(ROWS_PER_ZONE)
        yield "zones", _write(zones, folder / "zones.csv"), {}
        heavy = zones.copy()
        measured = list(heavy.columns[:MEASURED])
        heavy[measured] = np.exp(2 * heavy[measured]).round(6)
        yield "heavy zones", _write(heavy, folder / "heavy.csv"), {}


def _as_table(benchmark: farshore.Benchmark) -> pd.DataFrame:
    """All rows of a benchmark with the columns domain and label."""
    import torch

    scenario = benchmark.scenario()
    target = scenario.target.open(FrozenModel(torch.nn.Linear(1, 1)))
    frames = []
    for domain in (*scenario.sources, target):
        inputs = domain.inputs if isinstance(domain.inputs, Tensor) else torch.tensor(domain.inputs)
        frame = pd.DataFrame(inputs.flatten(1).numpy()).add_prefix("x")
        frames.append(frame.assign(domain=f"d{domain.name}", label=domain.labels.numpy()))
    return pd.concat(frames, ignore_index=True)


def _write(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False)
    return path


@contextmanager
def scaled_by(scaling: type[TablePreprocessing]) -> Iterator[None]:
    """Tables are preprocessed by this class inside."""
    with patch.object(columns, "TablePreprocessing", scaling):
        yield


def scores_of(
    candidate: Candidate, path: Path, roles: Mapping[str, str], runs: Path
) -> dict[str, Scores]:
    """The scores of every method by data set, target, order and seed."""
    with scaled_by(candidate.scaling):
        compared = farshore.compare(
            str(path),
            **{"domain": "domain", "label": "label", **roles},
            methods=METHODS,
            target="each",
            seeds=1,
            steps=candidate.steps,
            settings=dict(candidate.settings),
            network_settings={"width": WIDTH},
            runs=runs / candidate.scaling.__name__,
        )
    frame = scored(compared.frame)
    return {method: scores_of_row(frame, method) for method in METHODS}


def difference(ours: Scores, usual: Scores) -> str:
    """The paired difference in points with its 95% interval over targets."""
    paired = paired_difference(ours, usual, Unit.TARGET, METRICS["accuracy"])
    if paired is None or paired.low is None or paired.high is None:
        return "-"
    return f"{100 * paired.mean:+.1f} [{100 * paired.low:+.1f}, {100 * paired.high:+.1f}]"


def main() -> None:
    """Print one table per data set and one over all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("own-defaults"))
    parser.add_argument("--only", default="", help="names of data sets, comma-separated")
    parser.add_argument("--settings", default="", help="words in the settings to try")
    args = parser.parse_args()
    tried = [candidate for candidate in CANDIDATES if args.settings in candidate.name]
    only = [name.strip() for name in args.only.split(",") if name.strip()]
    tables = [entry for entry in write_tables(args.folder / "data") if not only or entry[0] in only]
    print(f"| data set | setting | {' | '.join(METHODS)} |")
    print(f"|---|---|{'---|' * len(METHODS)}")
    pooled: dict[str, dict[str, dict[Place, float]]] = {}
    for name, path, roles in tables:
        for candidate in (USUAL, *tried):
            of_method = scores_of(candidate, path, roles, args.folder)
            for method, scores in of_method.items():
                into = pooled.setdefault(candidate.name, {}).setdefault(method, {})
                # Targets of several data sets may have the same name.
                into |= {
                    (name, f"{name}, {place[1]}", *place[2:]): score
                    for place, score in scores.items()
                }
            cells = [_cell(candidate, name, method, pooled) for method in METHODS]
            print(f"| {name} | {candidate.name} | {' | '.join(cells)} |", flush=True)
    for candidate in tried:
        cells = [
            difference(pooled[candidate.name][method], pooled[USUAL.name][method])
            for method in METHODS
        ]
        print(f"| all targets | {candidate.name} | {' | '.join(cells)} |")


def _cell(
    candidate: Candidate,
    name: str,
    method: str,
    pooled: Mapping[str, Mapping[str, Scores]],
) -> str:
    """The mean of the usual setting, or the difference of another one to it."""
    ours, usual = (
        {place: score for place, score in pooled[each][method].items() if place[0] == name}
        for each in (candidate.name, USUAL.name)
    )
    if candidate is USUAL:
        return f"{100 * float(np.mean(list(by_unit(ours, Unit.TARGET).values()))):.1f}"
    return difference(ours, usual)


if __name__ == "__main__":
    main()
