"""The texts of the verdict, the estimate and the calibration for a new site."""

from __future__ import annotations

from ..tasks.metrics import BALANCED, METRICS
from .calibrate import LEVEL, Calibrated
from .estimate import AccuracyEstimate, NoEstimate
from .verdict import Range, SiteVerdict


def verdict_lines(verdict: SiteVerdict) -> list[str]:
    """The verdict, one finding per line; the last line is the verdict itself."""
    lines = list(verdict.notes)
    if verdict.p_value is not None:
        how = f", area {verdict.area.here:.2f}{_known(verdict.area)}" if verdict.area else ""
        differs = "differs from" if verdict.different else "is like"
        lines.append(f"two-sample test: the site {differs} the known ones (p {_p(verdict)}{how})")
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


def warning(estimate: AccuracyEstimate | NoEstimate, promised: float | None) -> str | None:
    """One line if the estimate falls below what `learn` was promised."""
    if isinstance(estimate, NoEstimate) or promised is None or estimate.high >= promised:
        return None
    return (
        f"warning: the estimated accuracy here is {100 * estimate.accuracy:.1f}% "
        f"({100 * estimate.low:.1f} to {100 * estimate.high:.1f}%), below the "
        f"{100 * promised:.1f}% at which the model was accepted"
    )


def estimate_lines(estimate: AccuracyEstimate | NoEstimate) -> list[str]:
    """The estimate with its interval and its parts, or why there is none."""
    here = estimate.signals
    if isinstance(estimate, NoEstimate):
        return [f"no estimate: {estimate.reason}"]
    ways = ", ".join(
        f"{name} {100 * value:.1f}% (weight {estimate.weights[name]:.2f})"
        for name, value in estimate.values.items()
    )
    return [
        f"expected accuracy: {100 * estimate.accuracy:.1f}%, {100 * estimate.level:.0f}% interval "
        f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}%",
        f"from {estimate.sites} sites that were measured before they were learned: {ways}",
        f"{here.rows} rows: average confidence {100 * here.confidence:.1f}%, ATC "
        f"{100 * here.atc:.1f}%, distance {here.distance:.2f}",
    ]


def calibration_lines(done: Calibrated, metric: str, classes: list[str]) -> list[str]:
    """What a calibration changed, and what it is worth."""
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


def _known(known: Range) -> str:
    return f" (known sites {known.low:.2f} to {known.high:.2f})" if known.high > 0.5 else ""


def _p(verdict: SiteVerdict) -> str:
    assert verdict.p_value is not None
    return "< 0.0001" if verdict.p_value < 1e-4 else f"{verdict.p_value:.4f}"
