"""What one more site would add, by the learning curve over sites, and what more rows would.

Every run gives points after each stage: after k sites, the score at each source not learned yet,
and after the last one the score at the target. Unseen sites differ, so the points are fitted with
an effect for each site: score = a_site + β log k, by least squares. The interval of β comes from
resampling sites.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..base.randomness import derive
from ..deployment.unlike import SiteRows
from ..results.summary import FEWEST_UNITS, Difference, Place, Unit, difference
from ..runs.result import Result
from ..tasks.metrics import METRICS

RESAMPLES = 1000
LEVEL = 0.9
# A slope needs this many different numbers of sites.
FEWEST_STAGES = 2


@dataclass(frozen=True)
class Point:
    """A score at an unseen site after learning `learned` sites."""

    learned: int
    site: str
    score: float


@dataclass(frozen=True)
class Curve:
    """Mean scores by the number of learned sites, and the gain from doubling that number."""

    means: dict[int, float]
    doubling: float
    low: float
    high: float
    sites: int
    level: float = LEVEL

    @property
    def rising(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.low > 0

    def gain(self, sites: int, more: int) -> float:
        """The expected gain from `more` sites in addition to the present ones."""
        return self.doubling * math.log2((sites + more) / sites)


def unseen_scores(result: Result) -> Iterator[tuple[int, str, float]]:
    """After each stage but the last: sites learned so far, a later source, and the score there."""
    for learned, row in enumerate(result.matrices["train"][:-1], start=1):
        for source, score in zip(result.sources[learned:], row[learned:], strict=True):
            if score is not None:
                yield learned, source, score


def points(results: Iterable[Result]) -> list[Point]:
    """All scores at sites that the model had not learned."""
    found: list[Point] = []
    for result in results:
        found += [Point(*each) for each in unseen_scores(result)]
        if result.target is not None and result.target_score is not None:
            found.append(Point(len(result.sources), result.target.name, result.target_score))
    return found


def fit_curve(scored: Sequence[Point]) -> Curve | None:
    """The curve of these points; None if all have the same number of learned sites."""
    learned = sorted({point.learned for point in scored})
    sites = sorted({point.site for point in scored})
    if len(learned) < FEWEST_STAGES or len(sites) < FEWEST_UNITS:
        return None
    points_of: dict[str, list[tuple[float, float]]] = {site: [] for site in sites}
    scores_after: dict[int, list[float]] = {number: [] for number in learned}
    for point in scored:
        points_of[point.site].append((math.log2(point.learned), point.score))
        scores_after[point.learned].append(point.score)
    by_site = [np.array(found) for found in points_of.values()]
    draws = np.random.default_rng(derive(0, "audit", "curve"))
    slopes = [
        _slope([by_site[number] for number in draws.integers(0, len(sites), len(sites))])
        for _ in range(RESAMPLES)
    ]
    tail = (1 - LEVEL) / 2
    low, high = map(float, np.nanquantile(slopes, [tail, 1 - tail]))
    means = {number: float(np.mean(found)) for number, found in scores_after.items()}
    return Curve(means, _slope(by_site), low, high, len(sites))


def _slope(by_site: Sequence[np.ndarray]) -> float:
    """β of score = a_site + β log2 k: the regression after subtracting each site's means."""
    centred = np.concatenate([rows - rows.mean(axis=0) for rows in by_site])
    variance = float((centred[:, 0] ** 2).sum())
    return float((centred[:, 0] * centred[:, 1]).sum() / variance) if variance else math.nan


HALVES = 4


def gain_of_rows(sites: SiteRows, judged: list[str], seed: int = 0) -> Difference | None:
    """The gain in accuracy from twice as many rows per site, paired over the left-out sites.

    Training every candidate again on fewer rows would double the cost of an audit. A linear
    discriminant with shrinkage stands for them: at every left-out site, its score when trained on
    all rows of the other sites, minus the mean score when trained on half of them. The difference
    is what the last doubling of rows brought: the best guess of what the next brings.
    """
    whole: dict[Place, float] = {}
    halved: dict[Place, float] = {}
    for site in judged:
        sizes = {name: len(labels) for name, labels in sites.labels.items() if name != site}
        full = {name: np.arange(size) for name, size in sizes.items()}
        for number in range(HALVES):
            draws = np.random.default_rng(derive(seed, "audit", "halves", site, number))
            halves = {name: np.sort(draws.permutation(size)[::2]) for name, size in sizes.items()}
            first, second = (_score(sites, site, rows) for rows in (full, halves))
            if first is not None and second is not None:
                place = "", site, "", "", number
                whole[place], halved[place] = first, second
    return difference(whole, halved, Unit.TARGET, METRICS[sites.task.metrics[0]])


def _score(sites: SiteRows, site: str, rows: dict[str, np.ndarray]) -> float | None:
    """The score at a site of a linear model trained on these rows of the others."""
    inputs = np.concatenate([sites.inputs[name][chosen] for name, chosen in rows.items()])
    labels = np.concatenate([sites.labels[name][chosen] for name, chosen in rows.items()])
    return sites.task.either(_accuracy, _error)(sites, site, inputs, labels)


def _error(sites: SiteRows, site: str, inputs: np.ndarray, labels: np.ndarray) -> float:
    """The mean absolute error of ridge regression."""
    from sklearn.linear_model import RidgeCV

    model = RidgeCV(np.logspace(-2, 4, 7)).fit(inputs, labels)
    found = model.predict(sites.inputs[site]).reshape(-1, sites.task.outputs)
    return sites.task.score("mae", *map(torch.from_numpy, (found, sites.labels[site])))


def _accuracy(sites: SiteRows, site: str, inputs: np.ndarray, labels: np.ndarray) -> float | None:
    """The accuracy of a linear discriminant; None without two classes that have rows."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    classes, counts = np.unique(labels, return_counts=True)
    known = np.isin(labels, classes[counts > 1])  # one row has no covariance
    inputs, labels = inputs[known], labels[known]
    if (counts > 1).sum() < 2:
        return None
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(inputs, labels)
    return float((model.predict(sites.inputs[site]) == sites.labels[site]).mean())
