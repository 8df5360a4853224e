"""How the inputs of the sites differ: a classifier that tells each site from the others.

The classifier is fitted to the rows of a site and as many rows of the others; `data.separation` has
the area under its ROC curve. By chance, the area has the standard error √((n + m + 1) / (12 n m))
(Mann and Whitney, 1947).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..base.randomness import derive
from ..benchmarks import make_benchmark
from ..data.domain import Domain
from ..data.separation import as_numbers, separation
from ..data.tables.table import TablePreprocessing
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task

# The classifier sees at most this many rows of a site, and of all others together.
MOST_ROWS = 1000
# The probability of calling some site different although none is.
RISK = 0.01
# At most this many columns are named for a site.
MOST_COLUMNS = 5


@dataclass(frozen=True)
class SiteRows:
    """Rows of all sites as numbers, perhaps samples, column names, and real `counts`.

    labels: the numbers of classes, or labels as the task encodes them.
    """

    inputs: dict[str, np.ndarray]
    labels: dict[str, np.ndarray]
    counts: dict[str, int]
    columns: list[str]
    task: Task = CLASSIFICATION


@dataclass(frozen=True)
class ColumnShift:
    """How far a column of a site is from the others: the largest gap between the distributions.

    missing, elsewhere: the shares of rows without a value, here and at the other sites.
    """

    column: str
    distance: float
    missing: float = 0.0
    elsewhere: float = 0.0

    def __str__(self) -> str:
        """The gap; if it is one of missing values, these."""
        text = f"{self.column} (gap {self.distance:.2f}"
        if abs(self.missing - self.elsewhere) > self.distance / 2:
            text += f": missing in {self.missing:.0%} of the rows, elsewhere {self.elsewhere:.0%}"
        return f"{text})"


@dataclass(frozen=True)
class SiteShift:
    """How a site differs from the others.

    area: how well a classifier separates its rows from the others; 0.5 is chance, 1 is perfect.
    different: whether the area is larger than chance explains.
    columns: the columns that differ most, by the largest gap between distribution functions.
    """

    site: str
    rows: int
    area: float
    different: bool
    columns: tuple[ColumnShift, ...]


def read_sites(benchmark: str, options: Mapping[str, object], seed: int = 0) -> SiteRows:
    """Rows of every site, all scaled by the first one.

    A scenario hides its target, so the last site is read from a second one, in which another site
    is the target. Nothing is trained here, and no run reads what this returns.
    """
    source = make_benchmark(benchmark, options)
    names = list(source.learnable_names())
    first = source.scenario(target=names[-1], seed=seed)
    second = source.scenario(target=names[1], seed=seed)
    domains = {domain.name: domain for domain in (*second.sources, *first.sources)}
    preprocessing = first.preprocessing
    chosen = {name: _sample(domains[name], seed) for name in names}
    inputs = {name: as_numbers(np.asarray(domains[name].inputs)[chosen[name]]) for name in names}
    # Each scenario numbers the classes of its own sources.
    numbers = {
        name: place for place, name in enumerate(dict.fromkeys(first.classes + second.classes))
    }
    of_class = {
        domain.name: np.array([numbers[each] for each in made.classes])
        for made in (second, first)
        for domain in made.sources
    }
    labels = {name: domains[name].labels.numpy()[chosen[name]] for name in names}
    if numbers:
        labels = {name: of_class[name][each] for name, each in labels.items()}
    width = next(iter(inputs.values())).shape[1]
    columns = preprocessing.features if isinstance(preprocessing, TablePreprocessing) else []
    if len(columns) != width:
        columns = [f"input {number + 1}" for number in range(width)]
    counts = {name: len(domains[name]) for name in names}
    return SiteRows(inputs, labels, counts, columns, first.task)


def _sample(domain: Domain, seed: int) -> np.ndarray:
    """The positions of at most `MOST_ROWS` rows of a domain."""
    if len(domain) <= MOST_ROWS:
        return np.arange(len(domain))
    draws = np.random.default_rng(derive(seed, "audit", domain.name))
    return np.sort(draws.choice(len(domain), MOST_ROWS, replace=False))


def compare_sites(sites: SiteRows, seed: int = 0) -> list[SiteShift]:
    """How each site differs from the others, the most different first."""
    shifts = []
    for site, rows in sites.inputs.items():
        draws = np.random.default_rng(derive(seed, "audit", "others", site))
        others = np.concatenate([other for name, other in sites.inputs.items() if name != site])
        count = min(len(rows), len(others), MOST_ROWS)
        own = rows[draws.permutation(len(rows))[:count]]
        rest = others[draws.permutation(len(others))[:count]]
        area = separation(own, rest, derive(seed, "audit", "forest", site) % 2**32)
        chance = chance_error(count, count)
        limit = 0.5 + float(stats.norm.ppf(1 - RISK / len(sites.inputs))) * chance
        columns = _columns(rows, others, sites.columns)
        shifts.append(SiteShift(site, sites.counts[site], area, area > limit, columns))
    return sorted(shifts, key=lambda shift: -shift.area)


def chance_error(own: int, rest: int) -> float:
    """The standard error of the area by chance, for samples of these sizes."""
    return math.sqrt((own + rest + 1) / (12 * own * rest))


def _columns(own: np.ndarray, rest: np.ndarray, names: Sequence[str]) -> tuple[ColumnShift, ...]:
    """The columns with the largest gaps; several features of one column count once."""
    gaps: dict[str, float] = {}
    missing: dict[str, tuple[float, float]] = {}
    for number, name in enumerate(names):
        column = name.split(" = ")[0].removesuffix(" missing")
        here, there = own[:, number], rest[:, number]
        gap = float(stats.ks_2samp(here, there, method="asymp").statistic)
        gaps[column] = max(gap, gaps.get(column, 0.0))
        if name in (f"{column} missing", f"{column} = (missing)"):
            missing[column] = float(here.mean()), float(there.mean())
    ranked = sorted(gaps, key=lambda column: -gaps[column])[:MOST_COLUMNS]
    return tuple(
        ColumnShift(column, gaps[column], *missing.get(column, (0.0, 0.0))) for column in ranked
    )
