"""What score to expect at a new site, and which answers per row, from sites that were measured.

Scores are taken to a scale without ends: shares of rows by y = log(p / (1 - p)), positive errors by
y = log(e). What is not explained at a site is its residual: y minus the mean over the sites, or,
where something is seen of the sites without labels, y minus that of a guess. The guess is halfway
between the mean score of the other sites and what was seen. Two statements can be made.

If the new site is exchangeable with n others (no order of them is more probable than another), the
largest of n + 1 residuals is its own with probability 1 / (n + 1), whatever their distribution. The
scores with which its residual would not be among the (n + 1)(1 - level) largest are a set of at
least this level (Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005). It has
ends from n = level / (1 - level) sites on: 9 for 90%.

With fewer sites, a model is needed: true values θ_i ~ N(μ, τ²), measured with errors v_i,
y_i ~ N(θ_i, v_i). Nothing is known about μ; residuals of guesses have μ = 0. The spread τ has a
prior from an atlas of public tables with sites: log τ has Student's distribution that predicts the
next table from those of the atlas: of log odds of accuracies, of logarithms of errors, or of log
odds of the shares of rows below. The interval is that of the posterior of the new site's y.

A row's set contains every answer whose score is at most t. The scores of true answers at site i are
at most t in a share F_i(t) of its rows. From 19 sites on, t is the least with Σ F_i(t) / (n + 1) at
the level: a row of the next exchangeable site is covered with this probability (Dunn, Wasserman,
Ramdas, "Distribution-Free Prediction Sets for Two-Layer Hierarchical Models", 2022). With fewer,
this t would be near the largest score of all; instead, t has a posterior mean of F(t) at the level,
by the model above. A score can be 1 - p(answer) of a class or the distance of a number from its
prediction: only its quantiles at each site are needed.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
from scipy import special, stats

from ..tasks.metrics import Metric
from ..tasks.task import TaskName

LEVEL = 0.9
# With fewer sites there is no interval.
FEWEST_SITES = 3
# From how many sites on the sets of rows need no model.
FEWEST_FOR_ROWS = 19
# No spread of log(p / (1 - p)) or of log(e) between real sites is outside these.
SPREADS = np.geomspace(0.01, 5.0, 120)
# Few tables may be alike by accident: log τ is doubted by a factor of 2 at least.
LEAST_DOUBT = math.log(2)
# The quantiles of a site's row scores that are kept.
SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 1.0)
CANDIDATES = 801


class Basis(StrEnum):
    """What a statement rests on."""

    EXCHANGEABLE = "holds for exchangeable sites"
    MODEL = "model-based"


@dataclass(frozen=True)
class Expectation:
    """The score at a new site, and the interval for one site; `sites` is how many it rests on."""

    mean: float
    low: float
    high: float
    sites: int
    basis: Basis
    level: float = LEVEL

    @property
    def width(self) -> float:
        """The distance from the lower to the upper end."""
        return self.high - self.low


@dataclass(frozen=True)
class Scale:
    """A scale without ends: to it, back, the error there of a score over so many rows, the scores
    that a new site may have, and the task whose tables of the atlas have such scores.
    """

    to: Callable[[np.ndarray, np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], np.ndarray]
    error: Callable[[np.ndarray, np.ndarray], np.ndarray]
    candidates: Callable[[np.ndarray], np.ndarray]
    task: TaskName = "classification"


def _logit(share: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """0 and 1 count as half a row."""
    half = 0.5 / np.maximum(rows, 1)
    return np.asarray(special.logit(np.clip(share, half, 1 - half)))


def _logit_error(share: np.ndarray, rows: np.ndarray) -> np.ndarray:
    p = special.expit(_logit(share, np.maximum(rows, 2)))
    return np.asarray(1 / np.sqrt(np.maximum(rows, 1) * p * (1 - p)))


SHARE = Scale(_logit, special.expit, _logit_error, lambda scores: np.linspace(0, 1, CANDIDATES))
# A mean of errors whose deviation is as large as themselves.
POSITIVE = Scale(
    lambda score, rows: np.log(np.maximum(score, 1e-12)),
    np.exp,
    lambda score, rows: np.maximum(rows, 1) ** -0.5,
    lambda scores: np.geomspace(max(scores.min(), 1e-9) / 30, scores.max() * 30 + 1e-9, CANDIDATES),
    "regression",
)


@dataclass(frozen=True)
class Posterior:
    """The y of the next site: a mixture of normal distributions, one for each spread."""

    weights: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    def below(self, value: float) -> float:
        """The probability that the next one is below a value."""
        return float(self.weights @ special.ndtr((value - self.means) / self.deviations))

    def quantile(self, share: float) -> float:
        """The value that the next one stays below with this probability."""
        far = 40 * self.deviations
        low, high = float((self.means - far).min()), float((self.means + far).max())
        return _least(low, high, lambda value: self.below(value) >= share)

    def mean_share(self) -> float:
        """The mean of the share whose y this is."""
        points, weights = np.polynomial.hermite_e.hermegauss(15)
        shares = special.expit(self.means[:, None] + self.deviations[:, None] * points)
        return float(self.weights @ shares @ weights / weights.sum())


def _least(low: float, high: float, enough: Callable[[float], bool], steps: int = 60) -> float:
    """The least value between these that is enough; the highest, if none is."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def posterior(
    values: np.ndarray,
    errors: np.ndarray,
    error_here: float,
    spreads: Sequence[float],
    *,
    centred: bool = False,
) -> Posterior:
    """The next site's y from those of n sites with their standard errors.

    spreads: of the tables of the atlas.
    centred: whether μ is 0 instead of unknown.
    """
    total = SPREADS[:, None] ** 2 + np.square(errors)
    precision = (1 / total).sum(axis=1)
    means = np.zeros(len(SPREADS)) if centred else (values / total).sum(axis=1) / precision
    away = ((values - means[:, None]) ** 2 / total).sum(axis=1)
    log_weights = -0.5 * (np.log(total).sum(axis=1) + away)
    variance = SPREADS**2 + error_here**2
    if not centred:
        log_weights -= 0.5 * np.log(precision)
        variance = variance + 1 / precision
    logs = np.log(spreads)
    width = max(logs.std(ddof=1) * math.sqrt(1 + 1 / len(logs)), LEAST_DOUBT)
    # The grid is even in log τ.
    log_weights += stats.t(len(logs) - 1, logs.mean(), width).logpdf(np.log(SPREADS))
    return Posterior(special.softmax(log_weights), means, np.sqrt(variance))


@cache
def atlas(task: TaskName, of: Literal["spread", "rows"] = "spread") -> tuple[float, ...]:
    """The spreads of public tables with sites, of their scores or of shares of their rows;
    `python bench/atlas.py` writes them.
    """
    with (files("farshore.results") / "atlas.csv").open() as file:
        return tuple(float(row[of]) for row in csv.DictReader(file) if row["task"] == task)


def fewest_for(level: float) -> int:
    """From how many exchangeable sites on there is an interval of this level."""
    return math.ceil(level / (1 - level) - 1e-9)


def expect(
    scores: Mapping[str, Sequence[float]],
    rows: Mapping[str, int],
    level: float = LEVEL,
    scale: Scale = SHARE,
    spreads: Sequence[float] | None = None,
) -> Expectation | None:
    """The interval from each site's scores, one per run, over so many rows; None with too few.

    The y of a site is the mean of m runs with a variance w² between them; a single model at the
    new site varies by w², not by w² / m.
    """
    runs = {site: np.asarray(of_site, float) for site, of_site in scores.items() if len(of_site)}
    if len(runs) < FEWEST_SITES:
        return None
    counts = {site: np.asarray(rows[site], float) for site in runs}
    moved = {site: scale.to(of_site, counts[site]) for site, of_site in runs.items()}
    repeated = [of_site.var(ddof=1) for of_site in moved.values() if len(of_site) > 1]
    within = float(np.mean(repeated)) if repeated else 0.0
    means = np.array([of_site.mean() for of_site in runs.values()])
    many = np.array(list(counts.values()))
    chance = scale.error(means, many) ** 2
    found = posterior(
        np.array([of_site.mean() for of_site in moved.values()]),
        np.sqrt(chance + within / np.array([len(of_site) for of_site in runs.values()])),
        math.sqrt(float(chance.mean()) + within),
        atlas(scale.task) if spreads is None else spreads,
    )
    if len(runs) < fewest_for(level):
        low, high = _ends(found, scale, level)
        basis = Basis.MODEL
    else:
        usual = np.append(many, many.mean())

        def residuals(tried: np.ndarray) -> np.ndarray:
            y = scale.to(tried, usual)
            return np.asarray(y - y.mean(axis=1, keepdims=True))

        low, high = conformal(means, scale.candidates(means), residuals, level)
        basis = Basis.EXCHANGEABLE
    return Expectation(float(means.mean()), low, high, len(runs), basis, level)


def expect_in(
    metric: Metric,
    scores: Mapping[str, Sequence[float]],
    rows: Mapping[str, int],
    level: float = LEVEL,
) -> Expectation | None:
    """The interval on the scale of a metric; R² and skill are 1 minus a ratio of errors."""
    if math.isinf(metric.low):
        ratios = {site: [1 - each for each in of_site] for site, of_site in scores.items()}
        found = expect(ratios, rows, level, POSITIVE)
        if found is None:
            return None
        return replace(found, mean=1 - found.mean, low=1 - found.high, high=1 - found.low)
    return expect(scores, rows, level, POSITIVE if math.isinf(metric.high) else SHARE)


def expect_here(
    scores: np.ndarray,
    rows: np.ndarray,
    seen: np.ndarray,
    level: float = LEVEL,
    scale: Scale = SHARE,
    spreads: Sequence[float] | None = None,
) -> Expectation | None:
    """The same for a site of which something is seen without labels.

    rows, seen: of the n measured sites, then of this one; `seen` says what score it looks like.
    """
    count = len(scores)
    if count < FEWEST_SITES:
        return None

    def residuals(tried: np.ndarray) -> np.ndarray:
        others = (tried.sum(axis=-1, keepdims=True) - tried) / (tried.shape[-1] - 1)
        many, looks = rows[: tried.shape[-1]], seen[: tried.shape[-1]]
        return np.asarray(scale.to(tried, many) - scale.to((others + looks) / 2, many))

    mean = float((scores.mean() + seen[-1]) / 2)
    if count >= fewest_for(level):
        low, high = conformal(scores, scale.candidates(scores), residuals, level)
        return Expectation(mean, low, high, count, Basis.EXCHANGEABLE, level)
    here = np.array(mean), rows[-1:]
    found = posterior(
        residuals(scores),
        scale.error(scores, rows[:-1]),
        float(scale.error(*here)[0]),
        atlas(scale.task) if spreads is None else spreads,
        centred=True,
    )
    low, high = _ends(found, scale, level, float(scale.to(*here)[0]))
    return Expectation(mean, low, high, count, Basis.MODEL, level)


def _ends(found: Posterior, scale: Scale, level: float, centre: float = 0.0) -> tuple[float, float]:
    low, high = (centre + found.quantile((1 + side * level) / 2) for side in (-1, 1))
    return float(scale.back(np.array(low))), float(scale.back(np.array(high)))


def conformal(
    scores: np.ndarray,
    candidates: np.ndarray,
    residuals: Callable[[np.ndarray], np.ndarray],
    level: float,
) -> tuple[float, float]:
    """The ends of the candidates with which the new site's residual is not among the largest.

    residuals: of n + 1 sites [candidates, n + 1], whose last one is new; they may depend on all
    scores, but not on the order of the sites.
    """
    allowed = math.floor((len(scores) + 1) * (1 - level) + 1e-9)
    tried = np.column_stack([np.tile(scores, (len(candidates), 1)), candidates])
    sizes = np.abs(residuals(tried))
    kept = np.flatnonzero((sizes[:, :-1] >= sizes[:, -1:] - 1e-12).sum(axis=1) >= allowed)
    # A step further on both sides: what lies between two candidates was not tried.
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, len(candidates) - 1)
    return float(candidates[first]), float(candidates[last])


# ---- sets of answers per row ---------------------------------------------------------------------


@dataclass(frozen=True)
class RowSets:
    """A row's set has every answer whose score is at most `most`."""

    most: float
    sites: int
    basis: Basis
    level: float = LEVEL


def quantiles(scores: np.ndarray) -> list[float]:
    """The quantiles of a site's row scores that are kept: no smaller than they are."""
    return [float(each) for each in np.quantile(scores, SHARES, method="higher")]


def row_sets(
    sites: Sequence[Sequence[float]],
    rows: Sequence[int],
    task: TaskName = "classification",
    level: float = LEVEL,
    spreads: Sequence[float] | None = None,
) -> RowSets | None:
    """The sets from the quantiles of each site's row scores; None with too few sites."""
    prior = atlas(task, "rows") if spreads is None else spreads
    if len(sites) < FEWEST_SITES:
        return None
    many, count = np.asarray(rows, float), len(sites)
    ends = [(min(0.0, of_site[0]), *of_site) for of_site in sites]

    def shares(most: float) -> np.ndarray:
        return np.array([np.interp(most, of_site, (0, *SHARES)) for of_site in ends])

    def covered(most: float) -> float:
        found = shares(most)
        if count >= FEWEST_FOR_ROWS:
            return float(found.sum() / (count + 1))
        errors = SHARE.error(found, many)
        return posterior(SHARE.to(found, many), errors, 0.0, prior).mean_share()

    top = max(of_site[-1] for of_site in sites)
    most = _least(0.0, top, lambda most: covered(most) >= level, steps=30)
    basis = Basis.EXCHANGEABLE if count >= FEWEST_FOR_ROWS else Basis.MODEL
    return RowSets(most, count, basis, level)
