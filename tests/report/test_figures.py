"""Figures: the numbers behind each, what is drawn of them, and that there is none without data."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from pictured import SOURCES, result, shown
from safetensors.torch import save_file
from scipy.stats import spearmanr

from farshore.errors import FarshoreError
from farshore.report.colours import SERIES
from farshore.report.figures import (
    FIGURES,
    NEEDS,
    accuracy_matrix,
    draw_all,
    draw_one,
    in_domain,
    memory,
    naive_tailored,
    orders,
    selection,
    sensitivity,
    step_time,
)
from farshore.report.figures.critical_difference import svg
from farshore.report.figures.runs import Shown, mark_selected, plain
from farshore.report.figures.runs import shown as from_store
from farshore.report.overlap import accuracy, measure, project, read_features
from farshore.report.overlay import NO_OVERLAY
from farshore.report.page import figure_data
from farshore.report.paper import PAPER
from farshore.report.table import Significance


def test_no_figure_is_drawn_without_its_data() -> None:
    assert draw_all([], PAPER) == []
    one = shown(result())
    assert {drawing.name for drawing in draw_all(one, PAPER)} == {"accuracy-matrix", "step-time"}
    for name in set(FIGURES) - {"accuracy-matrix", "step-time"}:
        with pytest.raises(FarshoreError, match=f"{name}: it needs"):
            draw_one(name, one, PAPER)
    assert set(NEEDS) == set(FIGURES)


def test_an_unknown_figure_gets_the_nearest_name() -> None:
    with pytest.raises(FarshoreError, match="did you mean 'orders'"):
        draw_one("order", [], PAPER)


def test_a_diverged_run_is_in_no_figure() -> None:
    runs = shown(
        result(), result("finetune", status="diverged"), result("cl-coral", status="diverged")
    )
    for drawing in draw_all(runs, PAPER):
        if "method" in drawing.frame:
            assert set(drawing.frame["method"]) == {"er"}, drawing.name


def test_selection_is_by_the_sources_and_never_by_the_target() -> None:
    runs = shown(result(target=0.9, source=0.5), result(target=0.1, source=0.7), trials=2)
    assert [run.selected for run in runs] == [False, True]
    assert plain(runs) == [runs[1]]


def test_selection_follows_the_rule_of_the_experiment() -> None:
    first, second = (
        result(source=0.9, settings={"learning_rate": 0.1}),
        result(source=0.5, settings={"learning_rate": 0.2}),
    )
    config = [{"planned": {"experiment": "toy", "seed": 0, "trial": trial}} for trial in (0, 1)]
    held_out = [
        result(
            target=score,
            settings={"learning_rate": rate},
            left_out=("va",),
            held_out=True,
            name="x",
        ).model_copy()
        for score, rate in ((0.2, 0.1), (0.6, 0.2))
    ]
    stored = [
        ("a", first, config[0]),
        ("b", second, config[1]),
        ("c", held_out[0], config[0]),
        ("d", held_out[1], config[1]),
    ]
    assert [run.selected for run in from_store(stored)] == [True, False]
    assert [run.selected for run in from_store(stored, rules={"toy": "leave-one-source-out"})] == [
        False,
        True,
    ]


def test_an_ablation_does_not_mix_with_its_main_table() -> None:
    main = shown(
        result(target=0.6), result("cl-coral", target=0.7), result("finetune"), experiment="main"
    )
    ablation = shown(
        result("cl-coral", target=0.2, settings={"alignment_weight": 0.0}),
        experiment="no_alignment",
    )
    scores = {run.method: run.result.target_score for run in plain([*main, *ablation])}
    assert scores["cl-coral"] == 0.7


def test_in_domain_performance_is_the_mean_over_methods_of_means_over_seeds() -> None:
    runs = shown(
        result("er", source=0.8),
        result("er", source=0.6),
        result("fdr", source=0.9),
        result("finetune", source=0.5),
        trials=1,
    )
    frame = in_domain.collect(runs).set_index("group")
    assert frame.loc["replay", "source_score"] == pytest.approx((0.7 + 0.9) / 2)
    assert frame.loc["replay", "standard_error"] == pytest.approx(np.std([0.7, 0.9]) / math.sqrt(2))
    assert frame.loc["replay", "methods"] == 2
    drawn = in_domain.draw(in_domain.collect(runs), PAPER).data[0]
    assert list(drawn.x) == pytest.approx([50, 80])
    assert drawn.marker.color == ("#cacaca", "#b5d1d6")


def test_without_an_overlay_groups_have_neutral_names_and_colours() -> None:
    runs = shown(result("er"), result("naive-cl-coral"))
    drawn = in_domain.draw(in_domain.collect(runs), NO_OVERLAY).data[0]
    assert drawn.y == ("Replay", "Naive")
    assert set(drawn.marker.line.color) <= set(SERIES)
    assert len(set(drawn.marker.color)) == 2


def test_the_paper_names_an_experiment_for_a_figure_that_has_no_data() -> None:
    with pytest.raises(
        FarshoreError, match=r"it needs .* \(reproduction/experiments/orders.yaml\)$"
    ):
        draw_one("orders", [], PAPER)
    with pytest.raises(FarshoreError, match=r"one order of the sources$"):
        draw_one("orders", [], NO_OVERLAY)


def test_adaptations_have_no_in_domain_performance_of_their_own() -> None:
    frame = in_domain.collect(shown(result("tent"), result("er"), result("finetune")))
    assert list(frame["group"]) == ["finetune", "replay"]


def test_naive_and_tailored_are_paired_if_both_ran() -> None:
    runs = shown(
        result("cl-coral", target=0.7),
        result("naive-cl-coral", target=0.4),
        result("cl-mmd"),
        result("er"),
    )
    frame = naive_tailored.collect(runs)
    assert list(frame["method"]) == ["cl-coral"]
    assert frame["difference"].iloc[0] == pytest.approx(0.3)
    naive, tailored = naive_tailored.draw(frame, PAPER).data
    assert (naive.name, naive.x[0], tailored.name, tailored.x[0]) == (
        "naive",
        pytest.approx(40),
        "tailored",
        pytest.approx(70),
    )
    assert "ahead in 1 of 1 pairs" in draw_one("naive-tailored", runs, PAPER).says


def test_memory_is_drawn_over_its_sizes_with_the_largest_as_100_percent() -> None:
    runs = shown(
        result(memory=100, target=0.8),
        result(memory=50, target=0.7),
        result(memory=25, target=0.5),
        result("finetune"),
    )
    frame = memory.collect(runs)
    assert sorted(zip(frame["memory_percent"], frame["target_score_unseen"], strict=True)) == [
        (25, 0.5),
        (50, 0.7),
        (100, 0.8),
    ]
    line = memory.draw(frame, PAPER).data[0]
    assert list(line.x) == ["100%", "50%", "25%"]
    assert list(line.y) == pytest.approx([80, 70, 50])


def test_the_step_time_is_shown_by_domain() -> None:
    frame = step_time.collect(shown(result(), result()))
    assert list(frame["milliseconds_a_step"]) == [1.0, 2.0, 3.0]
    assert list(step_time.draw(frame, PAPER).data[0].x) == [1, 2, 3]


def test_many_methods_share_the_legend_of_their_groups() -> None:
    methods = ["finetune", "agem", "upgd", "ewc", "si", "snr", "fdr", "er-ace", "er"]
    figure = step_time.draw(step_time.collect(shown(*(result(name) for name in methods))), PAPER)
    assert [line.name for line in figure.data if line.showlegend is not False] == [
        "Finetune",
        "Optimization",
        "Regularization",
        "Replay",
    ]


def varied() -> list[Shown]:
    """One seed and trial: λ over four values with β at 1, β over three with λ at 10."""
    weights = [(0.1, 1.0), (1.0, 1.0), (10.0, 1.0), (100.0, 1.0), (10.0, 0.5), (10.0, 2.0)]
    results = [
        result(
            "cl-coral",
            target=0.5 + index / 100,
            settings={"penalty_weight": of_penalty, "alignment_weight": of_alignment},
        )
        for index, (of_penalty, of_alignment) in enumerate(weights)
    ]
    return mark_selected(
        [Shown(str(index), each, "sensitivity", 0, 0) for index, each in enumerate(results)]
    )


def test_sensitivity_finds_the_runs_that_vary_only_one_weight() -> None:
    frame = sensitivity.collect(varied())
    values = {name: list(part["value"]) for name, part in frame.groupby("setting")}
    assert values == {
        "penalty_weight": [0.1, 1.0, 10.0, 100.0],
        "alignment_weight": [0.5, 1.0, 2.0],
    }
    views = draw_one("sensitivity", varied(), PAPER).views
    assert {view.label: view.figure.layout.xaxis.type for view in views} == {
        "β (alignment_weight)": None,
        "λ (penalty_weight)": "log",
    }


def test_trials_of_a_search_are_not_sensitivity() -> None:
    results = [
        result("cl-coral", settings={"penalty_weight": float(index), "learning_rate": 0.1 * index})
        for index in range(1, 6)
    ]
    assert sensitivity.collect(shown(*results, trials=5)).empty


def test_the_accuracy_matrix_has_the_unseen_target_in_its_last_corner() -> None:
    drawn = accuracy_matrix.draw(
        accuracy_matrix.collect(shown(result(source=0.8, target=0.6)))
    ).data[0]
    assert [list(row) for row in drawn.z] == [
        [80, 70, 70, None],
        [80, 80, 70, None],
        [80, 80, 80, 60],
    ]
    assert drawn.x == ("cleveland", "hungarian", "switzerland", "va (unseen)")
    assert drawn.y == ("1. cleveland", "2. hungarian", "3. switzerland")


def test_the_best_continual_method_is_shown_first() -> None:
    runs = shown(
        result("er", target=0.5), result("cl-coral", target=0.7), result("tent", target=0.9)
    )
    views = draw_one("accuracy-matrix", runs, PAPER).views
    assert [view.label for view in views] == ["★-CL-CORAL (best here)", "ER", "TENT"]


def test_whether_selection_works_is_a_correlation() -> None:
    rising = [result(source=0.1 * index, target=0.05 * index) for index in range(1, 5)]
    runs = shown(*rising, result("finetune", source=0.9, target=0.1), trials=4)
    frame = selection.collect(runs)
    assert selection.within(frame) == pytest.approx(1.0)
    expected = spearmanr(frame["source_validation_score"], frame["target_score_unseen"]).statistic
    assert selection.correlation(frame) == pytest.approx(expected)
    assert "within a method: +1.00" in draw_one("selection", runs, PAPER).views[0].note
    assert selection.correlation(frame.assign(target_score_unseen=0.5)) is None


def test_orders_are_named_and_compared() -> None:
    runs = shown(
        result(target=0.6),
        result(order=SOURCES[::-1], target=0.4),
        result(order=("hungarian", "cleveland", "switzerland"), target=0.5),
    )
    frame = orders.collect(runs)
    assert list(frame["word"]) == ["listed", "reversed", "other"]
    assert "differs by 20.0 points" in draw_one("orders", runs, PAPER).says
    names = [line.name for line in orders.draw(frame, PAPER).data]
    assert names[0] == "listed: cleveland → hungarian → switzerland"


def test_names_of_users_cannot_become_markup() -> None:
    runs = shown(result(order=("<script>alert(1)</script>", "b & c"), name="</script>"))
    text = figure_data(draw_all(runs, PAPER))
    assert "<" not in text
    assert ">" not in text
    assert "&lt;script&gt;" in json.loads(text)[0]["views"][0]["data"][0]["x"][0]


def test_a_nan_score_still_gives_valid_json() -> None:
    figures = json.loads(
        figure_data(
            draw_all(shown(result(target=math.nan), result("finetune", target=math.inf)), PAPER)
        )
    )
    assert len(figures) >= 2


def clouds(path: Path, apart: float) -> Path:
    draws = torch.Generator().manual_seed(0)
    tensors = {}
    for index, name in enumerate(("source 1 a b", "source 2 c", "target d")):
        tensors[f"{name} features"] = torch.randn(30, 4, generator=draws) + apart * index
        tensors[f"{name} labels"] = torch.arange(30) % 3
    save_file(tensors, path)
    return path


def test_distant_domains_are_distinguishable_and_others_are_not(tmp_path: Path) -> None:
    apart = measure(read_features(clouds(tmp_path / "apart", 20.0)))
    same = measure(read_features(clouds(tmp_path / "same", 0.0)))
    assert (apart.domain_accuracy, apart.domain_chance) == (1.0, pytest.approx(1 / 3))
    assert same.domain_accuracy < 0.55
    assert same.target_accuracy < 0.7
    assert "with 100% accuracy (chance 33%)" in apart.sentence()


def test_features_name_their_domains_and_damaged_ones_are_left_out(tmp_path: Path) -> None:
    saved = read_features(clouds(tmp_path / "features", 1.0))
    frame = saved.frame()
    assert list(frame["domain"].unique()) == ["a b", "c", "d"]
    assert set(frame["domain"][frame["target"]]) == {"d"}
    (tmp_path / "features").write_bytes(b"no features")
    assert read_features(tmp_path / "features") is None


def test_accuracy_balances_domains_of_unequal_size_and_needs_some_rows_of_each() -> None:
    draws = np.random.default_rng(0)
    rows = draws.normal(size=(220, 3)).astype(np.float32)
    labels = np.array([0] * 200 + [1] * 20)
    assert 0.3 < accuracy(rows, labels) < 0.7
    assert accuracy(rows[:202], labels[:202]) is None


def test_few_rows_are_projected_without_umap() -> None:
    plane, way = project(np.random.default_rng(0).normal(size=(8, 1)).astype(np.float32))
    assert way == "principal components"
    assert plane.shape == (8, 2)
    assert plane.notna().all().all()


def test_without_umap_principal_components_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    plane, way = project(np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32))
    assert (len(plane), way) == (60, "principal components")


def judged(**values: object) -> Significance:
    ranks = {"a": 1.0, "b": 2.0, "<c>": 3.0}
    fields = {
        "methods": tuple(ranks),
        "datasets": ("x", "y"),
        "alpha": 0.05,
        "mean_ranks": ranks,
        "friedman": 1.0,
        "friedman_p": 0.01,
        "iman_davenport": 1.0,
        "iman_davenport_p": 0.01,
        "critical_difference": 1.5,
        "cliques": (("a", "b"), ("b", "<c>")),
        "pairwise": (),
        "bootstrap": {},
        "bootstrap_difference": {},
        "sentences": (),
    }
    return Significance(**(fields | values))


def test_the_diagram_has_a_bar_per_clique_and_a_label_per_method() -> None:
    drawn = svg(judged())
    assert drawn.count('class="bar"') == 2
    assert drawn.count('class="stem"') == 3
    assert "critical difference 1.50" in drawn
    assert "&lt;c&gt;" in drawn
    assert "longer than this line" in svg(judged(critical_difference=9.0))
    assert svg(judged(critical_difference=None)) is None
