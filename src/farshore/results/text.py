"""How scores and differences are written, in every sentence."""

from ..tasks.metrics import Metric, several
from .summary import Difference


def points(metric: Metric) -> str:
    """What a difference is measured in."""
    return "points" if metric.unit == "%" else metric.unit.strip() or metric.label


def score_text(metric: Metric, value: float | None) -> str:
    """A score with its unit."""
    return metric.text(value) + metric.unit


def interval(found: Difference, metric: Metric) -> str:
    """A difference with its interval, its unit and their number: the only way it is written."""
    text = f"{metric.text(found.mean, sign=True)} {points(metric)}"
    units = several(found.units, found.unit)
    if found.low is None or found.high is None:
        return f"{text} over {units}, {found.note}"
    low, high = (metric.text(value, sign=True) for value in (found.low, found.high))
    return f"{text}, 95% interval over {units} {low} to {high}"


def doubt(found: Difference) -> str:
    """What to add if the interval includes zero."""
    return "" if found.certain or found.note else " (it may be due to chance)"
