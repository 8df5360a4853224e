"""An audit says what a report says about the same runs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import farshore
from farshore.auditing.answers import verdict
from farshore.auditing.findings import Findings, find_all
from farshore.deployment.unlike import SiteRows
from farshore.errors import FarshoreError
from farshore.report.build import Section, build_report, write_report
from farshore.results.frame import frame_of_results
from farshore.results.select import select
from farshore.results.verdict import Verdict, judge
from farshore.runs.store.store import Store

STORE = Path(__file__).parents[1] / "golden" / "stores" / "audited"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("work") / "audited"
    shutil.copytree(STORE, copy)
    return copy


@pytest.fixture(scope="module")
def done(runs: Path) -> farshore.auditing.audit.Audit:
    before = sorted(runs.iterdir())
    made = farshore.audit(
        "heart-hospitals",
        methods=["finetune", "er", "ridge"],
        orders=["listed", "reversed"],
        steps=20,
        memory=60,
        design="full",
        runs=runs,
    )
    assert sorted(runs.iterdir()) == before, "runs were carried out"
    return made


@pytest.fixture(scope="module")
def section(runs: Path) -> Section:
    """What a report of the same folder says."""
    main = build_report(runs).main
    assert main is not None
    return main


@pytest.fixture(scope="module")
def judged(section: Section) -> Verdict:
    assert section.verdict is not None
    return section.verdict


def test_both_recommend_the_same_method_and_say_why(done, judged: Verdict, section) -> None:
    found = done.findings.recommendation
    assert found == judged.recommendation
    assert (found.method, found.leader) == ("er", "ridge")
    answer = done.answers["Which method should I use, and how certain is that choice?"]
    assert f"{found.reason}." in answer
    assert any(found.reason in text for text in judged.details)
    assert found.method in done.verdict
    assert done.conditions == section.conditions


def test_both_have_the_same_ranking(done, judged: Verdict, tmp_path: Path) -> None:
    assert done.findings.ranking == judged.ranking
    numbers = json.loads(done.report(tmp_path / "audit.json").read_text())
    assert numbers["reference"] == judged.ranking.reference
    assert len(numbers["methods"]) == len(judged.ranking.standings) == 8
    for shown, each in zip(numbers["methods"], judged.ranking.standings, strict=True):
        assert each.estimate is not None
        assert (shown["method"], shown["rank"]) == (each.row, each.rank)
        assert (shown["mean"], shown["error"]) == (each.estimate.mean, each.estimate.error)
        assert shown["guessing"] == each.guessing == (each.row == "majority")
        if each.difference is None:
            assert shown["difference"] is None
        else:
            assert shown["difference"]["low"] == each.difference.low


def test_both_pages_show_the_same_ranking(done, runs: Path, tmp_path: Path) -> None:
    write_report(runs, tmp_path / "report.html")
    pages = [tmp_path / "report.html", done.report(tmp_path / "audit.html")]
    shown = [
        re.findall(r'<section class="ranking".*?</section>', each.read_text(), re.S)
        for each in pages
    ]
    assert len(shown[0]) == 1
    assert shown[0] == shown[1]


@pytest.fixture(scope="module")
def whole(runs: Path) -> pd.DataFrame:
    """The frame with whole results; a report leaves out their tables of classes."""
    return select(frame_of_results(Store(runs).results()))


def made_sites(frame: pd.DataFrame) -> SiteRows:
    draws = np.random.default_rng(0)
    names = list(dict.fromkeys(frame["target"]))
    inputs = {name: draws.normal(size=(20, 2)) for name in names}
    labels = {name: np.arange(20) % 2 for name in names}
    return SiteRows(inputs, labels, dict.fromkeys(names, 20), ["x", "y"])


def test_nothing_is_recommended_if_everything_guesses(whole: pd.DataFrame) -> None:
    guessing = whole.assign(balanced_accuracy=0.5)
    assert judge(guessing).recommendation is None
    found = find_all(guessing, made_sites(whole))
    assert found.recommendation is None
    assert found.choice.method == "ridge"
    assert "no candidate tells the classes apart better than guessing" in found.decision.sentence
    assert "no score to expect at a new site" in verdict(found)


def test_a_candidate_with_a_diverged_run_is_never_chosen(whole: pd.DataFrame) -> None:
    first = (whole["row"] == "er").idxmax()
    lacking = whole.copy()
    lacking.loc[first, ["status", "score"]] = "diverged", np.nan
    found = find_all(lacking, made_sites(whole))
    assert isinstance(found, Findings)
    assert found.choice.method == "ridge"
    assert found.recommendation == judge(lacking).recommendation
    assert "er" not in found.choice.without.values()
    lacking.loc[lacking["kind"] == "continual", ["status", "score"]] = "diverged", np.nan
    with pytest.raises(FarshoreError, match="no candidate has a score at every site"):
        find_all(lacking, made_sites(whole))
