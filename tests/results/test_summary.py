"""Means, errors, differences and ranks: numbers that can be checked by hand."""

from __future__ import annotations

import math

import pytest
import torch
from framed import frame_of_runs, made_frame, made_run, over_data_sets

from farshore.results.summary import (
    Difference,
    Estimate,
    Unit,
    guess_level,
    guessing,
    meaning,
    paired,
    rank,
    scores_of,
    spread,
    unit_of,
    variance,
)
from farshore.tasks.metrics import METRICS, guess_score, guess_text, is_guessing
from farshore.tasks.scores import all_scores

# Student's t for 95% and 2 degrees of freedom.
T2 = 4.302652729911275
# Four orders with different last sources, four targets with one order each.
TARGETS = {"x>y": "p", "y>z": "q", "z>x": "r"}


def estimate_of(frame, row: str = "er") -> Estimate:
    standing = rank(frame).find(row)
    assert standing is not None
    assert standing.estimate is not None
    return standing.estimate


def difference_of(frame, first: str, second: str) -> Difference:
    found = paired(frame, first, second)
    assert found is not None
    return found


def test_each_target_counts_once_however_many_runs_it_has() -> None:
    frame = made_frame({"er": {"x>y": [90, 70], "y>z": [50], "z>x": [60, 80]}}, targets=TARGETS)
    found = estimate_of(frame)
    assert (found.unit, found.units, found.runs) == (Unit.TARGET, 3, 5)
    assert found.values == pytest.approx({"p": 0.8, "q": 0.5, "r": 0.7})
    assert found.mean == pytest.approx((0.8 + 0.5 + 0.7) / 3)
    assert (found.worst, found.best) == ("q", "p")
    # The means of the targets are 0.8, 0.5 and 0.7: deviation √(0.14 / 3 / 2), divisor n - 1.
    deviation = math.sqrt((0.4**2 + 0.5**2 + 0.1**2) / 9 / 2)
    assert found.error == pytest.approx(deviation / math.sqrt(3))
    half = T2 * deviation / math.sqrt(3)
    assert found.high == pytest.approx(min(1.0, 2 / 3 + half))
    assert found.low == pytest.approx(2 / 3 - half)
    assert found.note == ""


def test_the_mean_at_a_target_is_nested_last_source_then_order_then_seed() -> None:
    runs = [
        made_run("er", score, target=target, order=order, seed=seed)
        for target, order, seed, score in (
            ("p", "a → b → c", 0, 0.2),
            ("p", "a → b → c", 1, 0.4),  # the order: 0.3
            ("p", "b → a → c", 0, 0.7),  # the last source c: 0.5
            ("p", "c → a → b", 0, 0.9),  # the last source b: 0.9; the target: 0.7
            ("q", "a → b → c", 0, 0.1),
        )
    ]
    found = estimate_of(frame_of_runs(runs))
    assert found.values == pytest.approx({"p": 0.7, "q": 0.1})
    assert found.mean == pytest.approx(0.4)


def test_differences_are_paired_by_target_order_and_seed() -> None:
    frame = made_frame(
        {
            "cl-coral": {"x>y": [90, 70], "y>z": [50], "z>x": [60, 80]},
            "er": {"x>y": [60, 60, 0], "y>z": [60], "z>x": [None, 50]},
        },
        targets=TARGETS,
    )
    found = difference_of(frame, "cl-coral", "er")
    # (0.3 + 0.1) / 2, -0.1, 0.3: seeds that only one method has do not count.
    assert found.values == pytest.approx({"p": 0.2, "q": -0.1, "r": 0.3})
    assert found.mean == pytest.approx(0.4 / 3)
    assert (found.units, found.runs, found.won, found.better) == (3, 4, 2, True)
    squares = sum((value - 0.4 / 3) ** 2 for value in (0.2, -0.1, 0.3))
    half = T2 * math.sqrt(squares / 2) / math.sqrt(3)
    assert found.low == pytest.approx(0.4 / 3 - half)
    assert found.high == pytest.approx(0.4 / 3 + half)
    assert not found.certain
    swapped = difference_of(frame, "er", "cl-coral")
    assert (swapped.mean, swapped.won) == (pytest.approx(-found.mean), 1)


def test_methods_without_a_shared_run_have_no_difference() -> None:
    runs = [made_run("er", 0.5, seed=0), made_run("si", 0.5, seed=1)]
    assert paired(frame_of_runs(runs), "er", "si") is None


@pytest.mark.parametrize(
    ("runs", "unit"),
    [
        ([{}, {"seed": 1}], Unit.SEED),
        ([{"order": "a → b → c"}, {"order": "b → a → c"}], Unit.ORDER),
        ([{"order": "a → b → c"}, {"order": "b → a → c"}, {"order": "c → b"}], Unit.LAST_SOURCE),
        ([{"target": "p"}, {"target": "q", "order": "b → a"}], Unit.TARGET),
        ([{"benchmark": "one"}, {"benchmark": "two", "target": "q"}], Unit.DATASET),
    ],
)
def test_the_unit_is_the_coarsest_of_which_there_are_several(runs: list[dict], unit: Unit) -> None:
    frame = frame_of_runs([made_run("er", 0.5, **values) for values in runs])
    assert unit_of(frame) is unit
    # A method that learns all sources at once has no say.
    offline = [made_run("joint", 0.5, target=target) for target in "uv"]
    assert unit_of(frame_of_runs([*(made_run("er", 0.5, **v) for v in runs), *offline])) is unit


def test_the_unit_is_what_has_been_measured_not_what_is_planned() -> None:
    runs = [made_run("er", 0.5, order=order) for order in ("a → b", "b → a")]
    planned = [made_run("er", None, target="q", order=order) for order in ("a → b", "b → a")]
    assert unit_of(frame_of_runs([*runs, *planned])) is Unit.LAST_SOURCE


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_units_have_neither_error_nor_interval(count: int) -> None:
    targets = dict(list(TARGETS.items())[:count])
    scores = {order: [60.0] for order in targets}
    frame = made_frame({"er": scores, "si": scores}, targets=targets)
    for found in (estimate_of(frame), difference_of(frame, "er", "si")):
        assert (found.error, found.low, found.high) == (None, None, None)
        assert found.note == f"too few {found.unit}s for an interval"


def test_intervals_end_where_the_metric_ends() -> None:
    frame = made_frame(
        {
            "er": {"x>y": [99], "y>z": [95], "z>x": [90]},
            "si": {"x>y": [5], "y>z": [45], "z>x": [1]},
        },
        targets=TARGETS,
    )
    found = estimate_of(frame)
    assert (found.high, found.low) == (1.0, pytest.approx(0.8346, abs=1e-4))
    assert estimate_of(frame, "si").low == 0.0
    assert difference_of(frame, "er", "si").high == 1.0
    # An interval that is wider than all that is possible says nothing.
    wild = made_frame({"er": {"x>y": [0], "y>z": [100], "z>x": [0]}}, targets=TARGETS)
    found = estimate_of(wild)
    assert found.error == pytest.approx(1 / 3)
    assert (found.low, found.high, found.note) == (None, None, "too few targets for an interval")


def test_an_interval_of_equal_differences_has_no_width() -> None:
    frame = made_frame(
        {
            "er": {"x>y": [30.1], "y>z": [40.1], "z>x": [50.1]},
            "si": {"x>y": [30.0], "y>z": [40.0], "z>x": [50.0]},
            "ewc": {"x>y": [30.1], "y>z": [40.1], "z>x": [50.1]},
        },
        targets=TARGETS,
    )
    assert difference_of(frame, "er", "si").certain
    assert difference_of(frame, "er", "si").p == 0.0
    same = difference_of(frame, "er", "ewc")
    assert (same.certain, same.p, same.won, same.better) == (False, 1.0, 0, False)


def test_equal_scores_share_the_better_rank() -> None:
    orders = {"a>b": [10], "b>a": [20]}
    same = {"a>b": [15], "b>a": [15]}  # (0.1 + 0.2) / 2 is not 0.15 in the last digit
    ranking = rank(made_frame({"si": orders, "er": same, "finetune": {"a>b": [1], "b>a": [1]}}))
    assert {each.row: each.rank for each in ranking.standings} == {"si": 1, "er": 1, "finetune": 3}
    assert ranking.reference == "er"


def test_over_data_sets_the_mean_rank_decides() -> None:
    """A method that is far ahead on one data set has the best mean, and not the best rank."""
    frame = over_data_sets({"er": [90, 40, 50, 60], "si": [50, 42, 52, 62], "ewc": [50, 1, 2, 3]})
    ranking = rank(frame)
    assert [(each.row, each.rank) for each in ranking.standings] == [
        ("si", 1),
        ("er", 2),
        ("ewc", 3),
    ]
    assert ranking.unit is Unit.DATASET
    assert estimate_of(frame).mean == pytest.approx(0.6)
    assert estimate_of(frame, "si").mean == pytest.approx(0.515)


def test_lower_is_better_for_a_loss() -> None:
    runs = [
        made_run(method, 0.5, log_loss=loss, target=target, order=f"{target} → b")
        for method, losses in {"er": (0.3, 0.5, 0.4), "si": (0.4, 0.7, 0.3)}.items()
        for target, loss in zip("pqr", losses, strict=True)
    ]
    frame = frame_of_runs(runs)
    ranking = rank(frame, "log_loss")
    assert [(each.row, each.rank) for each in ranking.standings] == [("er", 1), ("si", 2)]
    found = ranking.standings[0].estimate
    assert found is not None
    assert (found.worst, found.best) == ("q", "p")
    second = ranking.standings[1].difference
    assert second is not None
    assert second.mean == pytest.approx(0.2 / 3)
    assert (second.better, second.won) == (False, 1)
    assert [each.rank for each in rank(frame).standings] == [1, 1]  # their accuracy is the same


def test_a_method_with_a_gap_is_not_ranked() -> None:
    orders = {"a>b": [60, 61], "b>a": [62, 63]}
    ranking = rank(
        made_frame(
            {
                "finetune": orders,
                "er": {"a>b": [90, None], "b>a": [90, 90]},
                "si": {"a>b": [95, 95]},
                "ewc": {"a>b": [None, None], "b>a": [None, None]},
            }
        )
    )
    assert [(each.row, each.rank) for each in ranking.standings] == [
        ("finetune", 1),
        ("si", None),
        ("er", None),
        ("ewc", None),
    ]
    assert [(each.complete, each.runs, each.planned) for each in ranking.standings] == [
        (True, 4, 4),
        (False, 2, 2),
        (False, 3, 4),
        (False, 0, 4),
    ]
    assert ranking.reference == "finetune"  # a method with a gap is no reference


def test_what_has_run_for_nobody_is_no_gap() -> None:
    scores = {"er": {"a>b": [60, None], "b>a": [None]}, "si": {"a>b": [50, None], "b>a": [None]}}
    frame = made_frame(scores)
    assert [each.rank for each in rank(frame).standings] == [1, 2]


def test_offline_methods_are_paired_with_every_order_and_never_ranked() -> None:
    orders = ("a → b → c", "b → c → a", "c → a → b")
    runs = [
        made_run("er", score, order=order, seed=seed)
        for order, scores in zip(orders, ((0.5, 0.6), (0.4, 0.5), (0.6, 0.7)), strict=True)
        for seed, score in enumerate(scores)
    ]
    runs += [made_run("joint", score, order=orders[0], seed=seed) for seed, score in ((0, 0.8),)]
    frame = frame_of_runs(runs)
    found = difference_of(frame, "joint", "er")
    assert found.values == pytest.approx({"a": 0.4, "b": 0.2, "c": 0.3})
    assert (found.units, found.runs) == (3, 3)  # seed 1 has no run of joint
    assert difference_of(frame, "er", "joint").mean == pytest.approx(-0.3)
    standing = rank(frame).find("joint")
    assert standing is not None
    assert (standing.rank, standing.kind) == (None, "offline")
    # Several runs of a seed in different orders are averaged first.
    frame = frame_of_runs([*runs, made_run("joint", 0.6, order=orders[1], seed=0)])
    assert difference_of(frame, "joint", "er").mean == pytest.approx(0.2)


def test_a_method_with_more_targets_than_the_ranked_ones_keeps_all_of_them() -> None:
    """The unit is the seed, because the ranked method has one target so far."""
    runs = [made_run("er", 0.5, seed=seed) for seed in (0, 1)]
    runs += [made_run("joint", score, target=t) for t, score in (("t", 0.6), ("u", 0.8))]
    found = estimate_of(frame_of_runs(runs), "joint")
    assert (found.unit, found.mean, found.units) == (Unit.SEED, pytest.approx(0.7), 1)


def test_methods_that_saw_more_follow_below_by_kind_and_score() -> None:
    scores = {"majority": 95, "tent": 90, "urm": 70, "er": 50, "joint": 80, "finetune": 60}
    ranking = rank(made_frame({name: {"a>b": [score]} for name, score in scores.items()}))
    assert [(each.row, each.kind, each.rank) for each in ranking.standings] == [
        ("finetune", "continual", 1),
        ("er", "continual", 2),
        ("joint", "offline", None),
        ("urm", "offline", None),
        ("tent", "adaptation", None),
        ("majority", "reference", None),
    ]


@pytest.mark.parametrize("counts", [(7, 3), (2, 5, 3), (4, 0, 4), (6,), (0, 9)])
@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "balanced_accuracy", "auroc"])
def test_guessing_scores_what_a_constant_prediction_scores(
    metric: str, counts: tuple[int, ...]
) -> None:
    """The scores that the package computes for always predicting the most frequent class."""
    labels = torch.tensor([index for index, count in enumerate(counts) for _ in range(count)])
    logits = torch.zeros(len(labels), max(len(counts), 2))
    logits[:, max(range(len(counts)), key=counts.__getitem__)] = 1.0
    expected = all_scores(logits, labels)[metric]
    if metric == "auroc" and expected is None:  # only one class occurs
        expected = 0.5
    assert guess_score(metric, counts) == pytest.approx(expected)


def test_guessing_is_undefined_without_rows_and_for_a_loss() -> None:
    assert guess_score("accuracy", []) is None
    assert guess_score("accuracy", [0, 0]) is None
    assert guess_score("log_loss", [3, 4]) is None


def test_the_level_of_guessing_is_in_the_metric_of_the_table() -> None:
    assert guess_text("macro_f1", 5, [guess_score("macro_f1", [56, 41, 42, 51, 10])]) == (
        "5 classes, always predicting the most frequent one scores 8.8%"
    )
    assert guess_text("accuracy", 2, [0.541, 0.935]).endswith("scores 54.1 to 93.5%")
    assert guess_text("accuracy", 3, []) == guess_text("unknown", 3, [0.5]) == "3 classes"
    runs = [
        made_run("er", 0.5, target=target, seed=seed, guess=guess)
        for target, guess in (("p", 0.6), ("q", 0.8))
        for seed in (0, 1)
    ]
    assert guess_level(frame_of_runs(runs)) == pytest.approx(0.7)


def test_a_method_is_guessing_if_it_tells_the_classes_apart_nowhere() -> None:
    assert is_guessing(0.52, 2)
    assert not is_guessing(0.53, 2)
    assert is_guessing(0.145, 10)
    assert not is_guessing(0.146, 10)
    constant = {"finetune": 51.0, "er": 60.0}
    orders = {"a>b": [74.0], "b>a": [74.0]}
    frame = made_frame({"finetune": orders, "er": orders}, balanced=constant, classes=2)
    assert guessing(frame, "finetune")
    assert not guessing(frame, "er")
    ranking = rank(frame)
    assert [each.row for each in ranking.usable] == ["er"]
    # At one place of two, it tells them apart.
    runs = [
        made_run("er", 0.7, target=target, balanced_accuracy=balanced, classes=2)
        for target, balanced in (("p", 0.5), ("q", 0.9))
    ]
    assert not guessing(frame_of_runs(runs), "er")


def test_metrics_are_written_in_their_unit() -> None:
    accuracy, loss = METRICS["accuracy"], METRICS["log_loss"]
    assert accuracy.text(0.12345) == "12.3"
    assert accuracy.text(-0.0001, sign=True) == "+0.0"
    assert accuracy.text(-0.05) == "−5.0"
    assert loss.text(0.4567) == "0.457"
    assert accuracy.text(None) == accuracy.text(math.nan) == "–"


def test_the_variance_is_divided_among_last_source_order_and_seed() -> None:
    scores = {"x>a": [1, 3], "y>a": [5, 7], "x>b": [10, 10], "y>b": [20, 20]}
    frame = made_frame({"er": scores, "si": scores, "even": {key: [4, 4] for key in scores}})
    # Last sources: 4 and 15 around 9.5; orders: 2 and 6, 10 and 20; seeds: four that are 1 apart.
    parts = {Unit.LAST_SOURCE: 8 * 5.5**2, Unit.ORDER: 4 * 2**2 + 4 * 5**2, Unit.SEED: 4 * 1**2}
    found = variance(scores_of(frame, "er"))
    assert found == pytest.approx({unit: part / 362 for unit, part in parts.items()})
    assert variance(scores_of(frame, "even")) == {}
    assert spread(frame) == [
        "Where the variance of a method's scores lies (mean over methods): last source 67%, order "
        "32%, seed 1%."
    ]


def test_a_level_at_which_nothing_varies_by_design_has_no_share() -> None:
    frame = made_frame({"er": {"x>a": [1], "y>a": [2], "x>b": [4]}})
    assert set(variance(scores_of(frame, "er"))) == {Unit.LAST_SOURCE, Unit.ORDER}
    assert variance({}) == {}
    assert spread(made_frame({"er": {"x>a": [1, 2, 3]}})) == []
    assert spread(made_frame({"er": {"x>y": [90], "y>z": [50]}}, targets=TARGETS)) == []


def test_an_interval_over_all_orders_is_called_what_it_is() -> None:
    some = {"a>b>c": [1.0], "b>c>a": [2.0], "c>a>b": [3.0]}
    rest = {"b>a>c": [1.5], "c>b>a": [2.5], "a>c>b": [3.5]}
    one = "One seed; seed noise not included."
    assert meaning(made_frame({"er": some})) == [
        "Intervals are over last sources at one target: they describe these orders, not new "
        "targets.",
        one,
    ]
    assert meaning(made_frame({"er": {**some, **rest}}))[0] == (
        "Intervals are over last sources at one target: these are all 6 orders, not a sample of "
        "them, and not new targets."
    )
    seeds = {order: [score, score + 1] for order, [score] in some.items()}
    assert one not in meaning(made_frame({"er": seeds}))
    assert meaning(made_frame({"er": {"x>y": [9], "y>z": [5]}}, targets=TARGETS)) == []
