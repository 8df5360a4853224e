"""The findings of an audit in words, one answer per question. Every number comes from a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..results.over_units import Difference
from .findings import Findings, TooFew

# Below these, a difference is not worth a warning.
SMALL_LOSS = 0.02
LARGE_CALIBRATION_ERROR = 0.05
FEW_SITES = 8
# A method that wins in fewer resampled sets of sites is an uncertain choice.
SURE = 0.8
# An interval wider than this is too wide to act on.
USELESS = 0.5
# A gain below this is not worth collecting rows for.
WORTHWHILE = 0.01


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
            f"Use {method}; {len(findings.scores)} sites are too few for an interval that predicts "
            "the score at a new site."
        )
    if expected.width > USELESS:
        return (
            f"The score at a new site cannot be predicted: with {method}, the {expected.sites} "
            f"left-out sites range from {percent(min(findings.scores.values()))}% to "
            f"{percent(max(findings.scores.values()))}% {name}, too far apart for a useful "
            "interval."
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
        Answer("Which method should I use, and how certain is that choice?", _method(findings)),
        Answer("How much worse is it at new sites than at known ones?", _loss(findings)),
        Answer("How well does it recognise each class?", _classes(findings)),
        Answer("Can the probabilities be trusted?", _calibration(findings)),
        Answer("Which site is unlike the others?", _unlike(findings)),
        Answer("What does learning site by site cost?", _forgetting(findings)),
        Answer("How much does the order of the sites matter?", _order(findings)),
        Answer("Would more sites or rows help?", _more(findings)),
    ]


def too_few(found: TooFew) -> str:
    """Why the audit cannot say anything, and what would help."""
    return (
        "There is too little data to say what to expect at a new site: "
        f"{'; '.join(found.reasons)}. Add sites first, then rows per site."
    )


def _expected(findings: Findings) -> str:
    lowest = min(findings.scores, key=lambda site: findings.scores[site])
    highest = max(findings.scores, key=lambda site: findings.scores[site])
    text = (
        f"{len(findings.scores)} sites were left out in turn: the lowest score was "
        f"{percent(findings.scores[lowest])}% at {lowest}, the highest "
        f"{percent(findings.scores[highest])}% at {highest}. The method scored at a site was "
        "chosen without using that site."
    )
    if len(findings.scores) < FEW_SITES:
        text += (
            f" The interval is based on only {len(findings.scores)} sites; it is wide because so "
            "few sites say little about the next one."
        )
    if findings.majority is not None and findings.expectation is not None:
        text += f" Always predicting the most frequent class scores {percent(findings.majority)}%."
        if findings.expectation.mean <= findings.majority:
            text += " The expected score is no better: do not deploy a model trained on these data."
    return text


def _method(findings: Findings) -> str:
    choice = findings.choice
    picked = {site: method for site, method in choice.without.items() if method != choice.method}
    text = (
        f"{choice.method}: {percent(findings.chosen.mean)}% on average over the left-out sites. "
        f"When the sites are resampled at random, it is chosen in {100 * choice.certainty:.0f} of "
        "100 cases."
    )
    if choice.certainty < SURE:
        text += " The choice is uncertain."
    if picked:
        others = ", ".join(f"{method} without {site}" for site, method in picked.items())
        text += f" Leaving out one site can change the choice: {others}."
    else:
        text += " Leaving out any single site does not change the choice."
    if choice.ties:
        text += (
            f" It is not clearly better than {_either(choice.ties)} (the 95% interval of the "
            "difference includes zero)."
        )
    constant = [each.method for each in findings.methods if each.constant and each.ranked]
    if constant:
        text += f" Almost always predicting the same class: {', '.join(constant)}."
    return text


def _either(names: Sequence[str]) -> str:
    """The names with commas, and `or` between the last two."""
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _loss(findings: Findings) -> str:
    text = (
        "On held-out rows of the sites that it learned, the model scores "
        f"{percent(findings.source_score)}%; at sites that it never saw, "
        f"{percent(findings.chosen.mean)}%. "
    )
    if findings.loss < SMALL_LOSS:
        return text + "There is no loss to speak of."
    return text + f"A score measured at known sites is {percent(findings.loss)} points too high."


def _classes(findings: Findings) -> str:
    sentences = []
    for each in findings.classes:
        if each.sensitivity is None:
            sentences.append(f"{each.name}: too few rows at any site.")
            continue
        sentences.append(
            f"{each.name}: {percent(each.sensitivity)}% of its rows are recognised (lowest: "
            f"{percent(each.lowest_sensitivity)}% at {each.lowest_at}), and "
            f"{percent(each.specificity)}% of the rows of other classes are not mistaken "
            "for it."
        )
    return " ".join(sentences)


def _calibration(findings: Findings) -> str:
    if findings.calibration_error is None:
        return "This is unknown."
    text = (
        f"At left-out sites the stated confidence is off by {percent(findings.calibration_error)} "
        f"points on average (log loss {findings.log_loss:.3f}). "
    )
    if findings.calibration_error > LARGE_CALIBRATION_ERROR:
        return text + "Do not use the probabilities as they are at a new site."
    return text + "They can be used at a new site."


def _unlike(findings: Findings) -> str:
    unlike, outlier = findings.unlike, findings.outlier
    if unlike is None:
        text = "None: a classifier cannot tell the inputs of any site from those of the others."
    else:
        columns = ", ".join(
            f"{each.column} (gap {each.distance:.2f})" for each in unlike.columns[:3]
        )
        different = [shift.site for shift in findings.shifts if shift.different]
        text = (
            f"{unlike.site}: shown one of its rows and one from another site, a classifier tells "
            f"which is which with probability {unlike.area:.2f} (0.50 is chance). The columns that "
            f"differ most are {columns}."
        )
        if len(different) > 1:
            text += f" {len(different)} of {len(findings.shifts)} sites differ from the others."
    if outlier is not None:
        text += (
            f" At {outlier} the score is {percent(findings.scores[outlier])}%, far below what the "
            "other sites suggest: check its rows and labels."
        )
    return text


def _forgetting(findings: Findings) -> str:
    if findings.forgetting is None:
        return "This was not measured, because joint was left out."
    text = (
        "At new sites, a single network trained on all sites at once (which needs all the data "
        f"at the same time) scores {_difference(findings.forgetting, findings.choice.method)}."
    )
    if findings.unprotected is not None and findings.choice.method != "finetune":
        unprotected = "plain fine-tuning, which does nothing against forgetting"
        text += f" It scores {_difference(findings.unprotected, unprotected)}."
    return text


def _difference(difference: Difference, other: str) -> str:
    """A paired difference in words, such as `1.2 points more than er (95% interval ...)`."""
    word = "more" if difference.mean >= 0 else "less"
    text = f"{percent(abs(difference.mean))} points {word} than {other}"
    if difference.low is None or difference.high is None:
        return text
    doubt = "" if difference.certain else "; the difference may be due to chance"
    return (
        f"{text} (95% interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f}{doubt})"
    )


def _order(findings: Findings) -> str:
    if findings.in_time:
        return "The sites were learned in chronological order; no other order makes sense."
    if findings.order_range is None:
        return "Only one order was tried: add --orders listed,reversed."
    text = (
        f"The best and the worst of {findings.orders} orders differ by "
        f"{percent(findings.order_range)} points on average"
    )
    if findings.unprotected_order_range is not None:
        text += f"; for fine-tuning, by {percent(findings.unprotected_order_range)}"
    return text + "."


def _more(findings: Findings) -> str:
    return f"{_more_sites(findings)} {_more_rows(findings)}".strip()


def _more_sites(findings: Findings) -> str:
    curve = findings.curve
    if curve is None:
        return "There are too few sites for a learning curve."
    count = max(curve.means)
    doubled = (
        f"twice as many sites would change the score by {100 * curve.doubling:+.1f} points "
        f"({100 * curve.level:.0f}% interval {100 * curve.low:+.1f} to {100 * curve.high:+.1f})"
    )
    if curve.rising:
        return (
            f"More sites: yes. If the trend continues, {doubled}, and one more site by about "
            f"{100 * curve.gain(count + 1, 1):+.1f}."
        )
    return f"More sites: this is not certain. If the trend continues, {doubled}."


def _more_rows(findings: Findings) -> str:
    gain = findings.more_rows
    if gain is None or gain.low is None or gain.high is None:
        return ""
    answer = "yes" if gain.certain and gain.mean > 0 else "probably not"
    if gain.mean > WORTHWHILE and not gain.certain:
        answer = "this is not certain"
    return (
        f"More rows per site: {answer}. For a linear classifier, twice as many rows per site "
        f"changed the score by {100 * gain.mean:+.1f} points (95% interval {100 * gain.low:+.1f} "
        f"to {100 * gain.high:+.1f})."
    )
