"""What docs/reproduction.md and the pages behind it say in words is what their tables show.

Where new runs change a fact, the sentence in reproduction-head.md or heads/ must change, too.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest

from farshore.methods import default_method
from reproduction.arithmetic import (
    Scores,
    Unit,
    above_zero,
    by_trial,
    mean,
    means,
    pooled,
    scores,
    selected,
    summary_of,
    variance,
    whole,
)
from reproduction.arithmetic import difference as paired
from reproduction.compared import BASELINES, BENCHMARKS, PENALISED, REPLAY, TAILORED, group
from reproduction.finished_runs import AS_IT_IS, SCORE, rows_of, table
from reproduction.pages import recommended
from reproduction.paper.scores import near, papers_scores
from reproduction.sections import (
    claims,
    covertype,
    invariance,
    paper_claims,
    rotated_mnist,
    sensitivity,
)
from reproduction.sections.covertype import (
    LEARNED,
    READINGS,
    SOURCES,
    close,
    close_on_target,
    in_order,
)
from reproduction.sections.search import ABLATIONS

OPEN = {"sarl", "shot++"}  # have not run in enough orders of rotated-mnist
ABOUT_EIGHT = {
    "finetune",
    "ewc",
    "naive-cl-vrex",
    "naive-cl-fishr",
    "naive-cl-coral",
    "naive-cl-mmd",
}


def all_orders(benchmark: str) -> dict[str, Scores]:
    return scores(rows_of("all_orders", benchmark))


def last_source(order: str) -> str:
    return order.split(",")[-1]


def test_the_papers_lead_on_covertype_is_larger() -> None:
    paper = {name: score for name, (score, _) in papers_scores("covertype", "main").items()}
    by_method = all_orders("covertype")
    ours = paired(pooled(by_method, TAILORED), pooled(by_method, REPLAY))
    assert paper_claims.lead(paper, REPLAY) > ours.mean


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_where_our_intervals_have_what_the_paper_gains_by_alignment_and_priors(
    benchmark: str,
) -> None:
    usual = all_orders(benchmark)
    settings = ({"alignment_weight": 0.0}, {"priors": "dynamic"})
    for ablation, changed, methods in zip(ABLATIONS, settings, (TAILORED, PENALISED), strict=True):
        frame = rows_of("orders_ablated", benchmark, json.dumps(changed))
        gain = paired(pooled(usual, methods), pooled(scores(frame), methods))
        assert gain.low is not None
        assert gain.high is not None
        inside = gain.low <= paper_claims.papers_gain(ablation, benchmark) <= gain.high
        assert inside == (benchmark == "rotated-mnist")


def test_what_the_first_page_says_about_the_references() -> None:
    found = invariance.measured("covertype")
    floor = invariance.constant("covertype", found)
    for name in ("er", "er-kd", "der++", *TAILORED):
        assert floor < mean(found[name]) < floor + 8, name
    assert mean(found["joint"]) < mean(found["er"])
    by_method = {name: all_orders("rotated-mnist")[name] for name in (*TAILORED, "er", "der++")}
    averages = [mean(runs) for runs in by_method.values()]
    for runs in by_method.values():
        lasts = summary_of(runs).values.values()
        assert max(lasts) - min(lasts) > max(averages) - min(averages)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_on_the_sources_replay_alone_is_level_with_the_tailored_methods(benchmark: str) -> None:
    by_method = scores(rows_of("all_orders", benchmark), SOURCES)
    for name in ("er", "der++"):
        assert abs(paired(pooled(by_method, TAILORED), by_method[name]).mean) < 1


def test_on_rotated_mnist_the_variance_lies_between_last_sources() -> None:
    by_method = all_orders("rotated-mnist")
    compared = [name for name in (*TAILORED, *REPLAY, "finetune", "er") if name not in OPEN]
    shares = [variance(by_method[name])[Unit.LAST_SOURCE] for name in compared]
    assert sum(share > 0.85 for share in shares) >= len(shares) - 2
    assert all(Unit.SEED not in variance(by_method[name]) for name in compared)
    # Computed by hand in a review of these tables.
    known = {"finetune": 0.99, "er": 0.90, "cl-coral": 0.92, "fdr": 0.89}
    for name, share in known.items():
        assert variance(by_method[name])[Unit.LAST_SOURCE] == pytest.approx(share, abs=0.005)


def test_the_page_of_the_recommended_method_says_what_its_table_says() -> None:
    """A second computation, from the table alone."""
    frame = table("auto").dropna(subset=[SCORE])
    slow = frame["settings"].map(json.loads).map(lambda each: each.get("teacher") == "ema")
    frame = frame.assign(method=frame["method"].where(~slow, recommended.SLOW))
    for name in recommended.benchmarks():
        rows = frame[frame["benchmark"] == name]
        unit = "target" if rows["target"].nunique() > 1 else "last"
        rows = rows.assign(last=rows["order"].str.split(",").str[-1])
        if rows[rows["method"] == "auto"][unit].nunique() == 1:
            unit = "run_seed"
        by_unit = rows.groupby(["method", "target", "last", "order", "run_seed"])[SCORE].mean()
        averages = 100 * by_unit.groupby(["method", unit]).mean().groupby("method").mean()
        members = averages[[each for each in recommended.MEMBERS if each in averages]]
        found = recommended.regret(name).mean
        assert found == pytest.approx(averages["auto"] - members.max(), abs=0.01), name
        gain = recommended.gain(name).mean
        assert gain == pytest.approx(averages["auto"] - averages["er"], abs=0.01)
    regrets = [recommended.regret(name).mean for name in recommended.benchmarks()]
    gains = [recommended.gain(name).mean for name in recommended.benchmarks()]
    reached = sum(regrets) / len(regrets) >= -1 and min(regrets) >= -3 and min(gains) >= -2
    assert recommended.holds() == reached
    whole = {name: recommended.measured(name) for name in recommended.BENCHMARKS}
    common = set.intersection(*map(set, whole.values())) & {*recommended.MEMBERS, "er-kd", "cl-mix"}
    rank = dict.fromkeys(common, 0.0)
    for by_method in whole.values():
        average = {name: mean(by_method[name]) for name in common | {"auto"}}
        for name in common:
            rank[name] += sum(other > average[name] for other in average.values())
    assert recommended.leader() == min(rank, key=lambda name: rank[name])
    assert default_method() == ("auto" if reached else recommended.leader())


def test_the_page_of_choices_says_what_the_table_says() -> None:
    def ahead(first: str, second: str, names: Iterable[str]) -> list[str]:
        return [
            name
            for name in names
            if mean(recommended.measured(name)[first]) > mean(recommended.measured(name)[second])
        ]

    tables = recommended.BENCHMARKS[:6]
    assert {"elec2", "covertype-natural", "covertype-zones"} == set(
        ahead(recommended.SLOW, "slda", recommended.BENCHMARKS)
    ) & set(ahead("auto", "slda", recommended.BENCHMARKS))
    assert next(iter(recommended.ranks())) == "auto"
    for by_method in map(recommended.measured, tables):
        assert mean(by_method["trees"]) - mean(by_method["er"]) < 1


def test_nor_do_they_under_the_search_on_covertype() -> None:
    usual = whole(rows_of("paper_protocol", "covertype"))
    frame = rows_of("protocol_ablated", "covertype")
    parts = frame["settings"].map(json.loads)
    for ablation in ABLATIONS:
        changed = whole(frame[[each.get(ablation.setting) == ablation.value for each in parts]])
        methods = sorted(set(changed["method"]))
        before, after = (
            pooled({name: by_trial(runs, name) for name in methods}, methods)
            for runs in (usual, changed)
        )
        assert not paired(before, after).certain
        if ablation.setting == "alignment_weight":
            fishr = paired(by_trial(changed, "cl-fishr"), by_trial(usual, "cl-fishr"))
            assert above_zero(fishr)
            chosen = [means(selected(runs))["cl-fishr"][0] for runs in (usual, changed)]
            assert chosen[0] == pytest.approx(chosen[1], abs=1)


def test_which_methods_have_not_run_in_enough_orders() -> None:
    by_method = all_orders("rotated-mnist")
    wanted = {*TAILORED, *BASELINES, *group("naive"), *group("adaptation"), "finetune"}
    assert {name for name in wanted if len(by_method.get(name, {})) < 24} == OPEN


def test_the_fitted_order_and_the_last_source() -> None:
    paper = rotated_mnist.papers_column()["finetune"]
    plain = all_orders("rotated-mnist")["finetune"]
    distance = {place[3]: abs(score - paper[0]) for place, score in plain.items()}
    closest = sorted(distance, key=lambda order: distance[order])[:5]
    assert {order.split()[-1] for order in closest} == {"15"}
    assert "0 30 45 15" in closest
    frame = rows_of("orders_ablated", "rotated-mnist")
    other = frame[(frame["target"] == "0") & (frame["method"] == "finetune")]
    theirs = papers_scores("rotated-mnist", "other_target")["finetune"]
    apart = (100 * other[SCORE] - theirs[0]).abs().groupby(other["order"].map(last_source))
    assert apart.min().idxmin() == "45"
    assert not any(near(100 * score, theirs) for score in other[SCORE])
    assert apart.min().drop("45").min() > apart.max()["45"]


def test_which_last_source_fits_which_methods() -> None:
    frame = rows_of("all_orders", "rotated-mnist")
    ends = frame["order"].map(last_source)
    paper = rotated_mnist.papers_column()
    fits = {
        end: {
            name
            for name, (score, _) in means(frame[ends == end]).items()
            if name in paper and near(score, paper[name])
        }
        for end in ("15", "30")
    }
    without_replay = ["finetune", *group("optimization"), *group("regularization")]
    assert set(without_replay) <= fits["15"]
    replay = [name for name in (*TAILORED, *REPLAY) if name not in OPEN]
    assert sum(name in fits["30"] for name in replay) > len(replay) / 2
    assert "fdr" in fits["30"]
    by_end = {end: means(frame[ends == end])["cope"][0] for end in ("30", "45")}
    assert by_end["30"] < paper["cope"][0] < by_end["45"]


def test_what_the_search_in_the_fitted_order_leaves_open() -> None:
    paper, defaults = rotated_mnist.papers_column(), means(table("fitted_order"))
    frame = whole(table("searched_order"))
    chosen = 100 * selected(frame).groupby("method")[SCORE].mean()
    assert {"cope", "sarl"}.isdisjoint(chosen.index)
    assert not near(chosen["fdr"], paper["fdr"])
    scored = {name: score for name, (score, _) in defaults.items()}
    closed = {
        name
        for found in (scored, chosen.to_dict())
        for name, score in found.items()
        if name in paper and near(score, paper[name])
    }
    main = {name for name in paper if rotated_mnist.in_main_table(name)}
    assert main - closed == {"cope", "sarl", "fdr"}
    assert len(main & closed) >= 15


def reading(method: str, benchmark: str, column: str = SCORE) -> dict[str, float]:
    frame = rows_of("readings", benchmark)
    part = frame[frame["method"] == method]
    return {str(key): 100 * value for key, value in part.groupby("settings")[column].mean().items()}


def test_what_the_readings_show() -> None:
    paper = rotated_mnist.papers_column()
    sarl = reading("sarl", "rotated-mnist")
    close = {name for name, score in sarl.items() if near(score, paper["sarl"])}
    assert close == {'{"stable_weight": 0.0}', '{"warmup_steps": 1000}'}
    assert set(sarl) > {"{}", '{"warmup_steps": 500}'}
    sources = reading("sarl", "rotated-mnist", "source_validation_score")
    assert all(sources[name] > sources["{}"] for name in close)
    assert not any(
        near(score, paper["cope"]) for score in reading("cope", "rotated-mnist").values()
    )
    for benchmark in BENCHMARKS:
        target, sources = (
            reading("cl-andmask", benchmark, column)
            for column in (SCORE, "source_validation_score")
        )
        theirs = papers_scores(benchmark, "main")["cl-andmask"]
        hard, soft = '{"mask_temperature": 0.1}', '{"mask_temperature": 10.0}'
        assert sources[hard] < sources["{}"] < sources[soft] < sources["{}"] + 1
        assert not near(target[hard], theirs)
        assert near(target["{}"], theirs)
        assert target[soft] == pytest.approx(target["{}"], abs=1.5)


def test_which_methods_score_about_eight_percent_on_covertype() -> None:
    paper = papers_scores("covertype", "main", "naive")
    assert {name for name, (score, _) in paper.items() if 7.5 < score < 8.5} == ABOUT_EIGHT
    low = {
        each.name: [
            order
            for order in covertype.orders()
            if means(in_order(each, order), each.target)["finetune"][0] < 10
        ]
        for each in READINGS
    }
    assert [len(found) for found in low.values()] == [0, 3, 4]
    best = covertype.fitted()
    balanced, *others = READINGS
    most = max(close_on_target(balanced, order) for order in covertype.orders())
    naive = ABOUT_EIGHT - {"finetune", "ewc"}
    for each in others:
        assert best in low[each.name]
        assert close_on_target(each, best) > most
        alike = [
            order
            for order in covertype.orders()
            if all(means(in_order(each, order), each.target)[name][0] < 10 for name in naive)
        ]
        assert len(alike) == 3
        assert set(alike) <= set(low[each.name])
        for order in covertype.orders():
            if last_source(order) == "comanche":
                fewer = close_on_target(balanced, order) - close_on_target(each, order)
                assert fewer >= 3
    theirs = papers_scores("covertype", "source")["finetune"][0]
    apart = {
        (each.name, order): abs(means(in_order(each, order), SOURCES)["finetune"][0] - theirs)
        for each in LEARNED
        for order in covertype.orders()
    }
    assert apart["balanced", best] > apart["all natural", best]
    nearest = sorted(apart, key=lambda key: apart[key])[:2]
    assert [(name, last_source(order)) for name, order in nearest] == [("balanced", "comanche")] * 2
    known = set(covertype.shared(SOURCES))
    for order in covertype.orders():
        counts = [len(close(in_order(each, order), SOURCES) & known) for each in LEARNED]
        assert abs(counts[0] - counts[1]) <= 2


def test_what_the_search_shows_with_natural_classes() -> None:
    runs = covertype.chosen_runs(covertype.NATURAL)
    scored = 100 * runs.set_index("method")[AS_IT_IS]
    for name in ("finetune", "naive-cl-mmd", "naive-cl-vrex", "si"):
        assert all(score < 10 or score > 45 for score in scored[name]), name
        assert scored[name].min() < 10 < scored[name].max(), name
    paper = papers_scores("covertype", "main")
    for name in ("si", "snr", "efc"):
        mean, error = means(runs, AS_IT_IS)[name]
        assert abs(mean - paper[name][0]) < 3, name
        assert error > 6, name
    chosen = {each: covertype.chosen_runs(each) for each in READINGS}
    both = set.intersection(*(set(frame["method"]) for frame in chosen.values()))
    counts = [len(close(frame, each.target) & both) for each, frame in chosen.items()]
    assert counts[0] > max(counts[1:])


def test_the_second_experiment_fits_all_natural_worst_for_most_methods_with_replay() -> None:
    paper = papers_scores("covertype", "other_target")
    apart: dict[str, list[float]] = {}
    for each in READINGS:
        frame = rows_of("orders_ablated", each.benchmark)
        scored = means(frame[frame["target"] == "rawah"], each.target)
        for name in ("finetune", "fdr", "er-ace", *TAILORED):
            apart.setdefault(name, []).append(abs(scored[name][0] - paper[name][0]))
    fits_worst = {name for name, found in apart.items() if max(found) == found[-1]}
    assert set(apart) - fits_worst == {"finetune", "cl-mmd"}
    assert min(apart["finetune"]) == apart["finetune"][-1]


def test_what_the_drawn_orders_show() -> None:
    chosen = selected(whole(rows_of("paper_protocol", "rotated-mnist")))
    seeds = Counter(chosen["method"])
    assert seeds.pop("finetune") == 3
    assert set(seeds.values()) == {1}
    ends = chosen["order"].map(last_source)
    assert set(ends[chosen["method"] == "finetune"]) == {"15", "30"}
    others = ends[chosen["method"] != "finetune"]
    assert others.isin(["15", "30"]).mean() > 0.5
    paper = rotated_mnist.papers_column()
    rest = chosen[chosen["method"].isin(paper) & (chosen["method"] != "finetune")]
    below = [
        100 * score < paper[name][0]
        for name, score in zip(rest["method"], rest[SCORE], strict=True)
    ]
    assert all(below)
    covertype = means(selected(whole(rows_of("paper_protocol", "covertype"))))
    theirs = papers_scores("covertype", "main")
    replay = [*TAILORED, *REPLAY]
    far = {name for name in replay if not near(covertype[name][0], theirs[name])}
    assert {"cope", "cl-andmask"} <= far
    assert len(far) < len(replay) / 2


def test_large_weights_do_harm_on_rotated_mnist() -> None:
    changes = sensitivity.changes_by_weight("rotated-mnist", PENALISED)
    harmful = {
        key
        for key, by_value in changes.items()
        if any(change.mean < -sensitivity.GREAT_HARM for change in by_value.values())
    }
    assert harmful == {
        ("cl-vrex", "penalty_weight"),
        ("cl-vrex", "alignment_weight"),
        ("cl-fishr", "alignment_weight"),
    }
    for benchmark in BENCHMARKS:
        found = claims.robust(benchmark)
        assert found is not None
        assert found.holds


def test_backward_transfer_by_the_cited_definition_is_negative_for_fine_tuning() -> None:
    for benchmark in BENCHMARKS:
        frame = rows_of("all_orders", benchmark)
        plain = frame[frame["method"] == "finetune"]
        assert plain["backward_transfer"].max() < 0
        assert papers_scores(benchmark, "backward_transfer")["finetune"][0] > 0
    gains = {
        benchmark: 100 * rows_of("all_orders", benchmark)["gain_by_learning"].median()
        for benchmark in BENCHMARKS
    }
    theirs = {
        benchmark: pd.Series(
            [score for score, _ in papers_scores(benchmark, "backward_transfer").values()]
        ).median()
        for benchmark in BENCHMARKS
    }
    assert gains["rotated-mnist"] == pytest.approx(theirs["rotated-mnist"], abs=5)
    assert gains["covertype"] > 2 * theirs["covertype"]
    paper = papers_scores("rotated-mnist", "backward_transfer")
    chosen = selected(whole(table("searched_order")))
    for name in ("fdr", "star"):
        runs = chosen[chosen["method"] == name]
        for column in ("backward_transfer", "gain_by_learning"):
            assert 100 * runs[column].std(ddof=1) / len(runs) ** 0.5 < paper[name][1]


def test_why_cope_and_fdr_are_below_the_paper() -> None:
    """The largest R by brute force, and FDR's gap beside those of the other replay baselines."""
    cosines = np.linspace(-1, 1, 21)
    for temperature in (1.0, 0.5, 0.1):
        own, others = (np.exp(cosines / temperature) for _ in range(2))
        largest = (own[:, None] / (own[:, None] + 9 * others)).max()
        assert rotated_mnist.most_certain(temperature) == pytest.approx(largest)
    paper, ours = rotated_mnist.papers_column(), means(table("fitted_order"))
    gaps = {name: ours[name][0] - paper[name][0] for name in REPLAY if name in ours}
    # With the last source that suits fine-tuning, replay falls short; fdr no more than the others.
    assert all(gap < 0 for gap in gaps.values())
    assert gaps["fdr"] >= np.median(list(gaps.values()))
    assert gaps["cope"] == min(gaps.values())
    # The order is enough for fdr and not for cope, whose sources are as in the paper.
    runs = table("all_orders")
    runs = runs[runs["benchmark"] == "rotated-mnist"]
    for name, singles, threes in (("cope", 1, 2), ("fdr", 8, 245)):
        found = 100 * runs.loc[runs["method"] == name, SCORE].to_numpy()
        first, second, third = (
            np.array([found[list(each)] for each in itertools.combinations(range(24), 3)])
        ).T
        middle = (first + second + third) / 3
        spread = sum((each - middle) ** 2 for each in (first, second, third)) / 2
        mean_there, error_there = paper[name]
        close = np.abs(middle - mean_there) <= max(3, 2 * error_there)
        close &= np.abs(np.sqrt(spread / 3) - error_there) <= 1.5
        alone = (np.abs(found - mean_there) <= max(3, 2 * error_there)).sum()
        assert (alone, close.sum()) == (singles, threes)
        said = rotated_mnist.drawn_orders(name)
        assert said.startswith(f"{singles} of 24 orders")
        assert f"and {threes:,} of the 2,024 choices" in said
    sources = means(table("fitted_order"), "source_train_score")["cope"][0]
    assert abs(sources - papers_scores("rotated-mnist", "source")["cope"][0]) < 0.2
    assert "+1.5 of 15.5 points" in rotated_mnist.cope_remark()
