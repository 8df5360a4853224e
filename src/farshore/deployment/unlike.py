"""How the inputs of the sites differ: a classifier that tells each site from the others.

A random forest is fitted to the rows of a site and as many rows of the others. The
rows are ranked by its out-of-bag votes, which come only from trees that were not fitted to the row.
The area under the ROC curve is the probability that a row of the site ranks above a row of another
site; 0.5 means that the site is like the others. By chance, the area has the standard error
√((n + m + 1) / (12 n m)) (Mann and Whitney, 1947).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..base.randomness import derive
from ..benchmarks import make_benchmark
from ..data.domain import Domain
from ..data.tables.table import TablePreprocessing

# The classifier sees at most this many rows of a site, and of all others together.
MOST_ROWS = 1000
TREES = 100
# Images are averaged to a grid with this many cells per side.
GRID = 8
# The probability of calling some site different although none is.
RISK = 0.01
# At most this many columns are named for a site.
MOST_COLUMNS = 5


@dataclass(frozen=True)
class SiteRows:
    """Rows of all sites as numbers, perhaps samples, column names, and real `counts`."""

    inputs: dict[str, np.ndarray]
    labels: dict[str, np.ndarray]
    counts: dict[str, int]
    columns: list[str]


@dataclass(frozen=True)
class ColumnShift:
    """How far a column of a site is from the others: the largest gap between the distributions."""

    column: str
    distance: float


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
    names = list(source.domain_names())
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
    labels = {name: of_class[name][domains[name].labels.numpy()[chosen[name]]] for name in names}
    width = next(iter(inputs.values())).shape[1]
    columns = preprocessing.features if isinstance(preprocessing, TablePreprocessing) else []
    if len(columns) != width:
        columns = [f"input {number + 1}" for number in range(width)]
    counts = {name: len(domains[name]) for name in names}
    return SiteRows(inputs, labels, counts, columns)


def _sample(domain: Domain, seed: int) -> np.ndarray:
    """The positions of at most `MOST_ROWS` rows of a domain."""
    count = len(domain)
    if count <= MOST_ROWS:
        return np.arange(count)
    draws = np.random.default_rng(derive(seed, "audit", domain.name))
    chosen: np.ndarray = np.sort(draws.choice(count, MOST_ROWS, replace=False))
    return chosen


def as_numbers(inputs: np.ndarray) -> np.ndarray:
    """Rows as vectors; images as a coarse grid of grey values."""
    rows: np.ndarray = inputs.astype(np.float32)
    if rows.ndim == 4:
        rows = rows.mean(axis=1)
        parts = [np.array_split(np.arange(side), min(GRID, side)) for side in rows.shape[1:]]
        cells = [
            rows[:, down][:, :, across].mean(axis=(1, 2))
            for down in parts[0]
            for across in parts[1]
        ]
        rows = np.stack(cells, axis=1)
    return rows.reshape(len(rows), -1)


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
        shifts.append(
            SiteShift(
                site, sites.counts[site], area, area > limit, _columns(rows, others, sites.columns)
            )
        )
    return sorted(shifts, key=lambda shift: -shift.area)


def chance_error(own: int, rest: int) -> float:
    """The standard error of the area by chance, for samples of these sizes."""
    return math.sqrt((own + rest + 1) / (12 * own * rest))


def separation(own: np.ndarray, rest: np.ndarray, seed: int, trees: int = TREES) -> float:
    """The area under the ROC curve of out-of-bag votes."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    if len(own) < 2:
        return 0.5
    forest = RandomForestClassifier(trees, min_samples_leaf=2, oob_score=True, random_state=seed)
    is_own = np.repeat([1, 0], [len(own), len(rest)])
    forest.fit(np.concatenate([own, rest]), is_own)
    votes = np.nan_to_num(forest.oob_decision_function_[:, 1], nan=0.5)
    return float(roc_auc_score(is_own, votes))


def _columns(own: np.ndarray, rest: np.ndarray, names: Sequence[str]) -> tuple[ColumnShift, ...]:
    """The columns with the largest gaps; several features of one column count once."""
    gaps: dict[str, float] = {}
    for number, name in enumerate(names):
        column = name.split(" = ")[0].removesuffix(" missing")
        gap = float(stats.ks_2samp(own[:, number], rest[:, number], method="asymp").statistic)
        gaps[column] = max(gap, gaps.get(column, 0.0))
    ranked = sorted(gaps, key=lambda column: -gaps[column])[:MOST_COLUMNS]
    return tuple(ColumnShift(column, gaps[column]) for column in ranked)
