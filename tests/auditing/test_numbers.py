"""The audit of a table whose label is a number, beside second computations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numbered import table

import farshore
from farshore.auditing.audit import Audit
from farshore.auditing.decision import Readiness, decide, gather_skill, useless
from farshore.results.expectation import Basis, Expectation, expect, expect_in
from farshore.tasks.metrics import MEAN_GUESS, METRICS

MAE, SITES = METRICS["mae"], tuple("abcdef")


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Audit]:
    frame = table(40, sites=SITES)
    shuffled = frame.assign(y=frame["y"].sample(frac=1, random_state=0).to_numpy())
    return {
        name: farshore.audit(
            rows,
            domain="site",
            label="y",
            drop="y2",
            unit="kWh",
            methods=["ridge", "finetune"],
            orders=["listed"],
            steps=20,
            design="full",
            runs=tmp_path_factory.mktemp(name),
        )
        for name, rows in (("real", frame), ("shuffled", shuffled))
    }


def test_the_error_to_expect_is_in_the_unit_and_ridge_leads_by_the_lower_error(
    audits: dict[str, Audit],
) -> None:
    found = audits["real"].findings
    assert found.ranking.metric.text(2.0) == "2.000"
    assert found.ranking.metric.unit == " kWh"
    assert found.ranking.ranked[0].row == "ridge"
    assert found.expectation.low < found.mean < found.expectation.high
    assert found.classes == ()
    assert audits["real"].decision.startswith("Ready for a pilot with labels:")
    assert "kWh MAE at a new site with ridge" in audits["real"].verdict
    asked = "What score should I expect at a new site?"
    assert "Against the sources' mean: skill +" in audits["real"].answers[asked]
    assert "How well does it recognise each class?" not in audits["real"].answers
    assert (
        "--task" not in audits["real"].next_step[0] or "regression" in audits["real"].next_step[0]
    )


@pytest.mark.parametrize("name", ["real", "shuffled"])
def test_the_skill_has_the_sign_of_a_second_computation(
    audits: dict[str, Audit], name: str
) -> None:
    """From labels and predictions that a run keeps, and the mean of its sources' labels."""
    done = audits[name]
    gains, guessed = {}, {}
    for row, result in zip(done.frame["row"], done.frame["result"], strict=True):
        if row != done.findings.choice.method:
            continue
        y, predicted = np.array(result.target.examples).T
        assert len(y) == 40
        mean = result.task["mean"][0] * result.task["scale"][0] + result.task["centre"][0]
        gain = np.abs(y - mean) - np.abs(y - predicted)
        gains[result.target.name] = gain.mean()
        guessed[result.target.name] = np.abs(y - mean).mean()
        error = gain.std(ddof=1) / np.sqrt(40) / np.abs(y - mean).mean()
        assert result.target.scores["skill_error"] == pytest.approx(error, rel=1e-6)
    evidence = done.findings.evidence
    assert len(gains) == 6
    skill = sum(gains.values()) / sum(guessed.values())
    assert evidence.excess.mean == pytest.approx(skill, abs=1e-6)
    if name == "real":
        assert evidence.excess.low > 0.5
    else:
        assert evidence.excess.low < 0.05
        assert done.decision.startswith("Do not deploy:")
        assert "the sources' mean" in done.decision


def test_sums_give_the_scores_of_the_runs_and_sites_are_worth_something(
    audits: dict[str, Audit],
) -> None:
    done = audits["real"]
    ridge = done.frame[done.frame["row"] == "ridge"].set_index("target")["score"]
    for site, score in done.sums["ridge"].scores.items():
        assert score == pytest.approx(ridge[site], rel=1e-3)
    assert "(kWh less)" in done.answers["What does each site add?"]


def test_the_page_has_residuals_and_predictions(audits: dict[str, Audit], tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    text = audits["real"].report(tmp_path / "a.html").read_text()
    assert "How far off are the predictions at each site?" in text
    assert "Do predictions follow the labels?" in text
    assert "Sensitivity" not in text


def test_the_interval_of_errors_is_on_their_scale_and_that_of_skill_is_one_minus_it() -> None:
    errors = {site: [1.0 + 0.1 * number] for number, site in enumerate(SITES)}
    rows = dict.fromkeys(SITES, 100)
    in_units = expect_in(MAE, errors, rows)
    assert in_units is not None
    assert in_units.low > 0
    thousand = expect_in(MAE, {site: [1000 * e] for site, (e,) in errors.items()}, rows)
    assert thousand is not None
    assert thousand.high == pytest.approx(1000 * in_units.high, rel=1e-6)
    skill = expect_in(METRICS["skill"], {site: [1 - e] for site, (e,) in errors.items()}, rows)
    assert skill is not None
    assert (skill.low, skill.high) == pytest.approx((1 - in_units.high, 1 - in_units.low))
    assert expect_in(METRICS["accuracy"], {s: [0.8] for s in SITES}, rows) == expect(
        {s: [0.8] for s in SITES}, rows
    )


def test_an_interval_of_errors_is_useless_if_its_ends_differ_tenfold() -> None:
    def interval(low: float, high: float) -> Expectation:
        return Expectation(2.0, low, high, 6, Basis.MODEL)

    assert not useless(interval(100, 300), MAE)
    assert useless(interval(1, 11), MAE)


def test_models_that_do_not_beat_the_mean_are_not_deployed() -> None:
    scores = {"mae": 1.2, "guess_mae": 1.0, "skill_error": 0.1}
    bad = gather_skill({site: [scores] for site in SITES})
    assert bad is not None
    assert bad.chance > 0.9
    found = decide(MAE, None, dict.fromkeys(SITES, 2.0), 1.5, bad, None, None, MEAN_GUESS)
    assert found.outcome is Readiness.NOT
    assert found.reason.endswith("no candidate is better than the sources' mean")
