"""Figures: the numbers behind each, what is drawn of them, and that there is none without data."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from pictured import SOURCES, result, shown, together
from safetensors.torch import save_file
from scipy.stats import spearmanr

from farshore.errors import FarshoreError
from farshore.report.cells import SERIES
from farshore.report.figures import (
    accuracy_matrix,
    in_domain,
    scores,
    selection,
    sensitivity,
    step_time,
)
from farshore.report.figures.critical_difference import diagram, svg
from farshore.report.figures.features import accuracy, measure, project, read_features
from farshore.report.figures.shape import (
    FIGURES,
    comparable,
    draw_all,
    draw_one,
    error_bars,
    estimates,
    finished,
)
from farshore.report.page import figure_data
from farshore.results.data_sets import Significance
from farshore.results.summary import Unit, rank
from farshore.runs.store.store import FEATURES

NOWHERE = Path("nowhere")
BOTH = ("heart-hospitals", "rotated-digits")


def done(frame: pd.DataFrame) -> pd.DataFrame:
    """The finished runs, as the figures receive them."""
    return finished(frame, NOWHERE)


def test_no_figure_is_drawn_without_its_data() -> None:
    assert draw_all(shown(), NOWHERE) == []
    one = shown(result())
    drawn = {drawing.name for drawing in draw_all(one, NOWHERE)}
    assert drawn == {"accuracy-matrix", "step-time"}
    for name in set(FIGURES) - drawn:
        needs = FIGURES[name].needs
        with pytest.raises(FarshoreError, match=f"no data for the figure {name}: it needs {needs}"):
            draw_one(name, one, NOWHERE)


def main(runs):
    """The main figure of these runs."""
    return scores.drawing(runs, rank(runs), "conditions")


def test_the_axis_of_the_main_figure_holds_every_interval() -> None:
    frame = shown(*(result(target=score, name=f"t{score}") for score in (0.3, 0.5, 0.7)))
    view = main(frame).views[0].figure
    whisker = next(each for each in view.data if each.error_x.array is not None)
    (mean,), (above,), (below,) = whisker.x, whisker.error_x.array, whisker.error_x.arrayminus
    low, high = view.layout.xaxis.range
    assert below == above > 20
    assert low < mean - below
    assert mean + above < high


def test_an_unknown_figure_gets_the_nearest_name() -> None:
    with pytest.raises(FarshoreError, match="did you mean 'orders'"):
        draw_one("order", shown(), NOWHERE)


def test_a_diverged_run_is_in_no_figure() -> None:
    runs = shown(
        result(), result("finetune", status="diverged"), result("cl-coral", status="diverged")
    )
    for drawing in [*draw_all(runs, NOWHERE), main(runs)]:
        assert set(drawing.frame["method"]) == {"er"}, drawing.name


def test_only_the_selected_trials_are_compared() -> None:
    runs = shown(result(target=0.9, source=0.5), result(target=0.1, source=0.7), trials=2)
    assert list(comparable(done(runs))["score"]) == [0.1]


def test_the_listed_order_is_compared_then_the_conditions_with_most_methods() -> None:
    other = SOURCES[::-1]
    runs = shown(
        result("er", order=other),
        result("finetune", order=other),
        result("er", memory=100),
        result("er", memory=50),
        result("finetune", memory=50),
    )
    compared = comparable(done(runs))
    assert set(compared["sources"]) == {" → ".join(SOURCES)}
    assert set(compared["memory"]) == {50}
    assert set(comparable(done(runs), "memory")["memory"]) == {50, 100}


def test_an_ablation_does_not_mix_with_its_main_table() -> None:
    main = shown(
        result(target=0.6), result("cl-coral", target=0.7), result("finetune"), experiment="main"
    )
    ablation = shown(
        result("cl-coral", target=0.2, settings={"alignment_weight": 0.0}),
        experiment="no_alignment",
    )
    for runs in (together(main, ablation), together(ablation, main)):
        compared = comparable(done(runs)).set_index("row")
        assert compared.loc["cl-coral", "score"] == 0.7


def test_means_and_errors_are_over_units_and_need_three() -> None:
    values = [0.5, 0.7, 0.9]
    runs = done(shown(*(result(target=value) for value in values), result("finetune"), trials=1))
    frame = estimates(runs, ["row"], "target_score_unseen").set_index("method")
    assert frame.loc["er", "target_score_unseen"] == pytest.approx(0.7)
    expected = np.std(values, ddof=1) / math.sqrt(3)
    assert frame.loc["er", "standard_error"] == pytest.approx(expected)
    assert math.isnan(frame.loc["finetune", "standard_error"])
    assert error_bars(frame) == "Error bars: the standard error of the mean over 3 seeds."
    assert error_bars(frame.loc[["finetune"]]) == ""
    more = pd.concat([frame, frame.assign(units=5)])
    assert error_bars(more) == "Error bars: the standard error of the mean over 3 to 5 seeds."


def test_a_place_with_more_seeds_does_not_count_more() -> None:
    runs = shown(
        *(result(target=0.2, name="a") for _ in range(3)),
        result(target=0.8, name="b"),
    )
    frame = estimates(done(runs), ["row"], "target_score_unseen", Unit.TARGET)
    assert frame["target_score_unseen"].iloc[0] == pytest.approx(0.5)
    assert frame["units"].iloc[0] == 2


def test_in_domain_performance_is_the_mean_over_the_methods_of_a_group() -> None:
    runs = shown(
        *(result("er", source=source) for source in (0.8, 0.6, 0.7)),
        *(result("fdr", source=source) for source in (0.9, 0.9, 0.6)),
        *(result("finetune", source=source) for source in (0.5, 0.5, 0.5)),
    )
    drawing = draw_one("in-domain", runs, NOWHERE)
    frame = drawing.frame.set_index("group")
    seeds = [0.85, 0.75, 0.65]
    assert frame.loc["replay", "source_score"] == pytest.approx(0.75)
    assert frame.loc["replay", "standard_error"] == pytest.approx(np.std(seeds, ddof=1) / 3**0.5)
    assert frame.loc["replay", "methods"] == 2
    (view,) = drawing.views
    assert view.note == "Error bars: the standard error of the mean over 3 seeds."
    (bars,) = view.figure.data
    assert bars.y == ("finetune", "replay")
    assert list(bars.x) == pytest.approx([50, 75])
    assert set(bars.marker.line.color) <= set(SERIES)
    assert len(set(bars.marker.color)) == 2


def test_adaptations_have_no_in_domain_performance_of_their_own() -> None:
    frame = in_domain.collect(done(shown(result("tent"), result("er"), result("finetune"))))
    assert list(frame["group"]) == ["finetune", "replay"]


def test_naive_and_tailored_are_paired_if_both_ran() -> None:
    runs = shown(
        result("cl-coral", target=0.7),
        result("cl-coral", target=0.1, order=SOURCES[::-1]),
        result("naive-cl-coral", target=0.4),
        result("cl-mmd"),
        result("er"),
    )
    drawing = draw_one("naive-tailored", runs, NOWHERE)
    assert list(drawing.frame["method"]) == ["cl-coral"]
    assert drawing.frame["difference"].iloc[0] == pytest.approx(0.3)
    naive, tailored = drawing.views[0].figure.data
    assert (naive.name, naive.x[0]) == ("naive", pytest.approx(40))
    assert (tailored.name, tailored.x[0]) == ("tailored", pytest.approx(70))
    assert "ahead in 1 of 1 pairs" in drawing.says


def test_over_several_targets_naive_and_tailored_are_drawn_in_the_mean_first() -> None:
    scored = [(0.0, "a"), (0.1, "b"), (0.2, "c")]
    runs = shown(
        *(result("cl-coral", target=0.5, name=name) for name in "abc"),
        *(result("naive-cl-coral", target=score, name=name) for score, name in scored),
        result("cl-mmd", name="a"),
        result("naive-cl-mmd", name="a"),
    )
    mean, *each = draw_one("naive-tailored", runs, NOWHERE).views
    assert mean.label == "mean over targets"
    assert mean.note == "Error bars: the standard error of the mean over 3 targets."
    assert [bars.y for bars in mean.figure.data] == [("cl-coral",), ("cl-coral",)]
    assert mean.figure.data[0].x[0] == pytest.approx(10)
    assert [view.label for view in each] == [f"heart-hospitals, target {name}" for name in "abc"]


def test_memory_is_drawn_over_its_sizes_with_the_largest_as_100_percent() -> None:
    runs = shown(
        result(memory=100, target=0.8),
        result(memory=50, target=0.7),
        result(memory=25, target=0.5),
        result("finetune"),
    )
    drawing = draw_one("memory", runs, NOWHERE)
    columns = ["memory_percent", "memory_rows", "target_score_unseen"]
    numbers = drawing.frame[columns].to_numpy().tolist()
    assert sorted(numbers) == [[25, 25, 0.5], [50, 50, 0.7], [100, 100, 0.8]]
    (line,) = drawing.views[0].figure.data
    assert list(line.x) == ["100%", "50%", "25%"]
    assert list(line.y) == pytest.approx([80, 70, 50])


def test_memory_over_several_data_sets_shows_the_mean_of_what_ran_on_all() -> None:
    runs = shown(
        *(result(benchmark=name, memory=size) for name in BOTH for size in (100, 50)),
        *(result("fdr", memory=size) for size in (100, 50)),
    )
    mean, *each = draw_one("memory", runs, NOWHERE).views
    assert mean.label == "mean over data sets"
    assert [line.name for line in mean.figure.data] == ["er"]
    assert [view.label for view in each] == list(BOTH)


def test_the_step_time_is_shown_by_domain() -> None:
    frame = step_time.collect(done(shown(result(), result())))
    assert list(frame["milliseconds_a_step"]) == [1.0, 2.0, 3.0]
    assert list(step_time.draw(frame).data[0].x) == [1, 2, 3]


def test_many_methods_share_the_legend_of_their_groups() -> None:
    methods = ["finetune", "agem", "upgd", "ewc", "si", "snr", "fdr", "er-ace", "er"]
    figure = step_time.draw(step_time.collect(done(shown(*map(result, methods)))))
    assert [line.name for line in figure.data if line.showlegend is not False] == [
        "finetune",
        "optimization",
        "regularization",
        "replay",
    ]


def varied(order: tuple[str, ...] = SOURCES, lowest: float = 0.5) -> pd.DataFrame:
    """One seed and trial: λ over four values with β at 1, β over three with λ at 10."""
    weights = [(0.1, 1.0), (1.0, 1.0), (10.0, 1.0), (100.0, 1.0), (10.0, 0.5), (10.0, 2.0)]
    results = [
        result(
            "cl-coral",
            target=lowest + index / 100,
            order=order,
            settings={"penalty_weight": of_penalty, "alignment_weight": of_alignment},
        )
        for index, (of_penalty, of_alignment) in enumerate(weights)
    ]
    return shown(*results).assign(seed=0)


def test_sensitivity_finds_the_runs_that_vary_only_one_weight() -> None:
    drawing = draw_one("sensitivity", varied(), NOWHERE)
    values = {name: list(part["value"]) for name, part in drawing.frame.groupby("setting")}
    assert values == {
        "penalty_weight": [0.1, 1.0, 10.0, 100.0],
        "alignment_weight": [1.0, 0.5, 2.0],
    }
    assert {view.label: view.figure.layout.xaxis.type for view in drawing.views} == {
        "β (alignment_weight)": None,
        "λ (penalty_weight)": "log",
    }
    (line,) = drawing.views[1].figure.data
    assert list(line.x) == [0.5, 1.0, 2.0]
    assert list(line.y) == pytest.approx([54, 52, 55])


def test_sensitivity_in_two_orders_is_their_mean() -> None:
    both = together(varied(), varied(SOURCES[::-1], 0.7).assign(experiment="again"))
    (_, second) = draw_one("sensitivity", both, NOWHERE).views
    assert list(second.figure.data[0].y) == pytest.approx([64, 62, 65])


def test_trials_of_a_search_are_not_sensitivity() -> None:
    results = [
        result("cl-coral", settings={"penalty_weight": float(index), "learning_rate": 0.1 * index})
        for index in range(1, 6)
    ]
    assert sensitivity.collect(sensitivity.varied(done(shown(*results, trials=5)))).empty


def test_the_accuracy_matrix_has_the_unseen_target_in_its_last_corner() -> None:
    frame = accuracy_matrix.collect(done(shown(result(source=0.8, target=0.6))))
    (drawn,) = accuracy_matrix.draw(frame).data
    assert [list(row) for row in drawn.z] == [
        [80, 70, 70, None],
        [80, 80, 70, None],
        [80, 80, 80, 60],
    ]
    assert drawn.x == ("cleveland", "hungarian", "switzerland", "va (unseen)")
    assert drawn.y == ("1. cleveland", "2. hungarian", "3. switzerland")


def test_the_leader_of_the_ranking_is_shown_first() -> None:
    runs = shown(
        result("er", target=0.5), result("cl-coral", target=0.7), result("tent", target=0.9)
    )
    views = draw_one("accuracy-matrix", runs, NOWHERE).views
    assert [view.label for view in views] == ["cl-coral (best here)", "er", "tent"]


def test_a_method_that_lacks_a_score_is_not_best_here() -> None:
    runs = shown(
        *(result("er", target=target) for target in (0.5, 0.6)),
        result("cl-coral", target=0.9),
        result("cl-coral", target=0.9),
    )
    runs.loc[3, ["status", "score"]] = ["diverged", None]
    labels = [view.label for view in draw_one("accuracy-matrix", runs, NOWHERE).views]
    assert labels == ["er (best here)", "cl-coral"]


def test_whether_selection_works_is_a_correlation() -> None:
    rising = [result(source=0.1 * index, target=0.05 * index) for index in range(1, 5)]
    runs = shown(*rising, result("finetune", source=0.9, target=0.1), trials=4)
    frame = selection.collect(done(runs))
    assert selection.within(frame) == pytest.approx(1.0)
    expected = spearmanr(frame["source_validation_score"], frame["target_score_unseen"]).statistic
    assert selection.correlation(frame) == pytest.approx(expected)
    assert "within a method: +1.00" in draw_one("selection", runs, NOWHERE).views[0].note
    assert selection.correlation(frame.assign(target_score_unseen=0.5)) is None


def test_a_trial_of_two_experiments_is_one_point() -> None:
    trials = [result(source=0.1 * index, target=0.05 * index) for index in range(1, 5)]
    runs = shown(*trials, trials=4)
    again = runs.assign(experiment="again", selected=[True, False, False, False])
    frame = selection.collect(done(together(runs, again)))
    assert list(frame["trial"]) == [0, 1, 2, 3]
    assert list(frame["selected"]) == [True, False, False, True]


def test_orders_are_named_and_compared() -> None:
    runs = shown(
        result(order=SOURCES[::-1], target=0.4),
        result(order=("hungarian", "cleveland", "switzerland"), target=0.5),
        result(target=0.6),
        result("finetune"),
    )
    drawing = draw_one("orders", runs, NOWHERE)
    assert list(drawing.frame["word"]) == ["listed", "reversed", "other"]
    assert "differs by 20.0 points" in drawing.says
    names = [line.name for line in drawing.views[0].figure.data]
    assert names[0] == "listed: cleveland → hungarian → switzerland"
    assert drawing.views[0].figure.data[0].y == ("er",)


def hard(method: str, target: float, **values: object) -> object:
    """A result in macro F1 on ten rows, eight of them of one of two classes."""
    scores = {"balanced_accuracy": target}
    made = result(method, target=target, confusion=[[8, 0], [2, 0]], scores=scores, **values)
    return made.model_copy(update={"metric": "macro_f1"})


def test_the_main_figure_is_the_ranking() -> None:
    scored = [("a", 0.5), ("b", 0.6), ("c", 0.7)]
    runs = shown(
        *(hard("er", score, name=name) for name, score in scored),
        *(hard("finetune", 0.5, name=name) for name in "abc"),
        *(hard("joint", 0.9, name=name) for name in "abc"),
    )
    ranking = rank(runs)
    drawing = scores.drawing(runs, ranking, "conditions")
    er = drawing.frame[drawing.frame["method"] == "er"]
    assert set(zip(er["target"], er["score"], strict=True)) == set(scored)
    estimate = ranking.find("er").estimate
    assert set(er["low"]) == {estimate.low}
    _, mark, _, other = drawing.views[0].figure.data
    assert mark.x[0] - mark.error_x.arrayminus[0] == pytest.approx(100 * estimate.low)
    assert mark.x[0] + mark.error_x.array[0] == pytest.approx(100 * estimate.high)
    assert other.marker.symbol == "x-open", "finetune does no better than guessing"
    assert "intervals of the mean over 3 targets" in drawing.says
    assert "always the target's own most frequent class, 44.4%" in drawing.says  # 2 · 0.8 / 1.8 / 2
    assert "all sources at once, 90.0%" in drawing.says
    assert drawing.shows == "conditions"


def test_what_guessing_scores_is_drawn_for_the_main_metric_only() -> None:
    runs = shown(hard("er", 0.5), hard("finetune", 0.4))
    assert "most frequent class" not in scores.drawing(runs, rank(runs, "accuracy"), "").says
    two = together(runs, shown(hard("er", 0.5, benchmark="rotated-digits")))
    assert scores.reference_lines(two, rank(two)) == {}


def test_of_seeds_alone_the_main_figure_shows_each_one() -> None:
    runs = shown(*(result(target=target) for target in (0.4, 0.6)))
    drawing = scores.drawing(runs, rank(runs), "")
    assert list(drawing.frame["seed"]) == [0, 1]
    assert list(drawing.frame["score"]) == [0.4, 0.6]
    assert "one seed" in drawing.says
    assert "interval" not in drawing.says, "two seeds have none"


def test_names_of_users_cannot_become_markup() -> None:
    runs = shown(result(order=("<script>alert(1)</script>", "b & c"), name="</script>"))
    drawings = [main(runs), *draw_all(runs, NOWHERE)]
    text = figure_data(drawings)
    assert "<" not in text
    assert ">" not in text
    matrix = next(each for each in json.loads(text) if each["name"] == "accuracy-matrix")
    assert "&lt;script&gt;" in matrix["views"][0]["data"][0]["x"][0]


def test_a_nan_score_still_gives_valid_json() -> None:
    runs = shown(result(target=math.nan), result("finetune", target=math.inf))
    assert len(json.loads(figure_data(draw_all(runs, NOWHERE)))) >= 2


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


def test_the_features_of_the_selected_run_are_drawn(tmp_path: Path) -> None:
    runs = shown(result(source=0.5), result(source=0.7), result("finetune"), trials=2)
    for name in runs["run"]:
        (tmp_path / name).mkdir()
        clouds(tmp_path / name / FEATURES, 1.0 if name == "toy 1" else 20.0)
    (tmp_path / "toy 2" / FEATURES).write_bytes(b"no features")
    drawing = draw_one("features", runs, tmp_path)
    assert [(view.of, view.label) for view in drawing.views] == [("heart-hospitals", "er")]
    assert "with 100% accuracy" not in drawing.views[0].note
    assert set(drawing.frame["method"]) == {"er"}


def judged(**values: object) -> Significance:
    fields = {
        "datasets": ("x", "y"),
        "mean_ranks": {"a": 1.0, "b": 2.0, "<c>": 3.0},
        "friedman": None,
        "critical": 1.5,
        "cliques": (("a", "b"), ("b", "<c>")),
        "pairs": (),
        "sentences": (),
    }
    return Significance(**(fields | values))


def test_the_diagram_has_a_bar_per_clique_and_a_label_per_method() -> None:
    frame, drawn = diagram(judged())
    assert frame.to_numpy().tolist() == [["a", 1.0], ["b", 2.0], ["<c>", 3.0]]
    assert drawn.count('class="bar"') == 2
    assert drawn.count('class="stem"') == 3
    assert "critical difference 1.50" in drawn
    assert "&lt;c&gt;" in drawn
    assert "longer than this line" in svg(judged(critical=9.0))


@pytest.mark.parametrize("test", [None, judged(critical=None)])
def test_there_is_no_diagram_without_a_test(test: Significance | None) -> None:
    with pytest.raises(FarshoreError, match="critical-difference: it needs ranks of"):
        diagram(test)
