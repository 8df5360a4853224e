"""The findings of an audit in words, one answer per question. Every number comes from a finding."""

from collections.abc import Callable

from ..results.frame import SHARED_METRIC
from ..results.text import doubt, interval, points, score_text
from ..tasks.labels import RARE
from ..tasks.metrics import (
    METRICS,
    guess_words,
    in_unit,
    listed,
    percent,
    several,
)
from ..tasks.regression import Regression
from .decision import useless
from .findings import Findings, TooFew

# Below these, a difference is not worth a warning.
SMALL_LOSS = 0.02
LARGE_CALIBRATION_ERROR = 0.05
FEW_SITES = 8
# A method that wins in fewer resampled sets of sites is an uncertain choice.
SURE = 0.8
# A gain below this is not worth collecting rows for.
WORTHWHILE = 0.01


def verdict(findings: Findings) -> str:
    """The first sentence: what to expect, and with which method."""
    metric, method = findings.ranking.metric, findings.choice.method
    expected, scores = findings.expectation, findings.scores.values()
    if findings.recommendation is None:
        return "There is no score to expect at a new site beyond that of guessing."
    if expected is None:
        return (
            f"Use {method}; {len(scores)} sites are too few for an interval that predicts the "
            "score at a new site."
        )
    if useless(expected, metric):
        return (
            f"The score at a new site cannot be predicted: with {method}, the {expected.sites} "
            f"left-out sites range from {score(findings, min(scores))} to "
            f"{score(findings, max(scores))} {metric.label}, too far apart for a useful interval."
        )
    return (
        f"Expect {score(findings, expected.mean)} {metric.label} at a new site with {method}: "
        f"between {score(findings, expected.low)} and {score(findings, expected.high)} in "
        f"{100 * expected.level:.0f} of 100 cases ({expected.basis})."
    )


def score(findings: Findings, value: float | None) -> str:
    """A score with its unit."""
    return score_text(findings.ranking.metric, value)


def answers(findings: Findings) -> dict[str, str]:
    """The answers by question, in the order of the page, where there is one."""
    found = {question: answer(findings) for question, answer in QUESTIONS.items()}
    return {question: text for question, text in found.items() if text}


def too_few(found: TooFew) -> str:
    """Why the audit cannot say anything, and what would help."""
    return (
        "There is too little data to say what to expect at a new site: "
        f"{'; '.join(found.reasons)}. Add sites first, then rows per site."
    )


def _expected(findings: Findings) -> str:
    scores, majority = findings.scores, findings.majority
    lowest, highest = min(scores, key=scores.__getitem__), max(scores, key=scores.__getitem__)
    text = (
        f"{len(scores)} sites were left out in turn: the lowest score was "
        f"{score(findings, scores[lowest])} at {lowest}, the highest "
        f"{score(findings, scores[highest])} at {highest}. The method scored at a site was chosen "
        "without using that site."
    )
    if len(scores) < FEW_SITES:
        text += (
            f" The interval is based on only {len(scores)} sites; it is wide because so few sites "
            "say little about the next one."
        )
    if majority is not None and findings.expectation is not None:
        text += (
            " majority, which ignores the inputs and always predicts "
            f"{guess_words(len(findings.classes)).seen}, scores {score(findings, majority)}."
        )
    if findings.evidence is not None and findings.evidence.against:
        text += f" {findings.evidence.against}{findings.evidence.text}."
    return text


def _metric(findings: Findings) -> str:
    if findings.ranking.metric.name == "accuracy":
        return (
            "Accuracy is the share of rows that are right. It is the default for your own data "
            "unless a class is rare; with --metric macro_f1 every class counts the same."
        )
    if findings.ranking.metric.name == SHARED_METRIC:
        return (
            "In macro F1 every class counts the same, however rare. It is the default for your own "
            f"data if a class has less than {percent(RARE)}% of the rows of the first site; with "
            "--metric accuracy every row counts the same."
        )
    if findings.ranking.metric.name in Regression.metrics:
        return OF_NUMBERS
    return f"It is {findings.ranking.metric.label}, which the data set names."


def _method(findings: Findings) -> str:
    choice, found = findings.choice, findings.recommendation
    leader = found.leader if found is not None else choice.method
    text = f"Mean scores at the left-out sites: {_by_mean(findings)}. Use {choice.method}."
    if found is not None and found.reason:
        text += f" {found.reason}."
    if findings.pooled is not None:
        text += f" {findings.pooled.sentence(findings.ranking.metric)}"
    text += (
        f" When the sites are resampled at random, {choice.method} is chosen in "
        f"{100 * choice.certainty:.0f} of 100 cases."
    )
    if choice.certainty < SURE:
        text += " The choice is uncertain."
    others = {site: row for site, row in choice.without.items() if row != choice.method}
    if others:
        picked = ", ".join(f"{row} without {site}" for site, row in others.items())
        text += f" Leaving out one site can change the choice: {picked}."
    else:
        text += " Leaving out any single site does not change the choice."
    ties = [row for row in choice.ties if row != leader]
    if ties:
        text += f" {choice.method} is not clearly better than {listed(ties, last='or')}."
    guessing = [each.row for each in findings.ranking.ranked if each.guessing]
    if guessing:
        text += f" No better than guessing: {listed(guessing)}."
    return text


def _by_mean(findings: Findings) -> str:
    """Candidates and references by mean, the leader first."""
    metric = findings.ranking.metric
    sign = -1 if metric.higher_is_better else 1
    means = [(each, each.estimate.mean) for each in findings.ranking.standings if each.estimate]
    means.sort(key=lambda pair: sign * pair[1])
    texts = [
        f"{each.row}{'' if each.kind == 'continual' else ' (reference)'} {score(findings, mean)}"
        for each, mean in means
    ]
    leader = means[0][0]
    leads = "" if leader.kind == "continual" else ", a reference, which is never recommended"
    most = "highest" if metric.higher_is_better else "lowest"
    return f"{', '.join(texts)}. {leader.row} has the {most}{leads}"


def _loss(findings: Findings) -> str:
    text = (
        "On held-out rows of the sites that it learned, the model scores "
        f"{score(findings, findings.source_score)}; at sites that it never saw, "
        f"{score(findings, findings.mean)}. "
    )
    metric = findings.ranking.metric
    if findings.loss < SMALL_LOSS * (1 if metric.digits is None else findings.source_score):
        return text + "There is no loss to speak of."
    side = "high" if metric.higher_is_better else "low"
    return text + f"A score measured at known sites is {_gap(findings, findings.loss)} too {side}."


def _gap(findings: Findings, value: float) -> str:
    """A difference in the unit of the score."""
    return f"{findings.ranking.metric.text(value)} {points(findings.ranking.metric)}"


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
        return ""
    text = (
        f"At left-out sites the stated confidence is off by {percent(findings.calibration_error)} "
        f"points on average (log loss {METRICS['log_loss'].text(findings.log_loss)}). "
    )
    if findings.calibration_error > LARGE_CALIBRATION_ERROR:
        return text + "Do not use the probabilities as they are at a new site."
    return text + "They can be used at a new site."


def _unlike(findings: Findings) -> str:
    unlike, outlier = findings.unlike, findings.outlier
    if unlike is None:
        text = "None: a classifier cannot tell the inputs of any site from those of the others."
    else:
        columns = ", ".join(map(str, unlike.columns[:3]))
        different = [shift.site for shift in findings.shifts if shift.different]
        text = (
            f"{unlike.site}: shown one of its rows and one from another site, a classifier tells "
            f"which is which with probability {unlike.area:.2f} (0.50 is chance). The columns that "
            f"differ most are {columns}."
        )
        if len(different) > 1:
            text += f" {len(different)} of {len(findings.shifts)} sites differ from the others."
    if outlier is not None:
        side = "below" if findings.ranking.metric.higher_is_better else "above"
        text += (
            f" At {outlier} the score is {score(findings, findings.scores[outlier])}, far {side} "
            "what the other sites suggest: check its rows and labels."
        )
    return text


def _forgetting(findings: Findings) -> str:
    if findings.forgetting is None:
        return "This was not measured, because joint was left out."
    method, metric = findings.choice.method, findings.ranking.metric
    apart, other = findings.forgetting, findings.unprotected
    text = (
        "At new sites, joint (a single network trained on all sites at once, which needs all the "
        f"data at the same time) minus {method}: {interval(apart, metric)}{doubt(apart)}."
    )
    if other is not None and method != "finetune":
        text += (
            " joint minus finetune, which does nothing against forgetting: "
            f"{interval(other, metric)}{doubt(other)}."
        )
    return text


def _order(findings: Findings) -> str:
    if findings.in_time:
        return "The sites were learned in chronological order; no other order makes sense."
    if findings.order_range is None:
        return "Only one order was tried: add --orders listed,reversed."
    text = (
        f"The best and the worst of {findings.orders} orders differ by "
        f"{_gap(findings, findings.order_range)} on average"
    )
    if findings.unprotected_order_range is not None:
        text += "; for fine-tuning, by "
        text += findings.ranking.metric.text(findings.unprotected_order_range)
    return text + "."


def _more_sites(findings: Findings) -> str:
    curve = findings.curve
    if curve is None:
        return "There are too few sites for a learning curve."
    metric = findings.ranking.metric
    gain, low, high, next_gain = (
        metric.text(value, sign=True)
        for value in (curve.doubling, curve.low, curve.high, curve.gain(max(curve.means), 1))
    )
    trend = (
        f"If the trend continues, twice as many sites would change the score by {gain} "
        f"{points(metric)}, {100 * curve.level:.0f}% interval over "
        f"{several(curve.sites, 'site')} {low} to {high}"
    )
    if curve.rising if metric.higher_is_better else curve.high < 0:
        return f"More sites: yes. {trend}; one more site by about {next_gain}."
    return f"More sites: this is not certain. {trend}."


def _more_rows(findings: Findings) -> str:
    gain = findings.more_rows
    if gain is None:
        return ""
    words = guess_words(len(findings.classes))
    metric = in_unit(METRICS[words.measured_by], findings.ranking.metric.unit.strip())
    worth = WORTHWHILE * (1 if metric.higher_is_better else findings.mean)
    answer = "yes" if gain.clear else "probably not"
    if gain.better and abs(gain.mean) > worth and not gain.certain:
        answer = "this is not certain"
    return (
        f"More rows per site: {answer}. For {words.quick}, twice as many rows per site "
        f"changed the score by {interval(gain, metric)}."
    )


QUESTIONS: dict[str, Callable[[Findings], str]] = {
    "What score should I expect at a new site?": _expected,
    "Why this score?": _metric,
    "Which method should I use, and how certain is that choice?": _method,
    "How much worse is it at new sites than at known ones?": _loss,
    "How well does it recognise each class?": _classes,
    "Can the probabilities be trusted?": _calibration,
    "Which site is unlike the others?": _unlike,
    "What does learning site by site cost?": _forgetting,
    "How much does the order of the sites matter?": _order,
    "Would more sites or rows help?": lambda found: (
        f"{_more_sites(found)} {_more_rows(found)}".strip()
    ),
}
OF_NUMBERS = (
    "MAE is the mean distance between prediction and label, in the label's unit: the default for "
    "numbers. RMSE weighs large errors more; R² is 1 minus the squared errors over those of the "
    "site's own mean; skill is 1 minus the MAE over that of the sources' mean (--metric mae, rmse, "
    "r2 or skill)."
)
