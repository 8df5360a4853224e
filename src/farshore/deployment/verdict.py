"""The verdict on a site that arrives without labels: whether the model can be trusted there.

A site may differ from the known ones without harm, so the alarm is not about difference. It is
raised if the site lies outside the range that the known sites span, in one of these ways:

- confidence: the mean confidence is below that of every known site, measured on held-out rows and,
  for each site, before it was learned;
- separation: a random forest tells the site from the kept rows of all sites far better than it
  tells any known site from the others;
- distance: the mean of the features is far further from the nearest site than any known site's;
- missing values, unknown categories, or columns with a single value, far beyond the known sites'.

All limits leave room for chance. The two-sample test reports, with its p-value, whether the site
differs at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats
from torch import Tensor

from ..findings.unlike import as_numbers, chance_error, separation
from ..randomness import derive
from .familiarity import Moments, nearest_distance

# With fewer rows, a site cannot be judged as a whole.
FEWEST_ROWS = 20
# The forest sees at most this many rows of a site, and compares at most this many known sites.
MOST_ROWS = 300
MOST_SITES = 10
# How far, beyond chance, a mean confidence may lie below the lowest of the known sites.
CONFIDENCE_ROOM = 0.03
CONFIDENCE_RISK = 0.01
# How far a separation may lie above the largest between known sites, in standard deviations of
# normal distributions that are separated as well; and the area that is never an alarm.
SEPARATION_ROOM = 0.9
HARMLESS_AREA = 0.8
# With a single known site there is no spread between sites: only this area is an alarm.
LONE_AREA = 0.97
# A distance is an alarm from this multiple of the largest between known sites, and from this size.
DISTANCE_FACTOR = 3.0
LEAST_DISTANCE = 1.0
# Shares beyond the largest of the known sites.
MISSING_ROOM = 0.3
UNKNOWN_ROOM = 0.5
# Below this multiple of the known sites' share of varying inputs, the table is constant.
VARYING_FACTOR = 0.5
LARGEST_AREA = 0.999


@dataclass(frozen=True)
class Profile:
    """What can be seen of a site as a whole without labels; stored for every learned site."""

    rows: int
    missing: float
    unknown: float
    varying: float

    def plain(self) -> dict[str, float]:
        """The numbers by name."""
        return {
            "rows": float(self.rows),
            "missing": self.missing,
            "unknown": self.unknown,
            "varying": self.varying,
        }


@dataclass(frozen=True)
class Range:
    """A quantity at the site, and the range of it at the known sites."""

    here: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What `predict` says about a site as a whole.

    p_value: of the two-sample test against the kept rows, or against the stored means of methods
    that keep none; None if there is nothing to compare with. area: how well the forest separates
    the site from the kept rows. reasons: why there is an alarm; empty without one.
    """

    rows: int
    p_value: float | None
    area: Range | None
    confidence: Range | None
    distance: Range | None
    missing: Range
    unknown: Range
    strange: float | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def alarm(self) -> bool:
        """Whether the site lies outside what the model knows, in a way that harms."""
        return bool(self.reasons)

    @property
    def different(self) -> bool:
        """Whether the site differs from the known ones, harmfully or not."""
        return self.p_value is not None and self.p_value < 0.01


def profile(inputs: Tensor, missing: float, unknown: float) -> Profile:
    """The profile of a site's inputs, as the network gets them."""
    flat = inputs.flatten(1).float()
    varying = float((flat.max(dim=0).values > flat.min(dim=0).values).float().mean())
    return Profile(len(inputs), missing, unknown, varying)


# ---- the parts of a verdict ----------------------------------------------------------------------


def judge_confidence(
    confidence: np.ndarray, known: Mapping[str, np.ndarray], unseen: Sequence[float]
) -> tuple[Range | None, str | None]:
    """Compare the mean confidence with held-out rows, and with sites before they were learned."""
    means = [float(values.mean()) for values in known.values() if len(values)] + list(unseen)
    if not means:
        return None, None
    here = float(confidence.mean())
    error = float(confidence.std()) / math.sqrt(len(confidence))
    factor = float(stats.norm.ppf(1 - CONFIDENCE_RISK))
    bound = Range(here, min(means), max(means))
    if here >= bound.low - CONFIDENCE_ROOM - factor * error:
        return bound, None
    return bound, (
        f"the mean confidence is {100 * here:.1f}%, at known sites it was at least "
        f"{100 * bound.low:.1f}%"
    )


def judge_separation(
    inputs: np.ndarray, kept: Mapping[str, np.ndarray], seed: int
) -> tuple[float | None, Range | None, str | None]:
    """The two-sample test: p-value, area, and whether the area is beyond those of known sites."""
    rows = {name: _some(as_numbers(each), seed, name) for name, each in kept.items() if len(each)}
    if not rows:
        return None, None, None
    own = _some(as_numbers(inputs), seed, "")
    everything = np.concatenate(list(rows.values()))
    area = _separated(own, everything, seed, "")
    count = min(len(own), len(everything))
    p_value = float(stats.norm.sf((area - 0.5) / chance_error(count, count)))
    names = list(rows)[-MOST_SITES:]
    between = [
        _separated(
            rows[name], np.concatenate([rows[other] for other in rows if other != name]), seed, name
        )
        for name in (names if len(rows) > 1 else [])
    ]
    if not between:
        reason = None
        if area >= LONE_AREA:
            reason = (
                f"a classifier tells its rows from the only known site's ({100 * area:.0f}% of the "
                "pairs in order)"
            )
        return p_value, Range(area, 0.5, 0.5), reason
    known = Range(area, min(between), max(between))
    limit = max(_deviations(HARMLESS_AREA), _deviations(known.high) + SEPARATION_ROOM)
    # By chance, a small sample is separated less exactly.
    limit += 2 * chance_error(count, count)
    if _deviations(area) <= min(limit, _deviations(LARGEST_AREA) - 1e-9):
        return p_value, known, None
    if known.high >= LARGEST_AREA:
        return p_value, known, None  # known sites are told apart as well
    return (
        p_value,
        known,
        (
            f"a classifier tells its rows from the known sites' with {100 * area:.0f}% of the "
            f"pairs in order; known sites from each other with at most {100 * known.high:.0f}%"
        ),
    )


def judge_distance(
    features: Tensor, sites: Mapping[str, Moments]
) -> tuple[Range | None, str | None]:
    """Compare the distance of the mean features with those between known sites."""
    if not sites:
        return None, None
    here = nearest_distance(features.double().mean(dim=0), sites)
    between = [
        nearest_distance(site.mean, {other: each for other, each in sites.items() if other != name})
        for name, site in sites.items()
        if len(sites) > 1
    ]
    if not between:
        return Range(here, 0.0, 0.0), None
    known = Range(here, min(between), max(between))
    if here <= max(LEAST_DISTANCE, DISTANCE_FACTOR * known.high):
        return known, None
    return known, (
        f"the mean of its features is {here:.1f} standard deviations from the nearest known site; "
        f"known sites are at most {known.high:.1f} apart"
    )


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


def judge_profile(here: Profile, known: Sequence[Profile]) -> tuple[Range, Range, list[str]]:
    """Missing values, unknown categories and constant columns against the known sites."""
    missing = _range(here.missing, [each.missing for each in known])
    unknown = _range(here.unknown, [each.unknown for each in known])
    reasons = []
    if here.missing > missing.high + MISSING_ROOM:
        reasons.append(
            f"{100 * here.missing:.0f}% of the values are missing, at known sites at most "
            f"{100 * missing.high:.0f}%"
        )
    if here.unknown > unknown.high + UNKNOWN_ROOM:
        reasons.append(
            f"{100 * here.unknown:.0f}% of the rows have unknown categories, at known sites at "
            f"most {100 * unknown.high:.0f}%"
        )
    varying = min((each.varying for each in known), default=0.0)
    if here.rows >= FEWEST_ROWS and here.varying < VARYING_FACTOR * varying:
        reasons.append(
            f"{100 * (1 - here.varying):.0f}% of the inputs have the same value in all rows, at "
            f"known sites at most {100 * (1 - varying):.0f}%"
        )
    return missing, unknown, reasons


def _range(here: float, known: Sequence[float]) -> Range:
    return Range(here, min(known, default=0.0), max(known, default=0.0))


def _some(rows: np.ndarray, seed: int, name: str) -> np.ndarray:
    draws = np.random.default_rng(derive(seed, "verdict", name))
    return rows[draws.permutation(len(rows))[:MOST_ROWS]]


def _separated(own: np.ndarray, rest: np.ndarray, seed: int, name: str) -> float:
    """The area with as many rows of the rest as of its own."""
    draws = np.random.default_rng(derive(seed, "verdict", "rest", name))
    count = min(len(own), len(rest))
    first, second = (rows[draws.permutation(len(rows))[:count]] for rows in (own, rest))
    return separation(first, second, derive(seed, "verdict", "forest", name) % 2**32)


def _deviations(area: float) -> float:
    """How many standard deviations apart two normal distributions with this area are."""
    return math.sqrt(2) * float(stats.norm.ppf(min(max(area, 0.5), LARGEST_AREA)))
