"""The verdict on a site that arrives without labels: whether the model can be trusted there.

A site may differ from the known ones without harm, so the alarm is not about difference. It is
raised if the site lies outside the range that the known sites span, in one of these ways:

- confidence: the mean confidence is below that of every known site, measured on held-out rows and,
  for each site, before it was learned;
- separation: a random forest tells the site from the kept rows of all sites far better than it
  tells any known site from the others;
- neighbours: far more rows have no near neighbour among the kept rows;
- distance: the mean of the features is far further from the nearest site than any known site's;
- missing values, unknown categories, or columns with a single value, far beyond the known sites'.

All limits leave room for chance. The two-sample test reports, with its p-value, whether the site
differs at all.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats
from torch import Tensor

from ..base.randomness import derive
from ..data.separation import as_numbers, deviations, separation
from .familiarity import Moments, nearest_distance
from .unlike import chance_error

# With fewer rows, a site cannot be judged as a whole.
FEWEST_ROWS = 20
# The forest sees at most this many rows of a site, and compares at most this many known sites.
MOST_ROWS = 200
MOST_SITES = 10
TREES = 40
# How far, beyond chance, a mean confidence may lie below the lowest of the known sites.
CONFIDENCE_ROOM = 0.015
CONFIDENCE_RISK = 0.01
# How far a separation may lie above the largest between known sites, in standard deviations of
# normal distributions that are separated as well; and the area that is never an alarm.
SEPARATION_ROOM = 0.4
HARMLESS_AREA = 0.7
# The same for the share of rows without a near neighbour.
STRANGE_ROOM = 0.05
# Two signs together are an alarm from this share of the room of each.
SHARE_OF_BOTH = 0.4
# With the usual confidence, other signs must be this many times further out of range.
USUALLY_CONFIDENT = 2.0
# With a single known site there is no spread between sites: only this area is an alarm.
LONE_AREA = 0.97
# An input counts if shuffling it changes the predictions at least by this share of what shuffling
# the most important one does.
LEAST_INFLUENCE = 0.25
# A distance is an alarm from this multiple of the largest between known sites, and from this size.
DISTANCE_FACTOR = 1.8
LEAST_DISTANCE = 0.1
# Shares beyond the largest of the known sites.
MISSING_ROOM = 0.3
UNKNOWN_ROOM = 0.5
# Below this multiple of the known sites' share of varying inputs, the table is constant.
VARYING_FACTOR = 0.5


@dataclass(frozen=True)
class SiteProfile:
    """What can be seen of a site as a whole without labels; stored for every learned site."""

    rows: int
    missing: float
    unknown: float
    varying: float

    def plain(self) -> dict[str, float]:
        """The numbers by name."""
        return asdict(self) | {"rows": float(self.rows)}


@dataclass(frozen=True)
class Range:
    """A quantity at the site, and the range of it at the known sites."""

    here: float
    low: float
    high: float


@dataclass(frozen=True)
class SiteVerdict:
    """What `predict` says about a site as a whole.

    p_value: of the two-sample test against the kept rows, or against the stored means of methods
    that keep none; None if there is nothing to compare with. area: how well the forest separates
    the site from the kept rows. reasons: why there is an alarm; empty without one.
    """

    rows: int
    missing: Range
    unknown: Range
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    p_value: float | None = None
    area: Range | None = None
    confidence: Range | None = None
    distance: Range | None = None
    neighbours: Range | None = None

    @property
    def alarm(self) -> bool:
        """Whether the site lies outside what the model knows, in a way that harms."""
        return bool(self.reasons)

    @property
    def different(self) -> bool:
        """Whether the site differs from the known ones, harmfully or not."""
        return self.p_value is not None and self.p_value < 0.01


def profile(inputs: Tensor, missing: float, unknown: float) -> SiteProfile:
    """The profile of a site's inputs, as the network gets them."""
    flat = inputs.flatten(1).float()
    varying = float((flat.max(dim=0).values > flat.min(dim=0).values).float().mean())
    return SiteProfile(len(inputs), missing, unknown, varying)


# ---- the parts of a verdict ----------------------------------------------------------------------


@dataclass(frozen=True)
class Sign:
    """A quantity at the site and at the known ones.

    excess: how far it is out of their range, where 1 uses up the room that is left for chance and
    for the usual differences between sites; 0 and below is inside the range.
    """

    range: Range
    excess: float
    text: str


def judge_confidence(
    confidence: np.ndarray, known: Mapping[str, np.ndarray], unseen: Sequence[float]
) -> Sign | None:
    """Compare the mean confidence with held-out rows, and with sites before they were learned."""
    means = [float(values.mean()) for values in known.values() if len(values)] + list(unseen)
    if not means:
        return None
    here = float(confidence.mean())
    error = float(confidence.std()) / math.sqrt(len(confidence))
    room = CONFIDENCE_ROOM + float(stats.norm.ppf(1 - CONFIDENCE_RISK)) * error
    bound = Range(here, min(means), max(means))
    text = (
        f"the mean confidence is {100 * here:.1f}%, but at known sites it was at least "
        f"{100 * bound.low:.1f}%"
    )
    return Sign(bound, (bound.low - here) / room, text)


def judge_separation(
    inputs: np.ndarray,
    kept: Mapping[str, np.ndarray],
    relevant: np.ndarray,
    between: Sequence[float],
    seed: int,
) -> tuple[float | None, Sign | None]:
    """The two-sample test: its p-value, and how its area compares with those of known sites.

    relevant: which inputs count for the predictions. The test looks at all of them, the comparison
    with the areas `between` known sites at these alone.
    """
    rows = _samples(kept, seed)
    if not rows:
        return None, None
    own = _some(as_numbers(inputs), seed, "")
    everything = np.concatenate(list(rows.values()))
    count = min(len(own), len(everything))
    error = chance_error(count, count)
    area = _separated(own, everything, seed, "")
    p_value = float(stats.norm.sf((area - 0.5) / error))
    if not relevant.all():
        area = _separated(own[:, relevant], everything[:, relevant], seed, "")
    if not between:
        text = f"a classifier tells its rows from those of the only known site (area {area:.2f})"
        return p_value, Sign(Range(area, 0.5, 0.5), (area - 0.5) / (LONE_AREA - 0.5), text)
    known = Range(area, min(between), max(between))
    spread = [deviations(each) for each in between]
    # Near 0.5, an area changes by its error if the distance changes by 2 √π times as much.
    room = max(SEPARATION_ROOM, 2 * float(np.std(spread))) + 4 * math.sqrt(math.pi) * error
    start = max(deviations(HARMLESS_AREA) - room, max(spread))
    text = (
        f"a classifier tells its rows from those of known sites (area {area:.2f}) better than it "
        f"tells known sites apart (at most {known.high:.2f})"
    )
    return p_value, Sign(known, (deviations(area) - start) / room, text)


def areas_between(kept: Mapping[str, np.ndarray], relevant: np.ndarray, seed: int) -> list[float]:
    """How well each known site is separated from the others; empty with a single site."""
    rows = {name: each[:, relevant] for name, each in _samples(kept, seed).items()}
    areas = []
    for name in list(rows)[-MOST_SITES:] if len(rows) > 1 else ():
        others = np.concatenate([rows[other] for other in rows if other != name])
        areas.append(_separated(rows[name], others, seed, name))
    return areas


def judge_strangeness(values: np.ndarray, between: Sequence[float]) -> Sign | None:
    """Compare the share of strange rows with that of each known site, seen from the others."""
    if not between:
        return None
    here = float((values > 1).mean())
    known = _range(here, between)
    error = math.sqrt((here * (1 - here) + 1 / len(values)) / len(values))
    room = STRANGE_ROOM + 2 * float(np.std(between))
    room += float(stats.norm.ppf(1 - CONFIDENCE_RISK)) * error
    text = (
        f"{100 * here:.0f}% of the rows have no near neighbour among the kept rows, but at known "
        f"sites at most {100 * known.high:.0f}%"
    )
    return Sign(known, (here - known.high) / room, text)


def influences(
    predict: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray, seed: int
) -> np.ndarray:
    """Which columns change the predictions when they are shuffled; all, if none does."""
    draws = np.random.default_rng(derive(seed, "verdict", "influence"))
    before = predict(inputs)
    changes = np.zeros(inputs.shape[1])
    for column in range(inputs.shape[1]):
        shuffled = inputs.copy()
        shuffled[:, column] = draws.permutation(shuffled[:, column])
        changes[column] = np.abs(predict(shuffled) - before).mean()
    # `not <` also for a model whose probabilities are no numbers.
    return ~(changes < LEAST_INFLUENCE * changes.max())


def weigh(confidence: Sign | None, others: Sequence[Sign | None]) -> list[str]:
    """The signs that are an alarm by themselves, or two weaker ones together.

    A model that is as confident as usual is more often right than wrong about a site that merely
    differs: then only signs far out of range are an alarm.
    """
    given = [sign for sign in others if sign is not None]
    usual = False
    if confidence is not None:
        usual = confidence.range.here >= 0.5 * (confidence.range.low + confidence.range.high)
        given.insert(0, confidence)
    limit = USUALLY_CONFIDENT if usual else 1.0
    alone = [sign.text for sign in given if sign.excess > limit]
    together = [sign.text for sign in given if sign.excess > SHARE_OF_BOTH * limit]
    return alone or (together if len(together) > 1 else [])


def judge_distance(features: Tensor, sites: Mapping[str, Moments]) -> Sign | None:
    """Compare the distance of the mean features with those between known sites."""
    if len(sites) < 2:
        return None
    here = nearest_distance(features.double().mean(dim=0), sites)
    between = [
        nearest_distance(site.mean, {other: each for other, each in sites.items() if other != name})
        for name, site in sites.items()
    ]
    known = Range(here, min(between), max(between))
    limit = max(LEAST_DISTANCE, DISTANCE_FACTOR * known.high)
    text = (
        f"the mean of its features is {here / max(known.high, 1e-9):.1f} times as far from the "
        "nearest known site as known sites are from each other"
    )
    return Sign(known, (here - known.high) / max(limit - known.high, 1e-9), text)


def means_p_value(features: Tensor, sites: Mapping[str, Moments]) -> float | None:
    """The p-value of Hotelling's test against the stored mean of the nearest site.

    n times the squared distance has about a chi-squared distribution. Without the number of rows
    behind the stored means, these are taken as exact.
    """
    if not sites:
        return None
    mean = features.double().mean(dim=0)
    width = features.shape[1]
    nearest = nearest_distance(mean, sites)
    return float(stats.chi2.sf(len(features) * width * nearest**2, width))


def judge_profile(
    here: SiteProfile, known: Sequence[SiteProfile]
) -> tuple[Range, Range, list[str]]:
    """Missing values, unknown categories and constant columns against the known sites."""
    missing = _range(here.missing, [each.missing for each in known])
    unknown = _range(here.unknown, [each.unknown for each in known])
    reasons = []
    if here.missing > missing.high + MISSING_ROOM:
        reasons.append(
            f"{100 * here.missing:.0f}% of the values are missing, but at known sites at most "
            f"{100 * missing.high:.0f}%"
        )
    if here.unknown > unknown.high + UNKNOWN_ROOM:
        reasons.append(
            f"{100 * here.unknown:.0f}% of the rows have unknown categories, but at known sites "
            f"at most {100 * unknown.high:.0f}%"
        )
    varying = min((each.varying for each in known), default=0.0)
    if here.rows >= FEWEST_ROWS and here.varying < VARYING_FACTOR * varying:
        reasons.append(
            f"{100 * (1 - here.varying):.0f}% of the inputs have the same value in all rows, but "
            f"at known sites at most {100 * (1 - varying):.0f}%"
        )
    return missing, unknown, reasons


def _range(here: float, known: Sequence[float]) -> Range:
    return Range(here, min(known, default=0.0), max(known, default=0.0))


def _samples(kept: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    return {name: _some(as_numbers(each), seed, name) for name, each in kept.items() if len(each)}


def _some(rows: np.ndarray, seed: int, name: str) -> np.ndarray:
    draws = np.random.default_rng(derive(seed, "verdict", name))
    return rows[draws.permutation(len(rows))[:MOST_ROWS]]


def _separated(own: np.ndarray, rest: np.ndarray, seed: int, name: str) -> float:
    """The area with as many rows of the rest as of its own."""
    draws = np.random.default_rng(derive(seed, "verdict", "rest", name))
    count = min(len(own), len(rest))
    first, second = (rows[draws.permutation(len(rows))[:count]] for rows in (own, rest))
    return separation(first, second, derive(seed, "verdict", "forest", name) % 2**32, TREES)
