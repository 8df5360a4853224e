"""Which row is used, and how far orders lie apart: rules on plain scores."""

from __future__ import annotations

import pytest

from farshore.results.summary import Place, Unit, choose, order_range
from farshore.tasks.metrics import METRICS, Metric

ACCURACY = METRICS["accuracy"]


def scored(*values: float) -> dict[Place, float]:
    """A score per target, from one run."""
    return {
        ("heart", target, "", "", 0): value for target, value in zip("abcdef", values, strict=False)
    }


USUAL = scored(0.80, 0.82, 0.81, 0.79)
# Differences .03 .01 .04 .00, mean .02, standard error .009: the interval includes zero.
TIED = scored(0.83, 0.83, 0.85, 0.79)
BETTER = scored(0.84, 0.85, 0.85, 0.83)


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ({"best": TIED, "er": USUAL}, "er"),
        ({"best": BETTER, "er": USUAL}, "best"),
        ({"trees": TIED, "best": BETTER, "er": USUAL}, "best"),
        ({"best": BETTER, "trees": BETTER, "er": USUAL}, "best"),
        ({"er": BETTER, "best": USUAL}, "er"),
        ({"ridge": BETTER, "best": TIED}, "ridge"),
    ],
)
def test_the_usual_row_is_chosen_unless_another_is_clearly_better(
    scores: dict[str, dict[Place, float]], chosen: str
) -> None:
    assert choose(scores, Unit.TARGET, ACCURACY, usual="er") == chosen


def test_the_default_method_is_the_usual_row() -> None:
    assert choose({"er": TIED, "slda": USUAL}, Unit.TARGET, ACCURACY) == "slda"
    error = Metric("mae", "MAE", "", 1.0, higher_is_better=False, digits=3)
    assert choose({"er": TIED, "ridge": USUAL}, Unit.TARGET, error) == "ridge"


def test_the_usual_row_is_any_row_and_lower_may_be_better() -> None:
    loss = Metric("log_loss", "log loss", "", 1.0, higher_is_better=False)
    scores = {"ncm": USUAL, "er": BETTER, "best": BETTER}
    assert choose(scores, Unit.TARGET, loss, usual="best") == "ncm"
    assert choose(scores, Unit.TARGET, ACCURACY, usual="best") == "best"


def test_nothing_is_clearly_better_over_two_targets() -> None:
    scores = {"best": scored(0.9, 0.9), "er": scored(0.5, 0.5)}
    assert choose(scores, Unit.TARGET, ACCURACY, usual="er") == "er"


def test_the_range_over_orders_is_the_mean_over_targets() -> None:
    scores = {
        ("heart", "a", "x", "y → x", 0): 0.6,
        ("heart", "a", "y", "x → y", 0): 0.7,
        ("heart", "a", "y", "x → y", 1): 0.9,  # with the seed before: 0.8
        ("heart", "b", "x", "y → x", 0): 0.5,
        ("heart", "b", "y", "x → y", 0): 0.4,
    }
    assert order_range(scores) == pytest.approx((0.2 + 0.1) / 2)
    assert order_range(scored(0.5, 0.6)) is None
