"""The texts of the verdict, the estimate and the calibration for a new site."""

from __future__ import annotations

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


def calibration_lines(done: Calibrated, classes: list[str]) -> list[str]:
    """What a calibration changed, and what it is worth."""
    lines = []
    if done.priors is not None:
        shares = ", ".join(
            f"{label} {100 * share:.1f}%" for label, share in zip(classes, done.priors, strict=True)
        )
        lines.append(f"estimated shares of the classes: {shares} (p {done.p_value:.2g})")
    if done.before is not None and done.after is not None:
        lines.append(
            f"log loss on rows that were left out: {done.before:.3f} before, {done.after:.3f} after"
        )
    if done.change is not None and done.low is not None and done.high is not None:
        lines.append(
            f"accuracy: {100 * done.change:+.1f} points, {100 * LEVEL:.0f}% interval "
            f"{100 * done.low:+.1f} to {100 * done.high:+.1f}"
        )
    if not done.changes:
        return [*lines, "nothing was changed: these rows give no reason to change anything"]
    fitted = done.calibration
    values = f"temperature {fitted.temperature:.2f}"
    if done.kind != "temperature" and fitted.threshold is not None:
        values += f", threshold of {classes[1]} {fitted.threshold:.2f}"
    elif done.kind != "temperature":
        offsets = zip(classes, fitted.offsets, strict=True)
        values += ", offsets " + ", ".join(f"{label} {value:+.2f}" for label, value in offsets)
    return [f"calibrated with {done.rows} rows: {values}", *lines]


def _known(known: Range) -> str:
    return f" (known sites {known.low:.2f} to {known.high:.2f})" if known.high > 0.5 else ""


def _p(verdict: SiteVerdict) -> str:
    assert verdict.p_value is not None
    return "< 0.0001" if verdict.p_value < 1e-4 else f"{verdict.p_value:.4f}"
