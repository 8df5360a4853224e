"""The designs of an audit: what they contain, which one fits, and that none lets a site leak."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from made_sites import Made, make_sites
from reporting import result, write
from sweeping import Here

import farshore
from farshore.auditing import climb as climbing
from farshore.auditing.climb import SHARE, Climb
from farshore.auditing.designs import LADDER, MINUTES, plan_designs, to_climb, what_is_left_out
from farshore.benchmarks import make_benchmark
from farshore.errors import FarshoreError
from farshore.runs.engines.carry_out import carry_out, open_runs
from farshore.runs.engines.work import WorkOutcome
from farshore.runs.plan.comparison import plan_comparison
from farshore.runs.plan.experiment import Experiment
from farshore.runs.plan.plan import Plan
from farshore.runs.plan.select import references
from farshore.runs.store.store import Store

SOAK = pytest.mark.soak
SITES = 25
# Seconds of a run of 100 steps per domain.
SECONDS = {
    **{"majority": 0.5, "ridge": 1.0, "er": 2.0, "finetune": 2.0, "cl-coral": 4.0, "joint": 4.0},
    "slda": 1.0,
    **{"cl-fishr": 4.0, "trees": 5.0, "auto": 6.0},
    **{"joint-linear": 0.1, "joint-forest": 0.3, "joint-trees": 0.3},
}


class Timed(Here):
    """Writes made-up results, each after the seconds of its method, by a clock of its own."""

    def __init__(self, runs: Path, failing: str = "") -> None:
        super().__init__()
        self.runs, self.failing, self.now = runs, failing, 0.0

    def monotonic(self) -> float:
        return self.now

    def next(self, seconds: float) -> WorkOutcome | None:
        planned = self.tasks.popleft().planned
        if planned.run.method == self.failing:
            return WorkOutcome(planned.name, "failed", "no memory")
        steps = planned.run.steps or 100
        spent = SECONDS[planned.run.method] * steps / 100
        self.now += spent
        self.carried.append(planned.name)
        made = {"steps": steps, "seconds": {"total": spent, "training": spent}}
        write(self.runs, result(planned.run, 0.5, **made), planned)
        return WorkOutcome(planned.name, "done", seconds=spent)


def table(folder: Path, sites: int) -> Mapping[str, object]:
    """A table with so many sites of four rows."""
    frame = pd.DataFrame({"x": range(4 * sites), "y": ["a", "b"] * 2 * sites})
    frame["site"] = np.repeat([f"site{number}" for number in range(sites)], 4)
    frame.to_csv(folder / "t.csv", index=False)
    return {"path": str(folder / "t.csv"), "domain": "site", "label": "y"}


def designs_of(
    options: Mapping[str, object], **given: object
) -> tuple[dict[str, Experiment], dict[str, Experiment]]:
    """All designs, and those to choose from."""
    benchmark = make_benchmark("table", options)
    conditions = {"methods": None, "orders": None, "steps": None, "settings": {}, "seeds": 1}
    targets = list(benchmark.each_target())
    data = {"benchmark": "table", "options": options}
    designs = plan_designs(data, benchmark, targets, **conditions | given)
    return designs, to_climb(designs, benchmark, len(targets))


def climb(
    folder: Path,
    designs: dict[str, Experiment],
    minutes: float,
    monkeypatch: pytest.MonkeyPatch,
    failing: str = "",
) -> tuple[str, Timed, list[str]]:
    """The design that is reached, the engine, and the designs that were finished on the way."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    engine, store, done = Timed(folder / "runs", failing), Store(folder / "runs"), []
    monkeypatch.setattr(climbing, "time", SimpleNamespace(monotonic=engine.monotonic))
    plan = Climb(
        store=store,
        make=lambda each: plan_comparison(each, store, record=False),
        designs=designs,
        deadline=SHARE * 60 * minutes,
        steps=100,
        slots=1,
        done=lambda name, _: done.append(name),
    )
    with engine:
        carry_out(plan, store, engine, todo=open_runs(plan, store)[0])
    name, reached = plan.highest()
    left = {planned.run.method for planned in open_runs(reached, store)[0].values()}
    assert failing in left if failing else not left
    return name, engine, done


@pytest.mark.parametrize(
    ("minutes", "reached"),
    [
        *[(0.01, "glance"), (2, "small"), (10, "medium")],
        *[pytest.param(16, "large", marks=SOAK), pytest.param(40, "full", marks=SOAK)],
    ],
)
def test_the_highest_design_that_fits_is_reached_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, reached: str
) -> None:
    _, designs = designs_of(table(tmp_path, SITES))
    name, engine, done = climb(tmp_path, dict(designs), minutes, monkeypatch)
    assert name == reached
    ladder = [design.name for design in LADDER]
    lowest, highest = 0 if reached == "glance" else 1, ladder.index(reached) + 1
    assert done == ladder[lowest : min(highest, 4)]  # nothing follows the full design
    if reached != "glance":  # the lowest is carried out whatever it takes
        assert engine.now <= SHARE * 60 * minutes


def test_more_minutes_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, designs = designs_of(table(tmp_path, SITES))
    name, engine, _ = climb(tmp_path, dict(designs), 2, monkeypatch)
    assert name == "small"
    name, more, done = climb(tmp_path, dict(designs), 10, monkeypatch)
    assert name == "medium"
    assert done == ["small", "medium"]
    assert not set(engine.carried) & set(more.carried)


@pytest.mark.parametrize(
    ("failing", "design", "before"), [("er", "glance", []), ("joint", "medium", ["small"])]
)
def test_a_design_in_which_runs_failed_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, design: str, before: list[str]
) -> None:
    """It has open runs, so the audit says that it needs all of them."""
    _, designs = designs_of(table(tmp_path, SITES))
    name, _, done = climb(tmp_path, dict(designs), 20, monkeypatch, failing)
    assert (name, done) == (design, before)


def test_a_higher_design_has_the_runs_of_the_lower_ones(tmp_path: Path) -> None:
    options = table(tmp_path, SITES)
    designs, _ = designs_of(options)
    store = Store(tmp_path / "runs")
    runs = {}
    for name, experiment in designs.items():
        plan: Plan = plan_comparison(experiment, store, record=False)
        runs[name] = set(plan.unique())
    assert {name: len(of) for name, of in runs.items()} == {
        **{"glance": 4 * 7, "small": 8 * 7, "medium": 20 * 10, "large": 25 * 13},
        "full": 25 * (10 * 2 + 3),  # one run of the references for both orders
    }
    assert runs["small"] < runs["medium"] < runs["large"] < runs["full"]
    assert not runs["glance"] & runs["full"]
    parts = {name: experiment.parts[0] for name, experiment in designs.items()}
    assert {part.steps for name, part in parts.items() if name != "glance"} == {None}
    assert what_is_left_out("full", parts["full"], parts["full"], SITES) == (
        "Design full leaves out nothing (--design full repeats it)."
    )
    assert what_is_left_out("glance", parts["glance"], parts["full"], SITES) == (
        "Design glance leaves out the methods finetune, cl-coral, cl-fishr, trees, auto and joint, "
        "the order reversed, 21 sites of 25 and all but 20 steps per domain (--design glance "
        "repeats it; more --minutes continue)."
    )


def test_the_page_of_the_audit_documents_the_ladder() -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    rows = page.partition("| design | methods")[2].splitlines()[2:]
    shown = [row.strip("| ").split(" | ") for row in rows[: len(LADDER)]]
    assert shown == [
        [
            design.name,
            ", ".join(design.methods or ["all"]),
            str(design.orders or 2),
            str(design.sites or "all"),
            str(design.steps or "usual"),
        ]
        for design in LADDER
    ]
    assert f"at most {MINUTES:.0f} minutes" in page


def test_designs_that_agree_are_one(tmp_path: Path) -> None:
    few = table(tmp_path, 5)
    assert list(designs_of(few)[1]) == ["small", "medium", "large", "full"]
    one_order = designs_of(few, methods=["er"], orders=["listed"])[1]
    assert list(one_order) == ["full"]
    part = one_order["full"].parts[0]
    assert (part.methods, part.orders) == (
        ["er", *references(make_benchmark("table", few)), "joint"],
        ["listed"],
    )
    assert list(designs_of(few, methods=["er"], steps=3)[1]) == ["large", "full"]
    # Names with a slash cannot be listed in a target: all sites are left out.
    frame = pd.read_csv(str(few["path"]))
    many = pd.concat(
        [frame.assign(site=frame["site"] + f"/{number}") for number in range(5)], ignore_index=True
    )
    many.to_csv(str(few["path"]), index=False)
    assert {each.parts[0].target for each in designs_of(few)[0].values()} == {"each"}


@pytest.mark.parametrize(
    "design", ["glance", *(pytest.param(each.name, marks=SOAK) for each in LADDER[1:])]
)
def test_a_site_of_noise_changes_no_model_that_leaves_it_out(tmp_path: Path, design: str) -> None:
    """In every design: the same sites and methods, and for that target the same weights."""
    frame = make_sites(Made(sites=8, rows=24), seed=1)
    draws, noise, weights = np.random.default_rng(5), "", []
    for folder in ("before", "after"):
        done = farshore.audit(
            frame,
            **{"domain": "site", "label": "ill", "methods": ["er"], "steps": 1},
            **{"design": design, "runs": tmp_path / folder},
        )
        assert done.design[0] == design
        runs = done.frame
        assert len(set(runs["target"])) == {"glance": 4, "small": 8}.get(design, 9)
        place = zip(runs["target"], runs["method"], runs["order"], strict=True)
        trained = [each.target.weights for each in runs["result"]]
        weights.append(dict(zip(place, trained, strict=True)))
        noise = noise or str(runs["target"].iloc[0])
        there = (frame["site"] == noise).to_numpy()
        columns = [column for column in frame if str(column).startswith("x")]
        frame.loc[there, columns] = draws.normal(scale=9, size=(there.sum(), len(columns)))
        frame.loc[there, "ill"] = draws.permutation(frame.loc[there, "ill"].to_numpy())
    assert weights[0].keys() == weights[1].keys()
    without = {place for place in weights[0] if place[0] == noise}
    assert without
    assert {place: weights[0][place] for place in without} == {
        place: weights[1][place] for place in without
    }
    assert any(weights[0][place] != weights[1][place] for place in weights[0].keys() - without)


def test_a_design_is_named_on_the_page_and_in_the_numbers(tmp_path: Path) -> None:
    made = make_sites(Made(sites=4, rows=30), seed=1)
    given = {"domain": "site", "label": "ill", "methods": ["ncm"], "steps": 1, "runs": tmp_path}
    chosen = farshore.audit(made, **given)  # by time, which suffices for everything
    named = farshore.audit(made, design="full", **given)
    assert chosen.design == named.design
    assert chosen.design[0] == "full"
    numbers = [each.report(tmp_path / "n.json").read_text() for each in (chosen, named)]
    assert numbers[0] == numbers[1]
    assert json.loads(numbers[0])["design"] == "full"
    assert named.design[1] in named.report(tmp_path / "page.html").read_text()


def test_designs_and_minutes_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    made = make_sites(Made(sites=4, rows=30), seed=1)
    given = {"domain": "site", "label": "ill", "runs": tmp_path}
    for wrong, what in (
        ({"design": "smal"}, "small"),
        ({"minutes": 0}, "more than 0"),
        ({"minutes": float("nan")}, "more than 0"),
        ({"minutes": 5, "design": "full"}, "one of the two"),
    ):
        with pytest.raises(FarshoreError, match=what):
            farshore.audit(made, **given, **wrong)
    assert not (tmp_path / "experiments").exists()
