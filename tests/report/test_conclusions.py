"""What the sentences claim, and what they refuse to."""

from __future__ import annotations

import numpy as np
import pytest
from papers_own import printed_table

from farshore.report.conclusions import judge
from farshore.report.table import Cell, Significance


def cells(*seeds: list[float]) -> list[Cell]:
    return [Cell(float(np.mean(values)), values=tuple(values)) for values in seeds]


def judged(rows: dict[str, list[Cell]]) -> Significance:
    found = judge(
        rows,
        [f"set {n}" for n in range(len(next(iter(rows.values()))))],
        {key: key.upper() for key in rows},
    )
    assert found is not None
    return found


def test_the_papers_main_table() -> None:
    found = printed_table("main").significance
    assert found is not None
    assert found.methods[0] == "cl-coral"
    assert found.friedman_p < 0.001
    assert found.critical_difference == pytest.approx(10.8, abs=0.1)
    text = " ".join(found.sentences)
    assert "distinguishable from SARL, SI, Finetune, UPGD, but not from" in text
    assert "no corrected p can be below" in text
    assert "no seeds behind it" in text
    assert len(found.pairwise) == 18 * 17 / 2
    assert all(set(clique) <= set(found.methods) for clique in found.cliques)
    assert "urm" not in found.methods


def test_one_data_set_allows_no_general_claim() -> None:
    found = judged({"finetune": cells([1.0, 2.0]), "a": cells([5.0, 6.0]), "b": cells([1.0, 3.0])})
    assert found.friedman is None
    assert found.critical_difference is None
    assert found.pairwise == ()
    assert "cannot be tested" in found.sentences[0]
    assert "better: A" in found.sentences[-1]


def test_equal_methods_are_not_distinguishable() -> None:
    generator = np.random.default_rng(0)
    found = judged(
        {
            name: cells(*generator.normal(50, 5, size=(7, 3)).tolist())
            for name in ("finetune", "a", "b", "c")
        }
    )
    assert found.iman_davenport_p > 0.05
    assert found.sentences[0].startswith("No difference between the 4 methods is significant")
    assert not any("Nemenyi" in text for text in found.sentences)
    assert found.cliques == (found.methods,)


def test_a_method_that_always_wins_is_distinguishable() -> None:
    generator = np.random.default_rng(0)
    rows = {
        name: cells(*(generator.normal(shift, 1, size=(12, 3))).tolist())
        for name, shift in (("finetune", 0), ("a", 30), ("b", 10))
    }
    found = judged(rows)
    assert found.methods == ("a", "b", "finetune")
    assert found.mean_ranks == {"a": 1.0, "b": 2.0, "finetune": 3.0}
    low, high = found.bootstrap_difference["a"]
    assert 25 < low < high < 35
    assert any("3 of 3 pairs differ" in text for text in found.sentences)


def test_few_data_sets_get_a_warning() -> None:
    found = judged(
        {name: cells([1.0], [value]) for name, value in (("finetune", 1.0), ("a", 2.0), ("b", 3.0))}
    )
    assert any("only large differences can be detected" in text for text in found.sentences)


def test_fewer_is_better_where_it_is() -> None:
    rows = {
        "finetune": cells([9.0, 9.1], [8.0, 8.1]),
        "a": cells([1.0, 1.1], [2.0, 2.1]),
        "b": cells([9.0, 9.0], [8.0, 8.2]),
    }
    found = judge(rows, ["x", "y"], {key: key for key in rows}, higher_is_better=False)
    assert found is not None
    assert found.methods[0] == "a"
    assert "better: a" in found.sentences[-1]


def test_the_same_numbers_give_the_same_intervals() -> None:
    rows = {"finetune": cells([1.0, 2.0], [3.0, 5.0]), "a": cells([2.0, 2.5], [4.0, 4.5])}
    assert judged(rows) == judged(rows)
    assert judge({"a": rows["a"]}, ["x", "y"], {"a": "a"}) is None


def test_any_row_can_be_the_baseline() -> None:
    rows = {"finetune": cells([1.0, 2.0], [3.0, 5.0]), "a": cells([2.0, 2.5], [4.0, 4.5])}
    found = judge(rows, ["x", "y"], {key: key.upper() for key in rows}, baseline="a")
    assert found is not None
    assert set(found.bootstrap_difference) == {"finetune"}
    assert "the difference to A" in found.sentences[-1]
