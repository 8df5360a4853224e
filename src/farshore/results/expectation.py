"""What score to expect at a new site: a prediction interval from the sites that were left out.

The score y_i at site i is the mean of m runs (orders and seeds). Sites are treated as a sample of
all sites that exist. With the mean ȳ over n sites, the variance b² between them and the variance w²
of the runs at one site, a single model at a new site scores

    ȳ ± t(n - 1) · √(b² (1 + 1/n) + w² (1 - 1/m)),

Student's prediction interval. b² contains w²/m and the variation due to the rows that a site
happens to have, so the interval is for the score that will be measured at a site with about as many
rows as these. The second term is there because one model varies more than a mean of m.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.9
# With fewer sites there is no interval: Student's factor alone would make it wider than the scale.
FEWEST_SITES = 4


@dataclass(frozen=True)
class Expectation:
    """The score at a new site: the mean over left-out sites, and the interval for one site."""

    mean: float
    low: float
    high: float
    sites: int
    between: float
    within: float
    level: float = LEVEL

    @property
    def width(self) -> float:
        """The distance from the lower to the upper end."""
        return self.high - self.low


def expect(scores: Mapping[str, Sequence[float]], level: float = LEVEL) -> Expectation | None:
    """The interval from each site's scores, one per run; None with too few sites."""
    runs = [np.asarray(of_site, dtype=float) for of_site in scores.values() if len(of_site)]
    if len(runs) < FEWEST_SITES:
        return None
    means = np.array([of_site.mean() for of_site in runs])
    spread = float(means.std(ddof=1))
    repeated = [of_site for of_site in runs if len(of_site) > 1]
    within = math.sqrt(np.mean([of_site.var(ddof=1) for of_site in repeated])) if repeated else 0.0
    count = float(np.mean([len(of_site) for of_site in runs]))
    variance = spread**2 * (1 + 1 / len(runs)) + within**2 * (1 - 1 / count)
    half = float(stats.t.ppf((1 + level) / 2, len(runs) - 1)) * math.sqrt(variance)
    mean = float(means.mean())
    low, high = max(0.0, mean - half), min(1.0, mean + half)
    return Expectation(mean, low, high, len(runs), spread, within, level)
