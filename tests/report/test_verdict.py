"""The verdict of made-up results is the right sentence, and true under the tests."""

from __future__ import annotations

import numpy as np
import pytest
from contested import contest, over_datasets
from farshore.report.conditions import conditions
from farshore.report.contest import Contest
from farshore.report.verdict import Outcome, Verdict, judge
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

ORDERS = ("a>b>c", "b>c>a", "c>a>b", "c>b>a")
SEEDS = (-0.3, 0.1, 0.2)


def around(value: float, by_order: tuple[float, ...] = (0.0, 0.3, -0.2, 0.1)) -> dict:
    """Three seeds in each of four orders, close to a value."""
    return {
        order: [value + shift + seed for seed in SEEDS]
        for order, shift in zip(ORDERS, by_order, strict=True)
    }


def ranked(verdict: Verdict) -> list[str]:
    return [each.entrant.method for each in verdict.standings if each.rank is not None]


def test_a_clear_winner() -> None:
    verdict = judge(
        contest(
            {
                "finetune": around(50.0, (0.2, -0.1, 0.3, 0.0)),
                "er": around(70.0, (0.1, 0.2, -0.3, 0.0)),
                "cl-vrex": around(80.0),
            }
        )
    )
    assert verdict.outcome is Outcome.CLEAR
    assert verdict.sentence == (
        "cl-vrex is the clear winner on toy over 4 orders of the sources: 80.1%, ahead of every "
        "other method."
    )
    assert ranked(verdict) == ["cl-vrex", "er", "finetune"]
    assert [each.together for each in verdict.standings] == [True, False, False]
    assert "better in 4 of 4 orders" in verdict.details[0]


def test_a_tie_names_all_that_are_within_noise_and_what_they_beat() -> None:
    verdict = judge(
        contest(
            {
                "er": around(70.0, (1.0, -1.2, 0.8, -0.4)),
                "cl-vrex": around(70.4, (-1.1, 1.3, -0.7, 0.6)),
                "finetune": around(40.0, (0.5, -0.5, 0.2, 0.1)),
            }
        )
    )
    assert verdict.outcome is Outcome.TIED
    assert verdict.sentence == (
        "No clear winner on toy over 4 orders of the sources: cl-vrex and er are within noise. All "
        "of them are ahead of finetune."
    )


def test_a_winner_in_one_order_only_does_not_win() -> None:
    """Fine-tuning in the order that suits it is ahead on one line and far behind on the other."""
    verdict = judge(
        contest(
            {
                "finetune": {"a>b": [15.0, 15.4, 15.6], "b>a": [81.0, 81.5, 82.0]},
                "er": {"a>b": [69.0, 69.3, 68.6], "b>a": [70.8, 71.0, 70.6]},
            }
        )
    )
    assert verdict.outcome is Outcome.TIED
    assert verdict.sentence == (
        "No clear winner on toy over 2 orders of the sources: er and finetune are within noise. "
        "But in the order a → b, finetune falls to 15.3%, where er is at 69.0%."
    )
    assert (
        "Which method scores highest depends on where it is measured: er in the order a → b; "
        "finetune in the order b → a." in verdict.details
    )
    assert any("between 15.3 and 81.5%" in text for text in verdict.details)


def test_the_highest_mean_from_one_order_alone_is_no_win() -> None:
    verdict = judge(contest({"finetune": around(60.0, (38.0, 0.0, 0.0, 0.0)), "er": around(62.0)}))
    assert verdict.leader is not None
    assert verdict.leader.method == "finetune"
    assert verdict.outcome is Outcome.TIED
    assert "winner" not in verdict.sentence.replace("No clear winner", "")


def test_a_constant_predictor_in_front_never_wins() -> None:
    verdict = judge(
        contest(
            {"finetune": around(74.5), "er": around(70.0), "cl-coral": around(64.0)},
            balanced={"finetune": 50.7},
            classes=2,
        )
    )
    assert verdict.sentence.startswith(
        "finetune has the highest score (74.6%) but tells the classes apart no better than "
        "guessing (balanced accuracy 50.7%, chance 50.0%), so it does not count. er is the clear "
        "winner"
    )
    first, second, _ = verdict.standings
    assert (first.entrant.method, first.constant, first.together) == ("finetune", True, False)
    assert (second.entrant.method, second.together) == ("er", True)
    assert verdict.leader is second.entrant
    assert any("finetune: 50.7%" in text for text in verdict.details)


def test_constant_predictors_behind_are_flagged_in_the_details() -> None:
    verdict = judge(
        contest(
            {"finetune": around(60.0), "er": around(70.0)},
            balanced={"finetune": 51.0},
            classes=2,
        )
    )
    assert verdict.outcome is Outcome.ALONE
    assert "highest" not in verdict.sentence
    assert any("level of chance" in text for text in verdict.details)


def test_if_all_predict_one_class_nobody_wins() -> None:
    verdict = judge(
        contest(
            {"finetune": around(74.0), "er": around(75.0)},
            balanced={"finetune": 50.0, "er": 50.4},
            classes=2,
        )
    )
    assert verdict.outcome is Outcome.NONE
    assert "No method has learned anything" in verdict.sentence
    assert verdict.leader is None


def test_a_single_order_is_named_as_such() -> None:
    verdict = judge(
        contest(
            {"finetune": {"a>b": [60.0, 60.5, 60.2]}, "er": {"a>b": [70.0, 70.4, 70.1]}},
        )
    )
    assert verdict.outcome is Outcome.CLEAR
    assert "in one order of the sources with 3 seeds" in verdict.sentence
    assert verdict.sentence.endswith("another order may change it.")


@pytest.mark.parametrize("orders", [["a>b"], ["a>b", "b>a"]])
def test_a_single_seed_and_few_orders_name_no_winner(orders: list[str]) -> None:
    verdict = judge(
        contest(
            {
                "finetune": {order: [40.0] for order in orders},
                "er": {order: [90.0] for order in orders},
            }
        )
    )
    assert verdict.outcome is Outcome.UNTESTED
    assert "Too few runs to name a winner" in verdict.sentence
    assert "er scores 90.0%, finetune 40.0%" in verdict.sentence


def test_a_single_seed_in_enough_orders_can_win() -> None:
    scores = {
        "er": dict(zip(ORDERS, ([70.0], [70.3], [69.8], [70.1]), strict=True)),
        "finetune": dict(zip(ORDERS, ([50.0], [49.5], [50.9], [50.2]), strict=True)),
    }
    assert judge(contest(scores)).outcome is Outcome.CLEAR


def test_each_order_at_two_targets_is_one_observation() -> None:
    targets = {"a>b": "x", "b>a": "x", "c>b": "y", "b>c": "y"}
    scores = {
        "er": {order: [70.0 + index] for index, order in enumerate(targets)},
        "finetune": {order: [50.0 + 2 * index] for index, order in enumerate(targets)},
    }
    verdict = judge(contest(scores, targets=targets))
    assert "over 2 unseen targets with 2 orders of the sources each" in verdict.sentence
    assert verdict.outcome is Outcome.CLEAR


def test_from_three_targets_on_a_target_is_one_observation() -> None:
    """Many orders at three targets are still three observations."""
    targets = {f"{name}{index}": name for name in "xyz" for index in range(6)}
    gain = {"x": 1.0, "y": 9.0, "z": -2.0}
    scores = {
        "er": {order: [60.0, 60.2] for order in targets},
        "cl-vrex": {
            order: [60.0 + gain[name], 60.2 + gain[name]] for order, name in targets.items()
        },
    }
    verdict = judge(contest(scores, targets=targets))
    assert "over 3 unseen targets" in verdict.sentence
    assert verdict.outcome is Outcome.TIED


def test_methods_that_saw_more_never_win_but_set_the_scale() -> None:
    verdict = judge(contest({"joint": around(90.0), "er": around(80.0), "finetune": around(50.0)}))
    assert verdict.sentence.startswith("er is the clear winner")
    assert "er is 10.0 points below joint, which trains on all sources at once (90.1%)." in (
        verdict.details
    )
    assert [each.rank for each in verdict.standings] == [1, 2, None]


def test_missing_and_failed_runs_are_said() -> None:
    partial = judge(contest({"er": around(80.0), "finetune": around(50.0)}, whole=False))
    assert partial.sentence.endswith("Not everything that was planned has run yet.")
    scores = {"er": around(80.0), "finetune": around(50.0), "si": {ORDERS[0]: [99.0]}}
    verdict = judge(contest(scores, failed={"finetune": 1}))
    assert verdict.outcome is Outcome.ALONE
    assert any("finetune and si" in text for text in verdict.details)


def test_one_method_has_nothing_to_be_compared_with() -> None:
    verdict = judge(contest({"er": around(80.0)}))
    assert verdict.outcome is Outcome.ALONE
    assert "no other method" in verdict.sentence


def test_a_clear_winner_over_data_sets() -> None:
    scores = {
        "finetune": [40.0, 41.0, 39.0, 42.0, 38.0, 40.0, 41.0, 40.5, 39.0, 40.0],
        "er": [60.0, 61.0, 62.0, 60.0, 61.0, 62.0, 60.0, 60.5, 60.0, 61.0],
        "cl-vrex": [80.0, 81.0, 82.0, 80.0, 81.0, 82.0, 80.0, 80.5, 80.0, 81.0],
    }
    verdict = judge(over_datasets(scores))
    # A difference of one rank is too small for Nemenyi's test on ten data sets, not on twenty.
    assert verdict.sentence == (
        "No clear winner over 10 data sets: cl-vrex and er are within noise. cl-vrex is ahead of "
        "finetune."
    )
    twice = {name: values * 2 for name, values in scores.items()}
    verdict = judge(over_datasets(twice))
    assert verdict.outcome is Outcome.CLEAR
    assert verdict.sentence.startswith("cl-vrex is the clear winner over 20 data sets: 80.8%")


def test_a_tie_over_data_sets() -> None:
    scores = {
        "finetune": [50.0, 40.0, 60.0],
        "er": [40.0, 60.0, 50.0],
        "cl-vrex": [60.0, 50.0, 41.0],
    }
    verdict = judge(over_datasets(scores))
    assert verdict.outcome is Outcome.TIED
    assert "No clear winner over 3 data sets" in verdict.sentence


def test_the_conditions_name_sources_target_levels_seeds_and_orders() -> None:
    text = conditions(contest({"er": around(80.0)}, classes=2))
    assert text == (
        "toy, accuracy; sources a, b, c, unseen target t; 2 classes, chance 50.0%, most frequent "
        "class 60.0%; 3 seeds, 4 orders."
    )
    targets = dict.fromkeys(ORDERS[:2], "x") | dict.fromkeys(ORDERS[2:], "y")
    text = conditions(contest({"er": around(80.0)}, targets=targets))
    assert "unseen targets x, y, each learned from the other domains" in text
    assert "2 orders per target" in text


scores = st.floats(min_value=20, max_value=99).map(lambda value: round(value, 1))


@st.composite
def contests(draw: st.DrawFn) -> Contest:
    orders = ORDERS[: draw(st.integers(1, 4))]
    seeds = draw(st.integers(1, 4))
    methods = draw(
        st.lists(st.sampled_from(["finetune", "er", "si", "cl-vrex"]), min_size=2, unique=True)
    )
    return contest(
        {
            method: {order: [draw(scores) for _ in range(seeds)] for order in orders}
            for method in methods
        },
        classes=10,
    )


@settings(max_examples=60, deadline=None)
@given(contests())
def test_no_verdict_names_a_winner_that_a_plain_paired_test_does_not_find(made: Contest) -> None:
    """An uncorrected test is weaker than the verdict's: where it fails, nobody may win."""
    verdict = judge(made)
    ordered = [each.entrant for each in verdict.standings]
    assert ordered[0].label in verdict.sentence
    means = [
        np.array([[run["accuracy"] for run in runs.values()] for runs in one.scores.values()])
        for one in ordered
    ]
    assert [values.mean() for values in means] == sorted(
        (values.mean() for values in means), reverse=True
    ) or np.allclose(np.diff([values.mean() for values in means]).clip(min=0), 0)
    orders, seeds = means[0].shape
    for other in means[1:]:
        difference = means[0] - other
        if orders >= 3:
            p = _p(difference.mean(axis=1))
        elif seeds >= 3:
            p = max(_p(row) for row in difference)
            p = p if (difference.mean(axis=1) > 0).all() else 1.0
        else:
            p = 1.0
        if p >= 0.05:
            assert verdict.outcome is not Outcome.CLEAR
            assert "is the clear winner" not in verdict.sentence


def _p(values: np.ndarray) -> float:
    if np.ptp(values) < 1e-9:
        return 0.0 if abs(values.mean()) > 1e-9 else 1.0
    return float(stats.ttest_1samp(values, 0).pvalue)
