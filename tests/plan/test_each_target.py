"""Every domain as the target in turn: which runs there are, and what each of them leaves out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from sweeping import experiment, planned, summary, swept

from farshore.benchmarks import make_benchmark
from farshore.errors import FarshoreError
from farshore.runs.plan.comparison import make_comparison, record_comparison
from farshore.runs.plan.narrow import tiny
from farshore.runs.plan.plan import Plan, make_plan
from farshore.runs.plan.select import arrange_sources, select_targets
from farshore.runs.store.store import Store

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
ONE_TRIAL = {"trials": 1, "seeds": 1}


def table(folder: Path, sites: str = "dbca", classes: str = "xy") -> dict[str, object]:
    """A table of sites whose times follow the letters of `sites`; its options."""
    rows = [
        {"site": site, "day": 10 * place + number, "size": number, "label": label}
        for place, site in enumerate(sites)
        for number, label in enumerate(classes * 4)
    ]
    path = folder / "sites.csv"
    pd.DataFrame(rows).sort_values("site").to_csv(path, index=False)
    return {"path": str(path), "domain": "site", "label": "label", "time": "day"}


def plan_each(folder: Path, benchmark: object = "heart-hospitals", **part: object) -> Plan:
    fields = {"benchmarks": [benchmark], "methods": ["er"], "target": "each", **part}
    return planned(experiment(search=ONE_TRIAL, part=fields), folder / "runs")


def test_every_domain_is_the_target_once_and_shares_the_run_of_that_target(tmp_path: Path) -> None:
    each = plan_each(tmp_path)
    assert [entry.condition.target for entry in each.runs] == list(HOSPITALS)
    for entry in each.runs:
        (alone,) = plan_each(tmp_path, target=entry.condition.target).runs
        assert (alone.name, alone.run) == (entry.name, entry.run)
        assert alone.condition.target == ""


@pytest.mark.parametrize(("word", "count"), [("all", 6), ("balanced:3", 3), ("random1", 1)])
def test_each_target_has_orders_of_its_own_sources(tmp_path: Path, word: str, count: int) -> None:
    each = plan_each(tmp_path, orders=[word])
    assert Counter(entry.condition.target for entry in each.runs) == dict.fromkeys(HOSPITALS, count)
    assert len(each.unique()) == len(each.runs)
    for entry in each.runs:
        if entry.run.order is not None:
            assert sorted([*entry.run.order, entry.condition.target]) == sorted(HOSPITALS)


def test_an_order_by_names_lists_all_domains(tmp_path: Path) -> None:
    each = plan_each(tmp_path, orders=["va/switzerland/hungarian/cleveland"])
    assert {entry.condition.order for entry in each.runs} == {"reversed"}
    with pytest.raises(FarshoreError, match="must name every domain once"):
        plan_each(tmp_path, orders=["va/switzerland/hungarian"])


def test_in_time_a_target_is_predicted_from_the_domains_before_it(tmp_path: Path) -> None:
    own = {"table": table(tmp_path)}
    runs = [entry.run for entry in plan_each(tmp_path, own).runs]
    assert [(run.target, run.left_out, run.order) for run in runs] == [
        ("c", ("a",), None),
        ("a", (), None),
    ]
    plan, progress = swept(
        experiment(
            search=ONE_TRIAL, part={"benchmarks": [own], "methods": ["er"], "target": "each"}
        ),
        tmp_path / "runs",
    )
    assert not progress.failures
    store = Store(tmp_path / "runs")
    assert [store.read(entry.name).sources for entry in plan.runs] == [["d", "b"], ["d", "b", "c"]]
    assert summary(plan, store)["target"].tolist() == ["c", "a"]


@pytest.mark.parametrize("sites", ["dbca", "dbc"])
@pytest.mark.parametrize("words", [["reversed"], ["listed", "random1"], ["all"], ["drawn"]])
def test_in_time_the_order_of_time_is_kept(tmp_path: Path, sites: str, words: list[str]) -> None:
    benchmark = make_benchmark("table", table(tmp_path, sites))
    for aim in select_targets(benchmark, "each"):
        with pytest.raises(FarshoreError, match="in chronological order; use listed"):
            arrange_sources(benchmark, words, aim, 0)


def test_what_a_later_run_would_refuse_is_refused_first(tmp_path: Path) -> None:
    for sites, message in (("ab", "at least 3 domains, but sites.csv has 2"), ("abc", "")):
        benchmark = make_benchmark("table", table(tmp_path, sites))
        if message:
            with pytest.raises(FarshoreError, match=message):
                select_targets(benchmark, "each")
    options = {**table(tmp_path, "abcd"), "time": None}
    path = Path(str(options["path"]))
    frame = pd.read_csv(path)
    frame.loc[frame["site"] == "b", "label"] = ["x", "new"] * 4
    frame.to_csv(path, index=False)
    with pytest.raises(FarshoreError, match="'new' exists only in the target 'b'"):
        select_targets(make_benchmark("table", options), "each")
    frame["label"] = frame["label"].mask(frame["site"] == "b", "x")
    frame.to_csv(path, index=False)
    with pytest.raises(FarshoreError, match="domain 'b' has one class only"):
        select_targets(make_benchmark("table", options), "each")
    constructed = make_benchmark("table", {**options, "domain": "auto"})
    with pytest.raises(FarshoreError, match="--target each needs named domains"):
        select_targets(constructed, "each")


def test_inside_each_target_selection_leaves_the_target_and_what_follows_out(
    tmp_path: Path,
) -> None:
    own = {"table": table(tmp_path)}
    asked = experiment(
        search=ONE_TRIAL,
        selection="leave-one-source-out",
        part={"benchmarks": [own], "methods": ["er"], "target": "each"},
    )
    inner = [entry.run for entry in planned(asked, tmp_path).runs if entry.held_out]
    assert [(run.target, run.left_out, run.held_out) for run in inner] == [
        ("d", ("c", "a"), True),
        ("b", ("c", "a"), True),
        ("d", ("a",), True),
        ("b", ("a",), True),
        ("c", ("a",), True),
    ]


def test_settings_come_from_the_same_target_and_never_from_another(tmp_path: Path) -> None:
    part = {"methods": ["er"], "target": "each"}
    base = experiment(name="base", search={"trials": 2, "seeds": 1}, part=part)
    swept(base, tmp_path)
    further = experiment(name="more", part={**part, "settings_from": "base"})
    store = Store(tmp_path)
    plan = make_plan(further, store, lambda _: base)
    assert [entry.condition.target for entry in plan.runs] == list(HOSPITALS)
    assert {entry.name for entry in plan.runs} <= set(planned(base, tmp_path).unique())
    for_one = experiment(name="base", search={"trials": 2, "seeds": 1}, part={"methods": ["er"]})
    with pytest.raises(FarshoreError, match="give it target: each too"):
        make_plan(further, store, lambda _: for_one)


def test_comparisons_with_equal_orders_join_and_others_do_not(tmp_path: Path) -> None:
    def asked(methods: str, orders: str = "listed", seeds: int = 1) -> str:
        requested = make_comparison(
            {"benchmark": "heart-hospitals"},
            methods.split(),
            seeds=range(seeds),
            orders=orders.split(),
            target="each",
        )
        return record_comparison(requested, tmp_path).name

    first = asked("er finetune")
    assert asked("er", seeds=2) == asked("cl-coral") == first
    assert asked("er", "balanced:3") != first
    assert asked("er", "balanced:3") == asked("finetune", "balanced:3")


def test_own_data_without_a_target_leave_out_each_domain(tmp_path: Path) -> None:
    data = {"benchmark": "table", "options": {**table(tmp_path), "time": None}}
    made = make_comparison(data, ["er"], seeds=[0], orders=["listed"])
    assert made.parts[0].target == "each"
    assert tiny(made).parts[0].target == "each"
