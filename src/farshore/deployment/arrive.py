"""A site arrives: what to expect there, and what to do.

Whenever a site is learned, the model is first measured on it: at that moment the site is new to the
model, and its labels are known. What it scored at these arrivals, and what was seen there without
labels, says what to expect at the next site (`farshore.results.expectation`). What is seen is the
difference of confidences (Guillory et al., "Predicting with Confidence on Unseen Distributions",
ICCV 2021): the mean confidence plus what it is short of the accuracy on held-out rows.

The advice follows from the expectation, or from labels if there are any, and a bar: the accuracy
that is needed, and never less than that of always answering the most frequent class.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from ..results.expectation import (
    FEWEST_SITES,
    SHARES,
    Expectation,
    RowSets,
    expect_here,
    expect_in,
    quantiles,
    row_sets,
)
from ..results.sequence import Picks, labels_needed
from ..tasks.calibration import confidences, probabilities
from ..tasks.metrics import Metric, percent, several
from .held_out import Outputs
from .verdict import SiteVerdict

# An interval that is wider says nothing.
WIDEST = 0.5
# So many standard errors above guessing are not chance: at the arrivals, and by the labels of a
# site, whose bound has a risk of its own.
CERTAIN, ABOVE_GUESSING = 3.0, 2.0
# How many rows to label first, and at most in one go.
FIRST_LABELS, MOST_LABELS = 50, 500
SCORES = tuple(f"row score {share:g}" for share in SHARES)
# By the metric of a model, the score of a site that is recorded before it is learned.
ARRIVED = {"accuracy": "accuracy", "mae": "error"}


@dataclass(frozen=True)
class Arrival:
    """What is seen of a site without labels; of one that was measured, also what was found.

    looks: the accuracy that the confidences suggest. known: how many sites the model knew.
    guess: the share of its most frequent class. row_scores: quantiles of 1 - p(true class).
    """

    rows: int
    confidence: float
    looks: float
    accuracy: float = math.nan
    known: int = 0
    guess: float = math.nan
    row_scores: tuple[float, ...] = ()

    @classmethod
    def recorded(cls, facts: Mapping[str, Any]) -> "Arrival | None":
        """From the record of a site; None if it was not measured before it was learned."""
        found, counts = facts["arrival"], facts["classes"].values()
        if "accuracy" not in found:  # none, or that of numbers
            return None
        return cls(
            max(1, int(found["rows"])),
            found["confidence"],
            found.get("looks", found["confidence"]),
            found["accuracy"],
            int(found["known"]),
            max(counts, default=0) / max(1, sum(counts)),
            tuple(found[name] for name in SCORES if name in found),
        )

    def plain(self) -> dict[str, float]:
        """What is recorded of it."""
        scores = dict(zip(SCORES, self.row_scores, strict=True))
        names = ("rows", "known", "accuracy", "confidence", "looks")
        return {name: float(getattr(self, name)) for name in names} | scores


@dataclass(frozen=True)
class Nothing:
    """Why nothing can be said about the accuracy at a site, or about its rows."""

    reason: str


def see(logits: np.ndarray, held_out: Mapping[str, Outputs], temperature: float) -> Arrival:
    """What is seen of a site's logits."""
    confidence = float(confidences(logits / temperature).mean())
    known = [each for each in held_out.values() if len(each)]
    short = 0.0
    if known:
        correct = np.concatenate([each.correct for each in known])
        stated = np.concatenate([each.confidences(temperature) for each in known])
        short = float(correct.mean() - stated.mean())
    return Arrival(len(logits), confidence, min(1.0, max(0.0, confidence + short)))


def row_scores(logits: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    """Quantiles of 1 - p(true class); a class that the model does not know has the number -1."""
    shares = np.column_stack([probabilities(logits), np.zeros(len(logits))])
    return tuple(quantiles(1 - shares[np.arange(len(labels)), labels]))


def measured(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """A model of a single site says little about one of several, if there are enough without it."""
    later = [arrival for arrival in arrivals if arrival.known > 1]
    return later if len(later) >= FEWEST_SITES else list(arrivals)


def expected_accuracy(
    here: Arrival, arrivals: Sequence[Arrival], alarm: Sequence[str] = ()
) -> Expectation | Nothing:
    """The accuracy to expect at a site, or why nothing is known."""
    if alarm:
        return Nothing(f"the site is out of range: {alarm[0]}")
    sites = measured(arrivals)
    found = expect_here(
        np.array([site.accuracy for site in sites]),
        np.array([float(site.rows) for site in (*sites, here)]),
        np.array([site.looks for site in (*sites, here)]),
    )
    if found is None:
        return Nothing(too_few(len(sites)))
    if found.width > WIDEST:
        return Nothing(
            f"the accuracy at its {several(found.sites, 'measured site')} is too varied: an "
            f"interval would be {100 * found.width:.0f} points wide"
        )
    return found


def expected_error(
    sites: Sequence[Mapping[str, float]], metric: Metric, alarm: Sequence[str] = ()
) -> Expectation | Nothing:
    """The mean absolute error to expect at a site, or why nothing is known."""
    if alarm:
        return Nothing(f"the site is out of range: {alarm[0]}")
    errors = {str(n): [each["error"]] for n, each in enumerate(sites)}
    rows = {str(n): int(each["rows"]) for n, each in enumerate(sites)}
    return expect_in(metric, errors, rows) or Nothing(too_few(len(sites)))


def sets_of_rows(
    arrivals: Sequence[Arrival], alarm: Sequence[str] = (), *, calibrated: bool = False
) -> RowSets | Nothing:
    """Which answers belong into a row's set, or why nothing is known."""
    if alarm:
        return Nothing("the site is out of range")
    if calibrated:
        return Nothing("the model was calibrated since its sites were measured")
    sites = measured([each for each in arrivals if each.row_scores])
    found = row_sets([each.row_scores for each in sites], [each.rows for each in sites])
    return found if found is not None else Nothing(too_few(len(sites)))


def too_few(sites: int) -> str:
    """Why nothing follows from so many measured sites."""
    return (
        f"it takes at least {FEWEST_SITES} sites that were measured before they were learned, and "
        f"this model has {sites}"
    )


# ---- the advice ----------------------------------------------------------------------------------


class Action(StrEnum):
    """What can be done."""

    DEPLOY = "deploy"
    LABEL = "label more rows"
    CALIBRATE = "calibrate"
    LEARN = "learn the site"
    NOT = "do not use the model"


# The exit codes of `farshore arrive`. 1, 2, 70 and 130 have other meanings.
EXIT_CODES = {
    Action.DEPLOY: 0,
    Action.LABEL: 10,
    Action.CALIBRATE: 11,
    Action.LEARN: 12,
    Action.NOT: 13,
}


@dataclass(frozen=True)
class Labelled:
    """What the labels of some rows say: the bounds of the accuracy, and the gain of calibrating.

    accuracy, guess: the weighted shares of right answers, and of the most frequent class.
    gain: of the accuracy by calibrating, on rows that were left out; None with too few.
    """

    rows: int
    low: float
    high: float
    accuracy: float
    guess: float
    gain: float | None


@dataclass(frozen=True)
class Option:
    """An action, what it is predicted to gain, and the command to type."""

    action: Action
    gain: str
    command: str


@dataclass(frozen=True)
class Advice:
    """What to do at a site, why, and what each possibility gains."""

    action: Action
    reason: str
    bar: float
    options: tuple[Option, ...]

    @property
    def option(self) -> Option:
        """The advised one."""
        return next(each for each in self.options if each.action is self.action)

    def plain(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            "advice": str(self.action),
            "exit_code": EXIT_CODES[self.action],
            "reason": self.reason,
            "bar": self.bar,
            "options": [asdict(each) for each in self.options],
        }


@dataclass(frozen=True)
class Arrived:
    """The judgement of a site: the one answer to "Can I trust the model here?"."""

    verdict: SiteVerdict
    here: Arrival
    expected: Expectation | Nothing
    sets: RowSets | Nothing
    labelled: Labelled | None
    advice: Advice

    def plain(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            **self.advice.plain(),
            "alarm": list(self.verdict.reasons),
            "expected_accuracy": asdict(self.expected),
            "row_sets": asdict(self.sets),
            "labels": asdict(self.labelled) if self.labelled is not None else None,
            "rows": self.here.rows,
            "mean_confidence": self.here.confidence,
        }


@dataclass(frozen=True)
class NumbersArrived:
    """The judgement of a site whose labels are numbers."""

    verdict: SiteVerdict
    expected: Expectation | Nothing
    sets: RowSets | Nothing
    metric: Metric
    advice: Advice

    def plain(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            **self.advice.plain(),
            "alarm": list(self.verdict.reasons),
            "expected_error": asdict(self.expected),
            "row_intervals": asdict(self.sets),
        }


def better_than_guessing(arrivals: Sequence[Arrival]) -> bool:
    """Whether the accuracy at the arrivals is above that of their most frequent class."""
    sites = [each for each in arrivals if not math.isnan(each.guess)]
    above = sum(each.accuracy - each.guess for each in sites)
    chance = sum(max(each.guess * (1 - each.guess), 1e-3) / each.rows for each in sites)
    return bool(sites) and above > CERTAIN * math.sqrt(chance)


def advise(
    *,
    alarm: Sequence[str],
    expected: Expectation | Nothing,
    labelled: Labelled | None,
    arrivals: Sequence[Arrival],
    asked: float | None,
    learned: Sequence[float],
    design: Picks,
    commands: Mapping[Action, str],
) -> Advice:
    """The advice.

    asked: the accuracy that is needed; None for that of guessing, which no site may have told yet.
    learned: the gain of accuracy at each earlier site by learning it.
    design: how rows to label would be drawn.
    """
    guesses = [each.guess for each in arrivals if not math.isnan(each.guess)]
    unknown = 1.0 if asked is None else 0.0
    guess = labelled.guess if labelled is not None else float(np.mean(guesses or [unknown]))
    bar = max(guess, asked if asked is not None else 0.0)
    gain = float(np.mean(learned)) if learned else None
    if labelled is not None:
        action, reason = _by_labels(labelled, bar, gain)
    else:
        action, reason = _without_labels(alarm, expected, arrivals, bar, guess, gain)
    options = {
        Action.DEPLOY: _now(expected, labelled),
        Action.LABEL: _gain_of_labels(labels_needed(design, bar), bar),
        Action.CALIBRATE: _gain_of_calibrating(labelled),
        Action.LEARN: _gain_of_learning(learned),
        Action.NOT: "no wrong answers here",
    }
    return Advice(
        action,
        reason,
        bar,
        tuple(Option(each, text, commands[each]) for each, text in options.items()),
    )


def _without_labels(
    alarm: Sequence[str],
    expected: Expectation | Nothing,
    arrivals: Sequence[Arrival],
    bar: float,
    guess: float,
    gain: float | None,
) -> tuple[Action, str]:
    needed = _needed(bar, guess)
    if alarm:
        return Action.NOT, "the site is unlike any known one, and no label says that it works there"
    if isinstance(expected, Nothing):
        return Action.LABEL, expected.reason
    if expected.high < bar:
        reason = f"the whole interval is below {needed}"
        helps = gain is not None and expected.mean + gain >= bar
        return (Action.LEARN if helps else Action.NOT), reason
    if expected.low < bar:
        return Action.LABEL, f"{needed} is inside the interval"
    if not better_than_guessing(arrivals):
        return Action.LABEL, "at earlier sites the model was not clearly better than guessing"
    return Action.DEPLOY, f"the whole interval is above {needed}"


def _by_labels(labelled: Labelled, bar: float, gain: float | None) -> tuple[Action, str]:
    needed = _needed(bar, labelled.guess)
    # The share of the most frequent class is estimated from the same few labels.
    chance = math.sqrt(labelled.guess * (1 - labelled.guess) / labelled.rows)
    if labelled.low >= bar and labelled.low > labelled.guess + ABOVE_GUESSING * chance:
        return Action.DEPLOY, f"the labels show an accuracy of at least {percent(labelled.low)}%"
    if labelled.high >= bar:
        return Action.LABEL, f"the labels do not yet say whether the accuracy is {needed}"
    reason = f"the labels show an accuracy below {needed}"
    for action, more in ((Action.CALIBRATE, labelled.gain), (Action.LEARN, gain)):
        if more is not None and labelled.accuracy + more >= bar:
            return action, reason
    return Action.NOT, reason


def advise_numbers(
    metric: Metric,
    alarm: Sequence[str],
    expected: Expectation | Nothing,
    sites: Sequence[Mapping[str, float]],
    asked: float | None,
    learned: Sequence[float],
    commands: Mapping[Action, str],
) -> Advice:
    """The advice where labels are numbers: the bar is an error that must not be exceeded.

    asked: that error; None for the one of the sources' mean at the measured sites.
    """
    guesses = [each["guess"] for each in sites if "guess" in each]
    guess = float(np.mean(guesses)) if guesses else math.inf
    bar = min(guess, asked if asked is not None else math.inf)
    gain = float(np.mean(learned)) if learned else 0.0
    needed = f"the needed {metric.text(bar)}{metric.unit}"
    needed += " (that of the sources' mean)" if bar == guess else ""
    known = "unknown error"
    if not isinstance(expected, Nothing):
        known = f"error {metric.text(expected.low)} to {metric.text(expected.high)}{metric.unit}"
    if alarm:
        action = Action.NOT
        reason = "the site is unlike any known one, and no label says that it works there"
    elif isinstance(expected, Nothing) or math.isinf(bar):
        action, reason = Action.LABEL, getattr(expected, "reason", "nothing says what is enough")
    elif expected.low > bar:
        action = Action.LEARN if expected.mean + gain <= bar else Action.NOT
        reason = f"the whole interval is above {needed}"
    elif expected.high > bar:
        action, reason = Action.LABEL, f"{needed} is inside the interval"
    else:
        action, reason = Action.DEPLOY, f"the whole interval is below {needed}"
    helps = f"{metric.text(gain, sign=True)}{metric.unit} of error here, as at "
    options = {
        Action.DEPLOY: known,
        Action.LABEL: "the error here, from some rows with labels",
        Action.CALIBRATE: "unknown without labels; about ten rows are enough to try",
        Action.LEARN: helps + several(len(learned), "earlier site")
        if learned
        else "unknown: no site was measured before it was learned",
        Action.NOT: "no wrong answers here",
    }
    evaluate = commands[Action.CALIBRATE].replace("calibrate", "evaluate", 1)
    typed = {**commands, Action.LABEL: evaluate}
    return Advice(
        action, reason, bar, tuple(Option(each, options[each], typed[each]) for each in options)
    )


def _needed(bar: float, guess: float) -> str:
    return f"the needed {percent(bar)}%" + (" (that of guessing)" if bar == guess else "")


def _now(expected: Expectation | Nothing, labelled: Labelled | None) -> str:
    if labelled is not None:
        return f"accuracy {percent(labelled.low)} to {percent(labelled.high)}%, by the labels"
    if isinstance(expected, Nothing):
        return "unknown accuracy"
    return f"accuracy {percent(expected.low)} to {percent(expected.high)}%"


def _gain_of_labels(needed: int | None, bar: float) -> str:
    if bar >= 1:
        return "how accurate the model is here"
    what = f"whether the accuracy is at least {percent(bar)}%"
    if needed is None or needed > MOST_LABELS:
        return f"{what}; too close to say how many labels that takes"
    return f"{what}, after about {needed} labels"


def _gain_of_calibrating(labelled: Labelled | None) -> str:
    if labelled is None or labelled.gain is None:
        return "unknown without labels"
    return f"{percent(labelled.gain, sign=True)} points of accuracy, on rows left out of the fit"


def _gain_of_learning(learned: Sequence[float]) -> str:
    if not learned:
        return "unknown: no site was measured before it was learned"
    mean = percent(float(np.mean(learned)), sign=True)
    return f"{mean} points of accuracy here, as at {several(len(learned), 'earlier site')}"
