"""How the judgement of a new site, and a calibration, are put into words."""

from functools import singledispatch
from typing import Any

from ..learner.learner import Learner
from ..results.sequence import RISK
from ..results.text import score_text
from ..tasks.metrics import BALANCED, METRICS, in_unit, percent, several
from .arrive import Advice, Arrived, Nothing
from .calibrate import LEVEL, Calibrated
from .verdict import SiteVerdict


def verdict_lines(verdict: SiteVerdict) -> list[str]:
    """The verdict, one finding per line; the last line is the verdict itself."""
    lines = list(verdict.notes)
    if verdict.p_value is not None:
        p, area = verdict.p_value, verdict.area
        shown = "< 0.0001" if p < 1e-4 else f"{p:.4f}"
        if area is not None:
            shown += f", area {area.here:.2f}"
            between = f" (known sites {area.low:.2f} to {area.high:.2f})"
            shown += between if area.high > 0.5 else ""
        differs = "differs from" if verdict.different else "is like"
        lines.append(f"two-sample test: the site {differs} the known ones (p {shown})")
    if verdict.confidence is not None:
        known = f"{100 * verdict.confidence.low:.1f} to {100 * verdict.confidence.high:.1f}%"
        lines.append(
            f"mean confidence: {100 * verdict.confidence.here:.1f}%, known sites {known} (held-out "
            "rows, and before they were learned)"
        )
    if verdict.neighbours is not None:
        lines.append(
            f"rows without a near neighbour: {100 * verdict.neighbours.here:.1f}%, known sites at "
            f"most {100 * verdict.neighbours.high:.1f}%"
        )
    lines.append(
        f"missing values: {100 * verdict.missing.here:.1f}%, known sites at most "
        f"{100 * verdict.missing.high:.1f}%; rows with unknown categories: "
        f"{100 * verdict.unknown.here:.1f}%, known sites at most {100 * verdict.unknown.high:.1f}%"
    )
    if verdict.alarm:
        lines.append(
            f"verdict: ALARM, do not trust these predictions: {'; '.join(verdict.reasons)}"
        )
    elif verdict.different:
        lines.append("verdict: no alarm; the site differs, but within the range of the known sites")
    else:
        lines.append("verdict: no alarm")
    return lines


@singledispatch
def arrival_lines(arrived: Any) -> list[str]:
    """What `arrive` and `predict` end with, here of numbers: the verdict, the expectation and the
    advice.
    """
    lines, expected, metric = verdict_lines(arrived.verdict), arrived.expected, arrived.metric
    if isinstance(expected, Nothing):
        lines.append(f"expected mean absolute error: nothing can be said: {expected.reason}")
    else:
        ends = [score_text(metric, each) for each in (expected.mean, expected.low, expected.high)]
        lines.append(
            f"expected mean absolute error: {ends[0]}, {100 * expected.level:.0f}% interval "
            f"{ends[1]} to {ends[2]} ({expected.basis}, {several(expected.sites, 'measured site')})"
        )
    if isinstance(arrived.sets, Nothing):
        lines.append(f"no intervals per row: {arrived.sets.reason}")
    else:
        lines.append(
            f"{100 * arrived.sets.level:.0f} of 100 rows: the label is between low and high "
            f"({arrived.sets.basis}, {several(arrived.sets.sites, 'measured site')})"
        )
    return [*lines, f"advice: {arrived.advice.action}: {arrived.advice.reason}"]


@singledispatch
def calibration_lines(done: Any, learner: Learner) -> list[str]:
    """What a calibration has changed, and what it is worth."""
    metric = in_unit(METRICS["mae"], learner.known_task.score_unit)
    before, after = (score_text(metric, each) for each in (done.before, done.after))
    lines = [f"fitted to {done.rows} rows: {done.kind}"]
    if done.changes:
        offsets = ", ".join(f"{each:.3g}" for each in done.calibration.offsets)
        lines += [
            f"slope {1 / done.calibration.temperature:.3g}, intercept {offsets} (in deviations of "
            f"the first site's labels), intervals times {done.spread:.3g}",
            f"mean absolute error of rows that it was not fitted to: {before} before, {after} "
            "after",
        ]
    return lines


@arrival_lines.register(Arrived)
def _arrival_of_classes(arrived: Arrived) -> list[str]:
    expected, sets, labelled = arrived.expected, arrived.sets, arrived.labelled
    lines = verdict_lines(arrived.verdict)
    if isinstance(expected, Nothing):
        lines.append(f"expected accuracy: nothing can be said: {expected.reason}")
    else:
        lines.append(
            f"expected accuracy: {percent(expected.mean)}%, {100 * expected.level:.0f}% interval "
            f"{percent(expected.low)} to {percent(expected.high)}% ({expected.basis}, "
            f"{several(expected.sites, 'measured site')})"
        )
    if not isinstance(sets, Nothing):
        lines.append(
            f"{100 * sets.level:.0f} of 100 rows: their class is among those with a probability of "
            f"{1 - sets.most:.3g} or more ({sets.basis}, {several(sets.sites, 'site')})"
        )
    if labelled is not None:
        lines.append(
            f"{several(labelled.rows, 'labelled row')}: accuracy at least {percent(labelled.low)}% "
            f"and at most {percent(labelled.high)}% (each wrong in at most {100 * RISK:.0f} of 100 "
            "cases, whenever you stop labelling)"
        )
    advice = arrived.advice
    lines.append(f"advice: {advice.action}: {advice.reason}")
    return lines


def option_lines(advice: Advice) -> list[str]:
    """Each action with its predicted gain and its command, the advised one first."""
    ordered = sorted(advice.options, key=lambda each: each.action is not advice.action)
    return [
        line
        for each in ordered
        for line in (f"- {each.action}: {each.gain}", f"  {each.command}")
        if line.strip()
    ]


@calibration_lines.register(Calibrated)
def _calibration_of_classes(done: Calibrated, learner: Learner) -> list[str]:
    metric, classes = learner.metric, [str(each) for each in learner.classes or []]
    before, after = done.before, done.after
    lines = [
        "on rows that were left out of the fit:",
        f"log loss: {before.score('log_loss'):.3f} before, {after.score('log_loss'):.3f} after",
    ]
    for name in dict.fromkeys(["accuracy", metric, BALANCED]):
        shown = METRICS[name]
        was, now = (shown.text(each.score(name)) for each in (before, after))
        lines.append(f"{shown.label}: {was}% before, {now}% after")
    lines[2] += (
        f" ({100 * LEVEL:.0f}% interval of the change: {100 * done.low:+.1f} to "
        f"{100 * done.high:+.1f} points)"
    )
    lines += [
        f"recall of {classes[number]}: {100 * recall:.1f}% before, "
        f"{100 * after.recalls[number]:.1f}% after ({done.counts[number]} rows)"
        for number, recall in before.recalls.items()
    ]
    if done.refused is not None:
        kind, scores = done.refused
        shown = METRICS[metric]
        lines.append(
            f"refused: {kind}, which would lower the {shown.label} from "
            f"{shown.text(before.score(metric))}% to {shown.text(scores.score(metric))}%; give "
            "more labelled rows, or let the model learn the site by `farshore learn`"
        )
    if not done.changes:
        return [*lines, "nothing was changed: these rows give no reason to change anything"]
    fitted = done.calibration
    fit_text = f"temperature {fitted.temperature:.2f}"
    if done.kind != "temperature" and fitted.threshold is not None:
        fit_text += f", threshold of {classes[1]} {fitted.threshold:.2f}"
    elif done.kind != "temperature":
        offsets = zip(classes, fitted.offsets, strict=True)
        fit_text += ", offsets " + ", ".join(f"{label} {value:+.2f}" for label, value in offsets)
    return [f"calibrated with {done.rows} rows: {fit_text}", *lines]
