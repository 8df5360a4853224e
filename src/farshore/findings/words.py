"""The findings of an audit in words, one answer per question. Every number comes from a finding."""

from __future__ import annotations

from dataclasses import dataclass

from ..evaluation.over_units import Difference
from .found import Findings, TooFew

# Below these, a difference is not worth a warning.
SMALL_LOSS = 0.02
LARGE_CALIBRATION_ERROR = 0.05
FEW_SITES = 8
# A method that wins in fewer resampled sets of sites is not a sure choice.
SURE = 0.8
# An interval wider than this says nothing that a user could act on.
USELESS = 0.5


@dataclass(frozen=True)
class Answer:
    """A question and what the audit says about it."""

    question: str
    text: str


def percent(value: float | None) -> str:
    """A fraction as a percentage with one digit."""
    return "unknown" if value is None else f"{100 * value:.1f}"


def verdict(findings: Findings) -> str:
    """The first sentence: what to expect, and with which method."""
    name, method = findings.metric.replace("_", " "), findings.choice.method
    expected = findings.expectation
    if expected is None:
        return (
            f"{method} is the method to take; with {len(findings.scores)} sites no interval for a "
            "new site can be given."
        )
    if expected.width > USELESS:
        return (
            f"What to expect at a new site cannot be said: with {method} the {expected.sites} "
            f"left-out sites range from {percent(min(findings.scores.values()))}% to "
            f"{percent(max(findings.scores.values()))}% {name}, too far apart for an interval."
        )
    return (
        f"Expect {percent(expected.mean)}% {name} at a new site with {method}: between "
        f"{percent(expected.low)}% and {percent(expected.high)}% in {100 * expected.level:.0f} of "
        "100 cases."
    )


def answers(findings: Findings) -> list[Answer]:
    """The answer to each question, in the order of the page."""
    return [
        Answer("What score should I expect at a new site?", _expected(findings)),
        Answer("Which method should I take, and how sure is that?", _method(findings)),
        Answer("How much is lost against the sites that were learned?", _loss(findings)),
        Answer("How good is it for each class?", _classes(findings)),
        Answer("Can the probabilities be trusted?", _calibration(findings)),
        Answer("Which site is unlike the others?", _unlike(findings)),
        Answer("What does learning site by site cost?", _forgetting(findings)),
        Answer("How much does the order of the sites matter?", _order(findings)),
        Answer("Would more sites help?", _more(findings)),
    ]


def too_few(found: TooFew) -> str:
    """Why the audit cannot say anything, and what would help."""
    return (
        "The data are too few to say what to expect at a new site: "
        f"{'; '.join(found.reasons)}. Add sites first, then rows per site."
    )


def _expected(findings: Findings) -> str:
    lowest = min(findings.scores, key=lambda site: findings.scores[site])
    highest = max(findings.scores, key=lambda site: findings.scores[site])
    text = (
        f"{len(findings.scores)} sites were left out in turn: the lowest score was "
        f"{percent(findings.scores[lowest])}% at {lowest}, the highest "
        f"{percent(findings.scores[highest])}% at {highest}. At each site the method was chosen "
        "without it."
    )
    if len(findings.scores) < FEW_SITES:
        text += (
            f" The interval rests on {len(findings.scores)} sites only; it is wide because a few "
            "sites say little about the next one."
        )
    if findings.majority is not None and findings.expectation is not None:
        text += f" Always predicting the most frequent class scores {percent(findings.majority)}%."
        if findings.expectation.mean <= findings.majority:
            text += " No method is better than that: do not deploy a model trained on these data."
    return text


def _method(findings: Findings) -> str:
    choice = findings.choice
    picked = {site: method for site, method in choice.without.items() if method != choice.method}
    text = (
        f"{choice.method}: {percent(findings.chosen.mean)}% on average over the left-out sites. If "
        f"other sites had been drawn, it would have been chosen in {100 * choice.certainty:.0f} of "
        "100 cases."
    )
    if choice.certainty < SURE:
        text += " That is not sure."
    if picked:
        others = ", ".join(f"{method} without {site}" for site, method in picked.items())
        text += f" Without one site, the choice would change: {others}."
    else:
        text += " Without any single site, the choice is the same."
    if choice.ties:
        several = len(choice.ties) > 1
        text += (
            f" {', '.join(choice.ties)} {'are' if several else 'is'} not told apart from it "
            "(within one standard error)."
        )
    constant = [each.method for each in findings.methods if each.constant and each.ranked]
    if constant:
        text += f" Predicting nearly always the same class: {', '.join(constant)}."
    return text


def _loss(findings: Findings) -> str:
    text = (
        f"On held-out rows of learned sites the model scores {percent(findings.source_score)}%, at "
        f"sites that it never saw {percent(findings.chosen.mean)}%: "
    )
    if findings.loss < SMALL_LOSS:
        return text + "no loss to speak of."
    return text + f"a score measured on known sites is {percent(findings.loss)} points too high."


def _classes(findings: Findings) -> str:
    sentences = []
    for each in findings.classes:
        if each.sensitivity is None:
            sentences.append(f"{each.name}: too few rows at any site.")
            continue
        sentences.append(
            f"{each.name}: {percent(each.sensitivity)}% of its rows are found (lowest "
            f"{percent(each.lowest_sensitivity)}% at {each.lowest_at}), and "
            f"{percent(each.specificity)}% of the other rows are not taken for it."
        )
    return " ".join(sentences)


def _calibration(findings: Findings) -> str:
    if findings.calibration_error is None:
        return "That is not known."
    text = (
        f"At left-out sites the stated confidence is off by {percent(findings.calibration_error)} "
        f"points on average (log loss {findings.log_loss:.3f}). "
    )
    if findings.calibration_error > LARGE_CALIBRATION_ERROR:
        return text + "Do not use the probabilities as they are at a new site."
    return text + "They can be used."


def _unlike(findings: Findings) -> str:
    unlike, odd = findings.unlike, findings.odd
    if unlike is None:
        text = "None: a classifier cannot tell the inputs of any site from those of the others."
    else:
        columns = ", ".join(
            f"{each.column} (gap {each.distance:.2f})" for each in unlike.columns[:3]
        )
        different = [shift.site for shift in findings.shifts if shift.different]
        text = (
            f"{unlike.site}: a classifier recognises its rows with probability {unlike.area:.2f} "
            f"(0.50 is chance), most by {columns}."
        )
        if len(different) > 1:
            text += f" {len(different)} of {len(findings.shifts)} sites differ from the others."
    if odd is not None:
        text += (
            f" At {odd} the score is {percent(findings.scores[odd])}%, far below what the other "
            "sites would let expect: check its rows and labels."
        )
    return text


def _forgetting(findings: Findings) -> str:
    if findings.forgetting is None:
        return "That was not measured: joint was left out."
    text = (
        "One network trained on all sites at once, which needs all data together, scores "
        f"{_difference(findings.forgetting, findings.choice.method)} at new sites."
    )
    if findings.unprotected is not None and findings.choice.method != "finetune":
        text += (
            f" It scores {_difference(findings.unprotected, 'plain fine-tuning')}, which protects "
            "nothing."
        )
    return text


def _difference(difference: Difference, other: str) -> str:
    """A paired difference in words, such as `1.2 points more than er (95% interval ...)`."""
    word = "more" if difference.mean >= 0 else "less"
    text = f"{percent(abs(difference.mean))} points {word} than {other}"
    if difference.low is None or difference.high is None:
        return text
    doubt = "" if difference.certain else "; the difference may be chance"
    return (
        f"{text} (95% interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f}{doubt})"
    )


def _order(findings: Findings) -> str:
    if findings.in_time:
        return "The sites were learned in the order of time; no other order makes sense."
    if findings.order_range is None:
        return "Only one order was tried: add --orders listed,reversed."
    text = (
        f"Between the best and the worst of {findings.orders} orders lie "
        f"{percent(findings.order_range)} points on average"
    )
    if findings.unprotected_order_range is not None:
        text += f"; for fine-tuning {percent(findings.unprotected_order_range)}"
    return text + "."


def _more(findings: Findings) -> str:
    curve = findings.curve
    if curve is None:
        return "There are too few sites for a learning curve."
    count = max(curve.means)
    doubled = (
        f"twice as many sites as now would add {100 * curve.doubling:+.1f} points "
        f"({100 * curve.level:.0f}% interval {100 * curve.low:+.1f} to {100 * curve.high:+.1f})"
    )
    if curve.rising:
        return (
            f"Yes: {doubled}, and one more site about "
            f"{100 * curve.gain(count + 1, 1):+.1f}, if the trend continues."
        )
    return f"That is not certain: {doubled}, if the trend continues."
