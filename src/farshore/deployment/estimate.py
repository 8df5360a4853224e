"""The accuracy to expect at a site without labels, with an interval from left-out sites.

Whenever a site is learned, the model is first measured on it: at that moment the site is new to the
model, and its labels are known. Each such arrival is a left-out site with what can be seen without
labels (average confidence, ATC, distance) and the accuracy that was found.

There are four ways to an estimate: the mean accuracy of the left-out sites; the average confidence
or ATC, each corrected by its mean error there; and a regression of the accuracy on the distance.
Each way predicts every left-out site from the others, with the mean square error r². The estimate
is the mean of the ways with weights 1 / r⁴, and the interval is value ± t(n - 1) · r over n sites,
Student's, as in `farshore.results.expectation`, with the mean of r² under these weights. The
accuracy of a site varies by chance, and r² is never less than 1.2 times this variance: few sites
may agree better by accident.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..results.expectation import FEWEST_SITES, LEVEL
from ..tasks.calibration import atc, atc_threshold, confidences
from .held_out import Outputs

# The least error of a way, as a multiple of the variance of an accuracy by chance.
LEAST_ERROR = 1.2
# An interval that is wider says nothing.
WIDEST = 0.5
# A regression is not continued beyond this multiple of the largest distance.
BEYOND = 1.5


@dataclass(frozen=True)
class Signals:
    """What the model's outputs say about a site without labels."""

    rows: int
    confidence: float
    atc: float
    distance: float

    def plain(self) -> dict[str, float]:
        """The numbers by name."""
        return {
            "confidence": self.confidence,
            "atc": self.atc,
            "distance": self.distance,
        }


@dataclass(frozen=True)
class Arrival:
    """A site before it was learned by a model of `known` sites: signals, and accuracy found."""

    signals: Signals
    accuracy: float
    known: int

    @property
    def rows(self) -> int:
        """How many rows the accuracy was measured on."""
        return max(1, self.signals.rows)


@dataclass(frozen=True)
class AccuracyEstimate:
    """The expected accuracy at a site; `values` and `weights` are those of each way."""

    accuracy: float
    low: float
    high: float
    values: dict[str, float]
    weights: dict[str, float]
    signals: Signals
    sites: int
    level: float = LEVEL

    @property
    def width(self) -> float:
        """The distance from the lower to the upper end."""
        return self.high - self.low


@dataclass(frozen=True)
class NoEstimate:
    """Why the accuracy at a site cannot be known."""

    reason: str
    signals: Signals


def read_signals(
    logits: np.ndarray, distance: float, known: Mapping[str, Outputs], temperature: float
) -> Signals:
    """Average confidence and ATC of a site's logits; the threshold comes from held-out rows."""
    confidence = confidences(logits / temperature)
    pooled = [outputs for outputs in known.values() if len(outputs)]
    threshold = math.nan
    if pooled:
        of_known = np.concatenate([each.confidences(temperature) for each in pooled])
        correct = np.concatenate([each.correct for each in pooled])
        threshold = atc_threshold(of_known, correct)
    share = atc(confidence, threshold) if pooled else float(confidence.mean())
    return Signals(len(logits), float(confidence.mean()), share, distance)


SiteRule = Callable[[Sequence[Arrival], Signals], float]


def _mean_of_sites(sites: Sequence[Arrival], here: Signals) -> float:
    return float(np.mean([site.accuracy for site in sites]))


def _corrected(name: str) -> SiteRule:
    def value(sites: Sequence[Arrival], here: Signals) -> float:
        errors = [site.accuracy - getattr(site.signals, name) for site in sites]
        return float(getattr(here, name) + np.mean(errors))

    return value


def _by_distance(sites: Sequence[Arrival], here: Signals) -> float:
    distances = np.array([site.signals.distance for site in sites])
    scores = np.array([site.accuracy for site in sites])
    spread = float(((distances - distances.mean()) ** 2).sum())
    if spread <= 1e-12:
        return float(scores.mean())
    slope = float(((distances - distances.mean()) * (scores - scores.mean())).sum()) / spread
    return float(scores.mean() + min(0.0, slope) * (here.distance - distances.mean()))


WAYS: dict[str, SiteRule] = {
    "mean of left-out sites": _mean_of_sites,
    "average confidence": _corrected("confidence"),
    "ATC": _corrected("atc"),
    "distance": _by_distance,
}


def estimate(
    here: Signals, arrivals: Sequence[Arrival], out_of_range: Sequence[str] = ()
) -> AccuracyEstimate | NoEstimate:
    """The estimate at a site, or why there is none.

    out_of_range: what lies outside the range of the known sites; then nothing that was learned
    from them applies.
    """
    if out_of_range:
        return NoEstimate(f"the site is out of range: {out_of_range[0]}", here)
    # A model of a single site says little about one of several, if there are enough without it.
    later = [arrival for arrival in arrivals if arrival.known > 1]
    sites = later if len(later) >= FEWEST_SITES else list(arrivals)
    if len(sites) < FEWEST_SITES:
        return NoEstimate(
            f"it takes at least {FEWEST_SITES} sites that were measured before they were learned, "
            f"and this model has {len(sites)}",
            here,
        )
    furthest = max(site.signals.distance for site in sites)
    ways = {
        name: way
        for name, way in WAYS.items()
        if name != "distance" or here.distance <= BEYOND * furthest
    }
    values = {name: way(sites, here) for name, way in ways.items()}
    chance = float(np.mean([each.accuracy * (1 - each.accuracy) / each.rows for each in sites]))
    least = max(LEAST_ERROR * chance, 1e-6)
    errors = {name: max(_left_out_error(way, sites), least) for name, way in ways.items()}
    total = sum(error**-2 for error in errors.values())
    weights = {name: error**-2 / total for name, error in errors.items()}
    value = min(1.0, max(0.0, sum(weights[name] * values[name] for name in ways)))
    error = sum(weights[name] * errors[name] for name in ways)
    # Fewer rows than at the left-out sites: their score varies more by chance.
    rows = float(np.mean([1 / each.rows for each in sites]))
    more = max(0.0, value * (1 - value) * (1 / here.rows - rows))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(sites) - 1)) * math.sqrt(error + more)
    if 2 * half > WIDEST:
        return NoEstimate(
            f"the accuracy at its own left-out sites cannot be predicted: an interval would be "
            f"{200 * half:.0f} points wide",
            here,
        )
    low, high = max(0.0, value - half), min(1.0, value + half)
    return AccuracyEstimate(value, low, high, values, weights, here, len(sites))


def _left_out_error(way: SiteRule, sites: Sequence[Arrival]) -> float:
    """The mean square error when each site is predicted from the others."""
    errors = [
        site.accuracy - way([*sites[:number], *sites[number + 1 :]], site.signals)
        for number, site in enumerate(sites)
    ]
    return float(np.mean(np.square(errors)))
