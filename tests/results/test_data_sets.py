"""Several data sets: what the sentences claim, and what they refuse to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from framed import frame_of_runs, made_run, over_data_sets

from farshore.results.data_sets import Significance, compare_data_sets
from farshore.results.summary import rank
from farshore.results.verdict import Outcome, judge
from reproduction.paper.scores import paper_numbers

CLEAR = {
    "finetune": [40.0, 41.0, 39.0, 42.0, 38.0, 40.0, 41.0, 40.5, 39.0, 40.0],
    "er": [60.0, 61.0, 62.0, 60.0, 61.0, 62.0, 60.0, 60.5, 60.0, 61.0],
    "cl-vrex": [80.0, 81.0, 82.0, 80.0, 81.0, 82.0, 80.0, 80.5, 80.0, 81.0],
}


def compared(frame: pd.DataFrame) -> Significance:
    return compare_data_sets(frame, rank(frame))


def test_the_papers_main_table() -> None:
    """The paper's best method is not distinguishable from the next ones over six data sets."""
    runs = [
        made_run(method, mean / 100, benchmark=data_set)
        for (method, _, data_set), (mean, _) in paper_numbers("main").items()
    ]
    frame = frame_of_runs(runs)
    significance = compared(frame)
    assert len(significance.datasets) == 6
    assert significance.friedman is not None
    assert significance.friedman.p < 0.001
    assert significance.critical == pytest.approx(10.8, abs=0.1)
    ranks = significance.mean_ranks
    assert next(iter(ranks)) == "cl-coral"
    assert list(ranks.values()) == sorted(ranks.values())
    assert (len(ranks), "urm" in ranks) == (18, False)
    text = " ".join(significance.sentences)
    assert "distinguishable from sarl, si, finetune and upgd, but not from" in text
    assert "no corrected p can be below" in text
    assert len(significance.pairs) == 18 * 17 / 2
    assert all(set(clique) <= set(ranks) for clique in significance.cliques)
    verdict = judge(frame)
    assert verdict.outcome is Outcome.TIED
    assert verdict.sentence.startswith(
        "No clear winner over 6 data sets: cl-coral has the best mean rank, but after the "
        "correction for the number of comparisons no test separates it from cl-vrex, "
    )


def test_equal_methods_are_not_distinguishable() -> None:
    generator = np.random.default_rng(0)
    scores = {
        name: generator.normal(50, 5, size=7).tolist()
        for name in ("finetune", "er", "si", "cl-vrex")
    }
    significance = compared(over_data_sets(scores))
    assert significance.friedman is not None
    assert significance.friedman.iman_davenport_p > 0.05
    assert significance.sentences[1].startswith(
        "No difference between the 4 methods is significant over the 7 data sets"
    )
    assert not any("Nemenyi" in text for text in significance.sentences)
    assert significance.cliques == (tuple(significance.mean_ranks),)
    first, *others = significance.mean_ranks
    assert not any(significance.ahead(first, other) for other in others)


def test_a_method_that_always_wins_is_distinguishable() -> None:
    generator = np.random.default_rng(0)
    scores = {
        name: generator.normal(level, 1, size=12).tolist()
        for name, level in (("finetune", 40), ("cl-vrex", 70), ("er", 50))
    }
    significance = compared(over_data_sets(scores))
    assert significance.mean_ranks == {"cl-vrex": 1.0, "er": 2.0, "finetune": 3.0}
    assert significance.sentences[0] == (
        "Mean ranks over the data sets, 1 is best: cl-vrex 1.0, er 2.0, finetune 3.0."
    )
    assert significance.sentences[1].startswith("The 3 methods do not all perform equally")
    assert any("3 of 3 pairs differ" in text for text in significance.sentences)
    assert significance.ahead("cl-vrex", "finetune")
    assert not significance.ahead("finetune", "cl-vrex")


def test_few_data_sets_get_a_warning() -> None:
    scores = {"finetune": [41.0, 41.0], "er": [42.0, 42.0], "si": [43.0, 43.0]}
    significance = compared(over_data_sets(scores))
    assert any("only large differences can be detected" in text for text in significance.sentences)


@pytest.mark.parametrize("count", [5, 6])
def test_two_methods_are_compared_by_wilcoxon(count: int) -> None:
    """With five data sets, no p can be small, however clear the difference is."""
    scores = {"er": [60.0 + index for index in range(count)], "finetune": [50.0] * count}
    frame = over_data_sets(scores)
    significance = compared(frame)
    assert (significance.friedman, significance.critical, significance.cliques) == (None, None, ())
    assert "which needs three methods" in significance.sentences[1]
    assert significance.ahead("er", "finetune") == (count == 6)
    assert judge(frame).outcome is (Outcome.CLEAR if count == 6 else Outcome.TIED)


def test_methods_that_lack_a_data_set_or_only_guess_are_left_out_of_the_tests() -> None:
    runs = [
        made_run(method, score, benchmark=f"data {index}", balanced_accuracy=balanced)
        for method, score, balanced, count in (
            *(("er", 0.7, 0.7, 4), ("si", 0.6, 0.6, 4), ("cl-vrex", 0.9, 0.9, 3)),
            *(("finetune", 0.8, 0.1, 4), ("joint", 0.95, 0.95, 4)),
        )
        for index in range(count)
    ]
    significance = compared(frame_of_runs(runs))
    assert list(significance.mean_ranks) == ["er", "si"]
    assert significance.mean_ranks == {"er": 1.0, "si": 2.0}


def test_a_loss_is_best_when_it_is_low() -> None:
    runs = [
        made_run(method, 0.5, metric="log_loss", log_loss=loss, benchmark=f"data {index}")
        | {"score": loss}
        for method, losses in (("er", (0.9, 0.8)), ("si", (0.1, 0.2)), ("ewc", (0.91, 0.7)))
        for index, loss in enumerate(losses)
    ]
    significance = compared(frame_of_runs(runs))
    assert significance.mean_ranks == {"si": 1.0, "ewc": 2.5, "er": 2.5}


def test_a_clear_winner_over_data_sets() -> None:
    verdict = judge(over_data_sets(CLEAR))
    # A difference of one rank is too small for Nemenyi's test on ten data sets, not on twenty.
    assert verdict.sentence == (
        "No clear winner over 10 data sets: cl-vrex has the best mean rank, but after the "
        "correction for the number of comparisons no test separates it from er."
    )
    assert verdict.together == ("cl-vrex", "er")
    twice = {name: values * 2 for name, values in CLEAR.items()}
    verdict = judge(over_data_sets(twice))
    assert verdict.outcome is Outcome.CLEAR
    assert verdict.sentence == (
        "cl-vrex is the clear winner over 20 data sets: 80.8%, ahead of every other method."
    )


def test_a_tie_over_data_sets() -> None:
    scores = {
        "finetune": [50.0, 40.0, 60.0],
        "er": [40.0, 60.0, 50.0],
        "cl-vrex": [60.0, 50.0, 41.0],
    }
    verdict = judge(over_data_sets(scores))
    assert verdict.outcome is Outcome.TIED
    assert "No clear winner over 3 data sets" in verdict.sentence
