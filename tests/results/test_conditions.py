"""The line below a verdict says what was measured, and what guessing scores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from framed import frame_of_runs, made_run

from farshore.results.describe import conditions

TWENTY = SimpleNamespace(steps=20, run=SimpleNamespace(left_out=()))


def run(method: str = "er", **values: Any) -> dict[str, Any]:
    usual = {"guess": 0.625, "classes": 2, "result": TWENTY, "order": "c → a → b"}
    return made_run(method, 0.8, **{**usual, **values})


def test_one_order_is_named_as_it_was_learned() -> None:
    runs = [run(seed=seed) for seed in range(3)]
    assert conditions(frame_of_runs(runs)) == (
        "toy, accuracy; sources in the order c → a → b, unseen target t; 2 classes, always "
        "predicting the most frequent one scores 62.5%; 3 seeds, 1 order, 20 steps per domain."
    )


def test_several_orders_name_the_sources_alone() -> None:
    orders = ("c → a → b", "b → c → a")
    runs = [run(order=order, seed=seed) for order in orders for seed in range(2)]
    assert "; sources a, b, c, unseen target t; " in conditions(frame_of_runs(runs))
    assert "; 2 seeds, 2 orders, 20 steps per domain." in conditions(frame_of_runs(runs))


def test_several_targets_have_several_levels_of_guessing() -> None:
    runs = [
        run(target=target, guess=guess, order=order)
        for target, guess in (("x", 0.5), ("y", 0.875))
        for order in ("a → b", "b → a")
    ]
    assert conditions(frame_of_runs(runs)) == (
        "toy, accuracy; unseen targets x, y, each learned from the other domains; 2 classes, "
        "always predicting the most frequent one scores 50.0 to 87.5%; 1 seed, 2 orders per "
        "target, 20 steps per domain."
    )


def test_targets_in_chronological_order_are_learned_from_what_came_before() -> None:
    early = SimpleNamespace(steps=20, run=SimpleNamespace(left_out=("y",)))
    runs = [run(target="x", order="a → b", result=early), run(target="y", order="a → b → x")]
    assert "; unseen targets x, y, each learned from the domains before it, in chron" in conditions(
        frame_of_runs(runs)
    )


def test_guessing_is_told_in_the_metric_of_the_scores() -> None:
    """Macro F1 of the most frequent class is far below its share of the rows."""
    text = conditions(frame_of_runs([run(metric="macro_f1", macro_f1=0.8, guess=0.081)]))
    assert text.startswith("toy, macro F1; ")
    assert "the most frequent one scores 8.1%" in text


def test_data_sets_are_named() -> None:
    runs = [run(benchmark=f"data {index}", seed=seed) for index in range(3) for seed in range(2)]
    assert conditions(frame_of_runs(runs)) == "3 data sets (data 0, data 1 and data 2); 2 seeds."
    many = [run(benchmark=f"data {index}") for index in range(7)]
    assert "data 3 and 3 more); 1 seed." in conditions(frame_of_runs(many))


def test_methods_that_learn_all_sources_at_once_do_not_say_the_order() -> None:
    runs = [run("joint", order="a → b → c"), run("er")]
    assert "sources in the order c → a → b" in conditions(frame_of_runs(runs))


def test_different_steps_are_not_summed_up() -> None:
    runs = [run(seed=0), run(seed=1, result=SimpleNamespace(**{**vars(TWENTY), "steps": 30}))]
    assert conditions(frame_of_runs(runs)).endswith("2 seeds, 1 order.")


def test_many_domains_are_counted() -> None:
    order = " → ".join(f"site {number}" for number in range(12, 0, -1))
    runs = [run(order=order), run(order=" → ".join(reversed(order.split(" → "))))]
    text = conditions(frame_of_runs(runs))
    assert (
        "sources site 1, site 2, site 3, site 4, site 5, site 6, site 7 and 5 more, unseen" in text
    )


def test_without_a_score_there_is_nothing_to_tell() -> None:
    runs = [made_run("er", None)]
    assert conditions(frame_of_runs(runs)) == "No run has a score on the target."
