"""The decision of an audit: ready for a pilot with labels, do not deploy, or too few sites to say.

A model that guesses answers without looking at the row. With n_k rows of class k among the N rows
of a site, and m_k answers k, a guess is right about class k hypergeometrically: n_k m_k / N times
on average. Over the K classes that the site has, with C_kk right answers, the excess

    e = 1/K Σ_k (C_kk - n_k m_k / N) / n_k

is the balanced accuracy minus that of guessing with the same answers. Its mean is 0 for a model
that guesses, whatever the classes' frequencies, and its variance is

    [Σ_k m_k (N - n_k)(N - m_k) / n_k + Σ_{k≠j} m_k m_j] / (K² N² (N - 1)).

A model is better than guessing if the mean over sites is too large for chance among the rows (by
the normal distribution), and if its interval over sites excludes zero. How often permuted labels
pass both is what `python bench/permuted_labels.py` counts.

Of numbers, the excess is the skill, the share of the error of the sources' mean that the model
avoids: with the errors e_i and g_i of both at site i, (g_i - e_i) / mean of all g. Over the sites
this is 1 - mean e / mean g: it has the sign of the difference between the mean errors, and a site
where the sources' mean happens to be right weighs no more than others. Its standard error at a site
is that of the mean of |y - mean| - |y - prediction| over the rows, divided by the mean of all g.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from ..results.expectation import Expectation
from ..results.pooled import AllAtOnce
from ..results.summary import Difference, Unit, difference
from ..results.text import interval, score_text
from ..results.verdict import Recommendation
from ..tasks.metrics import BALANCED, CLASS_GUESS, METRICS, GuessWords, Metric, several

# Chance explains more than this: below RISK it does not, above DOUBT it easily does.
RISK, DOUBT = 0.001, 0.05
# An interval wider than this is too wide to act on; for errors, one with ends this factor apart.
USELESS, USELESS_FACTOR = 0.5, 10.0


class Readiness(StrEnum):
    """What an audit decides."""

    READY = "ready for a pilot with labels"
    NOT = "do not deploy"
    FEW = "too few sites to say"


@dataclass(frozen=True)
class Evidence:
    """How far a method is above guessing at sites that it never saw.

    excess: balanced accuracy minus that of guessing, or skill, over sites.
    chance: the probability of such a mean, or a larger one, if it guesses.
    against: the first words of a sentence of its own; empty if other sentences say it.
    """

    excess: Difference
    chance: float
    metric: Metric = METRICS[BALANCED]
    against: str = ""

    @property
    def text(self) -> str:
        """The excess with its interval."""
        return f"{self.metric.label} {interval(self.excess, self.metric)}"


@dataclass(frozen=True)
class Decision:
    """What to do, and why."""

    outcome: Readiness
    reason: str

    @property
    def sentence(self) -> str:
        """The first line of the audit."""
        return f"{self.outcome[0].upper()}{self.outcome[1:]}: {self.reason}."


def excess(confusion: Sequence[Sequence[float]] | np.ndarray) -> tuple[float, float]:
    """The excess over guessing, and its variance for a model that guesses."""
    table = np.asarray(confusion, dtype=float)
    true, answered, rows = table.sum(axis=1), table.sum(axis=0), table.sum()
    has = true > 0
    count = int(has.sum())
    n, m, hits = true[has], answered[has], np.diag(table)[has]
    value = float(((hits - n * m / rows) / n).sum() / count)
    if rows < 2:
        return value, 0.0
    own = (m * (rows - n) * (rows - m) / n).sum()
    cross = m.sum() ** 2 - (m**2).sum()
    return value, float((own + cross) / (count**2 * rows**2 * (rows - 1)))


def gather(confusions: Mapping[str, Sequence[Sequence[Sequence[float]]]]) -> Evidence | None:
    """The evidence from each site's tables of true and answered classes, one per run.

    Runs at a site answer about the same rows, so together they are as uncertain as one.
    """
    found = {site: [excess(table) for table in tables] for site, tables in confusions.items()}
    return _over_sites(found, METRICS[BALANCED])


def gather_skill(scores: Mapping[str, Sequence[Mapping[str, float | None]]]) -> Evidence | None:
    """The evidence from each site's scores, one per run."""
    names = ("mae", "guess_mae", "skill_error")
    found = {
        site: [tuple(run[name] or 0.0 for name in names) for run in of]
        for site, of in scores.items()
    }
    usual = float(np.mean([np.mean([guess for _, guess, _ in of]) for of in found.values()]))
    if not usual > 0:
        return None
    return _over_sites(
        {
            site: [((guess - e) / usual, (error * guess / usual) ** 2) for e, guess, error in of]
            for site, of in found.items()
        },
        METRICS["skill"],
        "Against the sources' mean: ",
    )


def _over_sites(
    excesses: Mapping[str, Sequence[tuple[float, float]]], metric: Metric, against: str = ""
) -> Evidence | None:
    means, variance = {}, 0.0
    for site, found in excesses.items():
        means["", site, "", "", 0] = float(np.mean([value for value, _ in found]))
        variance += float(np.mean([math.sqrt(of_run) for _, of_run in found])) ** 2
    over = difference(means, dict.fromkeys(means, 0.0), Unit.TARGET, metric)
    if over is None:
        return None
    error = math.sqrt(variance) / over.units
    chance = float(stats.norm.sf(over.mean / error)) if error else float(over.mean <= 0)
    return Evidence(over, chance, metric, against)


def decide(
    metric: Metric,
    recommendation: Recommendation | None,
    scores: Mapping[str, float],
    majority: float | None,
    evidence: Evidence | None,
    expectation: Expectation | None,
    pooled: AllAtOnce | None,
    words: GuessWords = CLASS_GUESS,
) -> Decision:
    """The decision: against guessing first, then whether the sites are enough to say."""
    if recommendation is None or evidence is None:
        return Decision(Readiness.NOT, f"at the left-out sites, no candidate {words.beats}")
    row, mean = recommendation.row, float(np.mean(list(scores.values())))
    if majority is not None and not metric.better(mean, majority):
        return Decision(
            Readiness.NOT,
            f"{row} scores {score_text(metric, mean)} at the left-out sites, no better than always "
            f"predicting {words.always} ({score_text(metric, majority)})",
        )
    found = evidence.text
    if evidence.chance > DOUBT:
        why = f"at the left-out sites, {row} is no better than guessing ({found})"
        return Decision(Readiness.NOT, why)
    if evidence.chance > RISK or not evidence.excess.clear:
        why = f"{row} may be better than guessing, but it is not certain ({found})"
        return Decision(Readiness.FEW, why)
    sites = several(len(scores), "site")
    if expectation is None or useless(expectation, metric):
        low, high = (score_text(metric, end(scores.values())) for end in (min, max))
        return Decision(
            Readiness.FEW,
            f"{row} is better than guessing, but the scores at {sites} range from {low} to {high}, "
            "too far apart to say what the next one will be",
        )
    beside = f"; {_beside(pooled, metric)}" if pooled is not None else ""
    return Decision(
        Readiness.READY,
        f"at {sites} that it never saw, {row} is better than guessing ({found}){beside}",
    )


def useless(expectation: Expectation, metric: Metric) -> bool:
    """Whether an interval is too wide to act on."""
    if math.isinf(metric.high):
        return expectation.high > USELESS_FACTOR * expectation.low
    return expectation.width > USELESS


def _beside(pooled: AllAtOnce, metric: Metric) -> str:
    """The comparison with the ordinary references."""
    reference = f"{pooled.reference} on all data at once ({score_text(metric, pooled.score)})"
    if pooled.ahead and pooled.difference.certain:
        return f"{reference} is certainly better: take it if you may keep the data of all sites"
    if pooled.ahead:
        return f"{reference} is ahead of it, perhaps by chance"
    if pooled.difference.certain:
        return f"it is ahead of {reference}"
    return f"it is level with {reference}"
