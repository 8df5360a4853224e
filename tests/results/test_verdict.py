"""The verdict of made-up scores is the right sentence, and true under the tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from framed import frame_of_runs, made_frame, made_run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farshore.results.verdict import Outcome, Verdict, judge

ORDERS = ("a>b>c", "b>c>a", "c>a>b", "c>b>a")
SEEDS = (-0.3, 0.1, 0.2)
# Four targets with one order each.
TARGETS = {"x>y": "p", "y>z": "q", "z>x": "r", "x>z": "s"}


def around(value: float, by_order: Sequence[float] = (0.0, 0.3, -0.2, 0.1)) -> dict:
    """Three seeds in each of four orders, close to a value."""
    return {
        order: [value + shift + seed for seed in SEEDS]
        for order, shift in zip(ORDERS, by_order, strict=True)
    }


def ranked(verdict: Verdict) -> list[str]:
    return [each.row for each in verdict.ranking.ranked]


def test_a_clear_winner() -> None:
    verdict = judge(
        made_frame(
            {
                "finetune": around(50.0, (0.2, -0.1, 0.3, 0.0)),
                "er": around(70.0, (0.1, 0.2, -0.3, 0.0)),
                "cl-vrex": around(80.0),
            }
        )
    )
    assert verdict.outcome is Outcome.CLEAR
    # Orders ending at a, b and c score 80.3, 79.8 and 80.0.
    assert verdict.sentence == (
        "cl-vrex is the clear winner on toy at target t over 4 orders of the sources (3 last "
        "sources): 80.0%, ahead of every other method."
    )
    assert ranked(verdict) == ["cl-vrex", "er", "finetune"]
    assert verdict.together == ("cl-vrex",)
    assert verdict.details[:2] == (
        "Recommended: cl-vrex.",
        "cl-vrex minus er, paired by target, order and seed: +10.0 points, 95% interval over 3 "
        "last sources +9.7 to +10.3; better in 3 of 3 last sources.",
    )
    about, shares = verdict.details[-2:]
    assert about == (
        "Intervals are over last sources at one target: they describe these orders, not new "
        "targets."
    )
    assert shares.startswith("Where the variance of a method's scores lies (mean over methods)")


def test_a_tie_names_all_that_no_test_separates_and_what_they_beat() -> None:
    scores = {
        "er": {"x>y": [40.5], "y>z": [39.6], "z>x": [40.2], "x>z": [40.1]},
        "si": {"x>y": [69.0], "y>z": [71.1], "z>x": [69.3], "x>z": [70.4]},
        "cl-vrex": {"x>y": [71.2], "y>z": [68.8], "z>x": [70.8], "x>z": [69.6]},
    }
    verdict = judge(made_frame(scores, targets=TARGETS))
    assert verdict.outcome is Outcome.TIED
    assert verdict.sentence == (
        "No clear winner on toy over 4 unseen targets: cl-vrex has the best mean, 70.1%, but after "
        "the correction for the number of comparisons no test separates it from si (0.1 points "
        "behind). cl-vrex and si are ahead of er."
    )
    assert verdict.together == ("cl-vrex", "si")
    assert "Best score: cl-vrex in 2, si in 2 of 4 targets." in verdict.details
    assert not any("Intervals are over" in text for text in verdict.details)


def test_a_winner_in_one_order_only_does_not_win() -> None:
    """Fine-tuning in the order that suits it is ahead on one line and far behind on the other."""
    verdict = judge(
        made_frame(
            {
                "finetune": {"a>b": [15.0, 15.4, 15.6], "b>a": [81.0, 81.5, 82.0]},
                "er": {"a>b": [69.0, 69.3, 68.6], "b>a": [70.8, 71.0, 70.6]},
            }
        )
    )
    assert verdict.outcome is Outcome.UNTESTED
    assert verdict.sentence == (
        "Too few last sources to name a winner on toy at target t over 2 orders of the sources (2 "
        "last sources): er scores 69.9%, finetune 48.4%."
    )
    assert (
        "Which method scores best depends on the last source: er for b; finetune for a."
        in verdict.details
    )
    assert "too few last sources for an interval; better in 1 of 2" in verdict.details[1]
    assert not any("95%" in text for text in verdict.details)


def test_the_highest_mean_from_one_order_alone_is_no_win() -> None:
    frame = made_frame({"finetune": around(60.0, (38.0, 0.0, 0.0, 0.0)), "er": around(62.0)})
    verdict = judge(frame)
    assert verdict.leader is not None
    assert verdict.leader.row == "finetune"
    assert verdict.outcome is Outcome.TIED
    assert "winner" not in verdict.sentence.replace("No clear winner", "")


def test_a_constant_predictor_in_front_never_wins() -> None:
    verdict = judge(
        made_frame(
            {"finetune": around(74.5), "er": around(70.0), "cl-coral": around(64.0)},
            balanced={"finetune": 50.7},
            classes=2,
        )
    )
    assert verdict.sentence.startswith(
        "finetune has the best score (74.5%) but tells the classes apart no better than guessing "
        "(balanced accuracy 50.7%, chance 50.0%), so it does not count. er is the clear winner"
    )
    first, second, _ = verdict.ranking.standings
    assert (first.row, first.guessing, first.rank) == ("finetune", True, 1)
    assert (second.row, verdict.together) == ("er", ("er",))
    assert verdict.leader is second
    assert (
        "Balanced accuracy at the level of chance, no better than guessing: finetune."
        in verdict.details
    )


def test_constant_predictors_behind_are_flagged_in_the_details() -> None:
    verdict = judge(
        made_frame(
            {"finetune": around(60.0), "er": around(70.0)}, balanced={"finetune": 51.0}, classes=2
        )
    )
    assert verdict.outcome is Outcome.ALONE
    assert "best" not in verdict.sentence
    assert any("level of chance" in text for text in verdict.details)


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([{"order": "a → b"}, {"order": "b → a"}], "er in 1 of 2 orders"),
        ([{"target": "p"}, {"target": "q", "order": "b → a"}], "er in 1 of 2 targets"),
        ([{"benchmark": "one"}, {"benchmark": "two"}], "er in 1 of 2 data sets"),
        (
            [{"target": name, "order": f"{name} → {last}"} for name in "pq" for last in "ab"],
            "er in 1 of 4 pairs of target and order",
        ),
    ],
)
def test_where_a_method_only_guesses_is_counted(places: list[dict], text: str) -> None:
    runs = [
        made_run(method, 0.7, balanced_accuracy=0.5 if method == "er" and not index else 0.7)
        | {"classes": 2, **place}
        for method in ("er", "si")
        for index, place in enumerate(places)
    ]
    details = judge(frame_of_runs(runs)).details
    assert any(f"no better than guessing: {text}." in each for each in details)


def test_if_all_predict_one_class_nobody_wins() -> None:
    verdict = judge(
        made_frame(
            {"finetune": around(74.0), "er": around(75.0)},
            balanced={"finetune": 50.0, "er": 50.4},
            classes=2,
        )
    )
    assert verdict.outcome is Outcome.NONE
    assert "No method has learned anything" in verdict.sentence
    assert (verdict.leader, verdict.recommendation) == (None, None)


def test_if_nothing_is_complete_nobody_wins() -> None:
    verdict = judge(made_frame({"er": {"a>b": [90, None]}, "si": {"a>b": [None, 80]}}))
    assert verdict.outcome is Outcome.NONE
    assert verdict.sentence == "No method has all its scores; some are missing for er and si."
    assert verdict.details == (
        "Not ranked because some scores are missing: er (1 of 2 runs) and si (1 of 2 runs).",
    )
    offline = judge(made_frame({"joint": {"a>b": [90]}}))
    assert offline.sentence == "No method that is ranked has run."


def test_a_single_order_is_named_as_such() -> None:
    verdict = judge(
        made_frame(
            {"finetune": {"a>b": [60.0, 60.5, 60.2]}, "er": {"a>b": [70.0, 70.4, 70.1]}},
        )
    )
    assert verdict.outcome is Outcome.CLEAR
    assert "on toy at target t in one order with 3 seeds: 70.2%" in verdict.sentence
    assert verdict.details[-1] == (
        "Intervals are over seeds at one target in one order: they do not describe other orders or "
        "new targets."
    )


@pytest.mark.parametrize("orders", [["a>b"], ["a>b", "b>a"]])
def test_a_single_seed_and_few_orders_name_no_winner(orders: list[str]) -> None:
    verdict = judge(
        made_frame(
            {
                "finetune": {order: [40.0] for order in orders},
                "er": {order: [90.0] for order in orders},
            }
        )
    )
    assert verdict.outcome is Outcome.UNTESTED
    assert verdict.sentence.startswith("Too few ")
    assert "er scores 90.0%, finetune 40.0%" in verdict.sentence
    assert verdict.together == ()


def test_a_single_seed_in_enough_orders_can_win() -> None:
    scores = {
        "er": dict(zip(ORDERS, ([70.0], [70.3], [69.8], [70.1]), strict=True)),
        "finetune": dict(zip(ORDERS, ([50.0], [49.5], [50.9], [50.2]), strict=True)),
    }
    assert judge(made_frame(scores)).outcome is Outcome.CLEAR


def test_many_orders_at_two_targets_are_two_observations() -> None:
    targets = {"a>b": "x", "b>a": "x", "c>b": "y", "b>c": "y"}
    scores = {
        "er": {order: [70.0 + index] for index, order in enumerate(targets)},
        "finetune": {order: [50.0 + 2 * index] for index, order in enumerate(targets)},
    }
    verdict = judge(made_frame(scores, targets=targets))
    assert verdict.outcome is Outcome.UNTESTED
    assert "Too few targets to name a winner on toy over 2 unseen targets" in verdict.sentence


def test_many_orders_at_three_targets_are_three_observations() -> None:
    targets = {f"{name}{index}": name for name in "xyz" for index in range(6)}
    gain = {"x": 1.0, "y": 9.0, "z": -2.0}
    scores = {
        "er": {order: [60.0, 60.2] for order in targets},
        "cl-vrex": {
            order: [60.0 + gain[name], 60.2 + gain[name]] for order, name in targets.items()
        },
    }
    verdict = judge(made_frame(scores, targets=targets))
    assert "over 3 unseen targets" in verdict.sentence
    assert verdict.outcome is Outcome.TIED
    assert "Which method scores best depends on the target: cl-vrex for x and y; er for z." in (
        verdict.details
    )


def test_methods_that_saw_more_never_win_but_set_the_scale() -> None:
    scores = {"joint": around(90.0), "er": around(80.0), "finetune": around(50.0)}
    verdict = judge(made_frame(scores))
    assert verdict.sentence.startswith("er is the clear winner")
    assert (
        "er is 10.0 points worse than joint, which trains on all sources at once (90.0%)."
        in verdict.details
    )
    assert [each.rank for each in verdict.ranking.standings] == [1, 2, None]


def test_missing_and_failed_runs_are_said() -> None:
    frame = made_frame({"er": around(80.0), "finetune": around(50.0)})
    waiting = made_run("er", None, seed=9) | {"status": "missing"}
    partial = judge(pd.concat([frame, frame_of_runs([waiting])], ignore_index=True))
    assert partial.sentence.endswith("Not everything that was planned has run yet.")
    failed = around(50.0) | {ORDERS[0]: [50.0, None, 50.0]}
    scores = {"er": around(80.0), "finetune": failed, "si": {ORDERS[0]: [99.0, 99.0, 99.0]}}
    verdict = judge(made_frame(scores))
    assert verdict.outcome is Outcome.ALONE
    assert (
        "Not ranked because some scores are missing: si and finetune (11 of 12 runs)."
        in verdict.details
    )


def test_one_method_has_nothing_to_be_compared_with() -> None:
    verdict = judge(made_frame({"er": around(80.0)}))
    assert verdict.outcome is Outcome.ALONE
    assert "no other method" in verdict.sentence


def test_a_leader_that_is_not_recommended_is_named_with_the_reason() -> None:
    scores = {
        "er": {"x>y": [70], "y>z": [72], "z>x": [71], "x>z": [69]},
        "ridge": {"x>y": [80], "y>z": [71], "z>x": [79], "x>z": [68]},
    }
    verdict = judge(made_frame(scores, targets=TARGETS))
    assert verdict.recommendation is not None
    assert (verdict.recommendation.row, verdict.recommendation.leader) == ("er", "ridge")
    assert verdict.details[0] == (
        "Recommended: er; ridge leads the ranking, 4.0 points ahead of er, the usual choice, but "
        "the 95% interval of that difference over 4 targets includes zero."
    )
    two = {row: dict(list(of_row.items())[:2]) for row, of_row in scores.items()}
    verdict = judge(made_frame(two, targets=TARGETS))
    assert verdict.details[0] == (
        "Recommended: er; ridge leads the ranking, 4.5 points ahead of er, the usual choice, but "
        "there are too few targets for an interval of that difference (2 targets)."
    )


def test_rows_of_one_method_are_named_with_what_distinguishes_them() -> None:
    runs = [
        made_run("er", score, variant=variant, row=row, target=target, order=f"{target} → z")
        for row, variant, scores in (
            ("er", "", (0.7, 0.71, 0.72)),
            ("er (memory 50)", "memory 50", (0.6, 0.62, 0.6)),
        )
        for target, score in zip("pqr", scores, strict=True)
    ]
    verdict = judge(frame_of_runs(runs))
    assert ranked(verdict) == ["er", "er (memory 50)"]
    assert verdict.details[1].startswith("er minus er (memory 50), paired by")


scores = st.floats(min_value=20, max_value=99).map(lambda value: round(value, 1))


@st.composite
def drawn_scores(draw: st.DrawFn) -> dict[str, dict[str, list[float]]]:
    """Methods in up to four orders, which end at different sources."""
    orders = ("a>b>c>d", "b>c>d>a", "c>d>a>b", "d>a>b>c")[: draw(st.integers(1, 4))]
    seeds = draw(st.integers(1, 4))
    methods = draw(
        st.lists(st.sampled_from(["finetune", "er", "si", "cl-vrex"]), min_size=2, unique=True)
    )
    return {
        method: {order: [draw(scores) for _ in range(seeds)] for order in orders}
        for method in methods
    }


@settings(max_examples=60)
@given(drawn_scores())
def test_no_verdict_names_a_winner_that_a_plain_paired_test_does_not_find(
    drawn: dict[str, dict[str, list[float]]],
) -> None:
    """An uncorrected test is weaker than the verdict's: where it fails, nobody may win."""
    verdict = judge(made_frame(drawn))
    first, *others = ranked(verdict)
    assert first in verdict.sentence
    tables = {method: np.array(list(of_method.values())) for method, of_method in drawn.items()}
    assert tables[first].mean() == pytest.approx(max(table.mean() for table in tables.values()))
    orders = len(tables[first])
    for other in others:
        difference = tables[first] - tables[other]
        units = difference.mean(axis=1) if orders > 1 else difference[0]
        p = _p(units) if len(units) >= 3 else 1.0
        if p >= 0.05:
            assert verdict.outcome is not Outcome.CLEAR
            assert "is the clear winner" not in verdict.sentence


def _p(values: np.ndarray) -> float:
    if np.ptp(values) < 1e-9:
        return 0.0 if abs(values.mean()) > 1e-9 else 1.0
    return float(stats.ttest_1samp(values, 0).pvalue)
