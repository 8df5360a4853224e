"""The audit from a table to its answers, quickly: few rows, closed forms, a few steps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_sites import Made, make_sites
from PIL import Image

import farshore
from farshore.auditing.designs import CANDIDATES, usual_methods
from farshore.auditing.figures import figures
from farshore.auditing.findings import Findings
from farshore.benchmarks import make_benchmark
from farshore.deployment.unlike import _columns
from farshore.errors import FarshoreError

QUICK = {"methods": ["slda", "ncm"], "steps": 2, "design": "full"}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    made = make_sites(Made(sites=4, rows=60), seed=1)
    # The column is the site in disguise: whoever reads it knows s2.
    return made.assign(scanner=(made["site"] == "s2") * 5.0 + made["x0"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def done(table: pd.DataFrame, runs: Path) -> farshore.auditing.audit.Audit:
    return farshore.audit(table, domain="site", label="ill", runs=runs, orders=["listed"], **QUICK)


def test_every_question_has_an_answer_with_the_numbers_of_the_findings(done) -> None:
    found = done.findings
    assert isinstance(found, Findings)
    assert set(found.scores) == {"s0", "s1", "s2", "s3", "s4"}
    answers = list(done.answers.values())
    assert len(answers) == 11
    summed = next(iter(done.sums.values()))
    assert summed.line() in answers[-1]
    assert summed.plain()["scores"] == summed.scores
    assert all(answers)
    assert found.expectation is not None
    assert f"{100 * found.expectation.mean:.1f}%" in done.verdict
    assert found.unlike is not None
    assert found.unlike.site == "s2"
    assert found.unlike.columns[0].column == "scanner"
    assert done.next_step[0] == (
        "farshore learn model/ first-site.csv --name 'site 1' --label ill "
        f"--method {found.choice.method}"
    )
    assert "s2: shown one of its rows" in done.answers["Which site is unlike the others?"]


def test_the_page_shows_expectation_first_then_what_explains_it(done, tmp_path: Path) -> None:
    page = done.report(tmp_path / "audit.html").read_text()
    names = re.findall(r'id="figure-([a-z]+)"', page)
    assert names == [
        *("sites", "scores", "confusion", "classes", "reliability", "curve", "columns")
    ]
    assert page.index('id="figure-sites"') < page.index('id="answers"')


def test_the_figures_show_the_numbers_of_the_runs(done) -> None:
    drawn = {each.name: each for each in figures(done.findings, done.frame)}
    frame = done.frame[done.frame["selected"].astype(bool)]
    chosen = done.findings.choice
    for site, score in done.findings.scores.items():
        here = frame[(frame["target"] == site) & (frame["row"] == chosen.without[site])]
        counted = drawn["confusion"].frame.query("site == @site")
        tables = [np.array(result.target.confusion) for result in here["result"]]
        assert counted["rows"].sum() == pytest.approx(np.mean([table.sum() for table in tables]))
        hits = counted[counted["true"] == counted["predicted"]]["rows"].sum()
        assert hits / counted["rows"].sum() == pytest.approx(score)
        bins = drawn["reliability"].frame.query("site == @site")
        assert bins["rows"].sum() == sum(table.sum() for table in tables)
        right = (bins["rows"] * bins["right"]).sum() / bins["rows"].sum()
        assert right == pytest.approx(score)
        recognised = drawn["classes"].frame.set_index("site").loc[site]
        for name in recognised.index:
            row = counted[counted["true"] == name]
            own = row[row["predicted"] == name]["rows"].sum() / row["rows"].sum()
            assert recognised[name] == pytest.approx(own)
    assert [view.label for view in drawn["confusion"].views] == ["all sites", *done.findings.scores]
    assert drawn["columns"].frame.iloc[0]["column"] == "scanner"


def test_columns_that_are_missing_somewhere_say_so() -> None:
    draws = np.random.default_rng(0)
    own, rest = draws.random((50, 2)), draws.random((150, 2))
    own[:, 1], rest[:, 1] = 1.0, rest[:, 1] < 0.1
    (shift,) = _columns(own, rest, ["ca", "ca missing"])
    assert (shift.missing, shift.elsewhere) == (1.0, rest[:, 1].mean())
    assert str(shift) == (
        f"ca (gap {1 - shift.elsewhere:.2f}: missing in 100% of the rows, elsewhere "
        f"{shift.elsewhere:.0%})"
    )
    (shift,) = _columns(draws.random((50, 1)) + 2, draws.random((50, 1)), ["x"])
    assert str(shift) == "x (gap 1.00)"


def test_the_decision_comes_first_and_the_page_and_the_numbers_say_how_to_repeat_it(
    done, tmp_path: Path
) -> None:
    found = done.findings
    assert done.decision == found.decision.sentence
    assert found.evidence.excess.units == 5
    assert found.pooled.reference in ("joint-linear", "joint-forest", "joint-trees")
    assert (
        found.pooled.sentence(found.ranking.metric)
        in done.answers["Which method should I use, and how certain is that choice?"]
    )
    page = done.report(tmp_path / "audit.html").read_text()
    assert page.index("Ready for a pilot" if "Ready" in done.decision else done.decision[:9]) < (
        page.index("at a new site")
    )
    numbers = json.loads(done.report(tmp_path / "audit.json").read_text())
    assert numbers["decision"]["outcome"] == found.decision.outcome
    assert "--domain site --label ill" in numbers["command"]
    assert "--methods slda,ncm" in numbers["command"]
    assert numbers["made"] == done.facts
    assert "PyTorch" in done.facts
    assert any("sha256" in f"{name} {value}" for name, value in done.facts.items())


def test_a_class_that_one_site_alone_has_does_not_block_the_audit(table, tmp_path: Path) -> None:
    other = table.assign(ill=table["ill"].where(table.index % 4 != 0, "maybe"))
    other["ill"] = other["ill"].where((other["site"] == "s1") | (other["ill"] != "maybe"), "no")
    done = farshore.audit(
        other, domain="site", label="ill", runs=tmp_path, orders=["listed"], **QUICK
    )
    assert "One site alone has class maybe: while it is left out" in done.conditions
    maybe = next(each for each in done.findings.classes if each.name == "maybe")
    assert maybe.sensitivity is None  # where it occurs, no model has seen it
    left = done.frame[(done.frame["target"] == "s1") & (done.frame["method"] == "ncm")]
    assert np.sum(left["result"].iloc[0].target.confusion) == 60  # its rows count, as errors
    assert "--classes" not in done.next_step[0]


def test_permuted_labels_are_never_ready(table, tmp_path: Path) -> None:
    """`bench/permuted_labels.py` does this with 100 tables."""
    draws = np.random.default_rng(4)
    nothing = table.assign(ill=draws.permutation(table["ill"]))
    done = farshore.audit(
        nothing, domain="site", label="ill", runs=tmp_path, orders=["listed"], **QUICK
    )
    assert done.findings.decision.outcome in ("do not deploy", "too few sites to say")


def test_scores_are_those_of_the_method_chosen_without_the_site(done, runs: Path) -> None:
    from farshore.runs.store.store import Store

    by_method: dict[tuple[str, str], list[float]] = {}
    for _, result, _ in Store(runs).results():
        key = (result.run.method, result.target.name)
        by_method.setdefault(key, []).append(result.target_score)
    for site, score in done.findings.scores.items():
        chosen = done.findings.choice.without[site]
        values = by_method[chosen, site]
        assert score == pytest.approx(sum(values) / len(values)), site


def test_the_choice_without_a_site_does_not_depend_on_it(table, tmp_path: Path, done) -> None:
    """The rows of a site become noise; what is chosen without that site stays."""
    noisy = table.copy()
    there = noisy["site"] == "s3"
    noisy.loc[there, "ill"] = noisy.loc[there, "ill"].sample(frac=1, random_state=0).to_numpy()
    noisy.loc[there, "x0"] = noisy.loc[there, "x0"].sample(frac=1, random_state=1).to_numpy()
    again = farshore.audit(
        noisy, domain="site", label="ill", runs=tmp_path, orders=["listed"], **QUICK
    )
    assert again.findings.scores["s3"] != done.findings.scores["s3"]
    assert again.findings.choice.without["s3"] == done.findings.choice.without["s3"]


def test_thirty_rows_are_too_few_to_say(tmp_path: Path) -> None:
    few = make_sites(Made(sites=4, rows=6), seed=3)
    assert len(few) == 30
    done = farshore.audit(few, domain="site", label="ill", runs=tmp_path, **QUICK)
    assert "too little data to say" in done.verdict
    assert done.answers == {}
    assert not (tmp_path / "experiments").exists(), "nothing is trained"
    assert json.loads(done.report(tmp_path / "few.json").read_text())["status"] == "too few data"
    with pytest.raises(FarshoreError, match="no page"):
        done.report(tmp_path / "few.html")


@pytest.mark.soak
def test_sites_in_time_are_predicted_from_those_before(tmp_path: Path) -> None:
    made = make_sites(Made(sites=6, rows=60), seed=2)
    dated = made.assign(year=2000 + made["site"].str[1:].astype(int))
    done = farshore.audit(dated, domain="site", label="ill", time="year", runs=tmp_path, **QUICK)
    assert list(done.findings.scores) == ["s2", "s3", "s4", "s5", "s6"]
    assert "chronological order" in done.answers["How much does the order of the sites matter?"]


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Four sites of dark and light images."""
    numbers = np.random.default_rng(0)
    for site in "abcd":
        for name, light in (("dark", 40), ("light", 200)):
            folder = tmp_path / "photographs" / site / name
            folder.mkdir(parents=True)
            for number in range(10):
                pixels = numbers.integers(light - 40, light + 40, (8, 8, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")
    return tmp_path / "photographs"


def test_images_on_a_frozen_network_have_a_candidate_more(
    photographs: Path, tmp_path: Path
) -> None:
    benchmark = make_benchmark("image-folder", {"path": str(photographs)})
    assert usual_methods(benchmark) == [name for name in CANDIDATES if name != "trees"]
    assert usual_methods(make_benchmark("heart-hospitals", {})) == [*CANDIDATES]
    done = farshore.audit(
        photographs,
        methods=["ncm", "slda"],
        network="histogram",
        settings={"train": "head"},
        orders=["listed"],
        steps=2,
        design="full",
        runs=tmp_path / "runs",
    )
    assert isinstance(done.findings, Findings)
    assert done.next_step[0] == (
        "farshore learn model/ first-site/ --name 'site 1' "
        f"--method {done.findings.choice.method} --network histogram --train head"
    )
    with pytest.raises(FarshoreError, match=r"runs failed.* train = 'head' is not allowed for"):
        farshore.audit(
            photographs,
            methods=["ncm"],
            network="cnn",
            settings={"train": "head"},
            orders=["listed"],
            runs=tmp_path,
        )
