"""What the sentences claim, and what they refuse to."""

from __future__ import annotations

import numpy as np
import pytest
from farshore.report.conclusions import judge
from farshore.report.table import Cell, Significance
from papers_own import printed_table


def cells(*seeds: list[float]) -> list[Cell]:
    return [Cell(float(np.mean(values)), values=tuple(values)) for values in seeds]


def judged(rows: dict[str, list[Cell]]) -> Significance:
    significance = judge(
        rows,
        [f"set {n}" for n in range(len(next(iter(rows.values()))))],
        {key: key.upper() for key in rows},
    )
    assert significance is not None
    return significance


def test_the_papers_main_table() -> None:
    significance = printed_table("main").significance
    assert significance is not None
    assert significance.methods[0] == "cl-coral"
    assert significance.friedman_p < 0.001
    assert significance.critical_difference == pytest.approx(10.8, abs=0.1)
    text = " ".join(significance.sentences)
    assert "distinguishable from SARL, SI, Finetune, UPGD, but not from" in text
    assert "no corrected p can be below" in text
    assert "no seeds behind it" in text
    assert len(significance.pairwise) == 18 * 17 / 2
    assert all(set(clique) <= set(significance.methods) for clique in significance.cliques)
    assert "urm" not in significance.methods


def test_one_data_set_allows_no_general_claim() -> None:
    significance = judged(
        {"finetune": cells([1.0, 2.0]), "a": cells([5.0, 6.0]), "b": cells([1.0, 3.0])}
    )
    assert significance.friedman is None
    assert significance.critical_difference is None
    assert significance.pairwise == ()
    assert "cannot be tested" in significance.sentences[0]
    assert "better: A" in significance.sentences[-1]


def test_equal_methods_are_not_distinguishable() -> None:
    generator = np.random.default_rng(0)
    significance = judged(
        {
            name: cells(*generator.normal(50, 5, size=(7, 3)).tolist())
            for name in ("finetune", "a", "b", "c")
        }
    )
    assert significance.iman_davenport_p > 0.05
    assert significance.sentences[0].startswith(
        "No difference between the 4 methods is significant"
    )
    assert not any("Nemenyi" in text for text in significance.sentences)
    assert significance.cliques == (significance.methods,)


def test_a_method_that_always_wins_is_distinguishable() -> None:
    generator = np.random.default_rng(0)
    rows = {
        name: cells(*(generator.normal(shift, 1, size=(12, 3))).tolist())
        for name, shift in (("finetune", 0), ("a", 30), ("b", 10))
    }
    significance = judged(rows)
    assert significance.methods == ("a", "b", "finetune")
    assert significance.mean_ranks == {"a": 1.0, "b": 2.0, "finetune": 3.0}
    low, high = significance.bootstrap_difference["a"]
    assert 25 < low < high < 35
    assert any("3 of 3 pairs differ" in text for text in significance.sentences)


def test_few_data_sets_get_a_warning() -> None:
    significance = judged(
        {name: cells([1.0], [value]) for name, value in (("finetune", 1.0), ("a", 2.0), ("b", 3.0))}
    )
    assert any("only large differences can be detected" in text for text in significance.sentences)


def test_lower_can_be_better() -> None:
    rows = {
        "finetune": cells([9.0, 9.1], [8.0, 8.1]),
        "a": cells([1.0, 1.1], [2.0, 2.1]),
        "b": cells([9.0, 9.0], [8.0, 8.2]),
    }
    significance = judge(rows, ["x", "y"], {key: key for key in rows}, higher_is_better=False)
    assert significance is not None
    assert significance.methods[0] == "a"
    assert "better: a" in significance.sentences[-1]


def test_the_same_numbers_give_the_same_intervals() -> None:
    rows = {"finetune": cells([1.0, 2.0], [3.0, 5.0]), "a": cells([2.0, 2.5], [4.0, 4.5])}
    assert judged(rows) == judged(rows)
    assert judge({"a": rows["a"]}, ["x", "y"], {"a": "a"}) is None


def test_any_row_can_be_the_baseline() -> None:
    rows = {"finetune": cells([1.0, 2.0], [3.0, 5.0]), "a": cells([2.0, 2.5], [4.0, 4.5])}
    significance = judge(rows, ["x", "y"], {key: key.upper() for key in rows}, baseline="a")
    assert significance is not None
    assert set(significance.bootstrap_difference) == {"finetune"}
    assert "the difference to A" in significance.sentences[-1]
