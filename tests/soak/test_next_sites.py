"""Many made sites: how often the verdict is right, and how often the interval of an estimate."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from clinics import clinic, failing, make_model
from made_sites import Made, make_sites

from farshore.deployment.calibrate import fit_labelled
from farshore.deployment.changes import learn
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.results.expectation import Expectation

pytestmark = pytest.mark.soak

DATA_SETS = 40


def judged(model: Model, folder: Path, frame) -> tuple[bool, float]:
    """Whether there is an alarm, and the accuracy."""
    frame.to_csv(folder / "new.csv", index=False)
    site = model.read(folder / "new.csv", labelled=True)
    logits, labels = model.outputs(site)
    verdict = model.judge(site).verdict
    return verdict.alarm, float((logits.argmax(dim=1) == labels).float().mean())


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Model]:
    """Four models of four clinics each, none of which any other has."""
    made = {}
    for seed in range(1, 5):
        folder = tmp_path_factory.mktemp("clinics")
        made[seed] = Model.open(make_model(folder, 4, seed=seed))
    return made


def test_twenty_fresh_samples_of_known_sites_are_silent(
    models: dict[int, Model], tmp_path: Path
) -> None:
    frames = [
        (model, clinic(100 * seed + number % 4, sample=1 + number))
        for seed, model in models.items()
        for number in range(5)
    ]
    alarms = [judged(model, tmp_path, frame)[0] for model, frame in frames]
    assert len(alarms) == 20
    assert sum(alarms) <= 2


def test_twenty_unseen_sites_without_harm_are_silent(
    models: dict[int, Model], tmp_path: Path
) -> None:
    alarms = []
    for seed, model in models.items():
        for number in range(5):
            alarm, accuracy = judged(model, tmp_path, clinic(100 * seed + 50 + number))
            assert accuracy > 0.9
            alarms.append(alarm)
    assert len(alarms) == 20
    assert sum(alarms) <= 2


def test_every_site_where_a_model_fails_is_an_alarm(
    models: dict[int, Model], tmp_path: Path
) -> None:
    for seed, model in models.items():
        for name, frame in failing(100 * seed + 70).items():
            alarm, accuracy = judged(model, tmp_path, frame)
            assert accuracy < 0.8, (seed, name)
            assert alarm, (seed, name)


def estimated(folder: Path, seed: int) -> tuple[bool, float]:
    """Whether the interval contains the accuracy at the new site, and its width."""
    table = make_sites(Made(tail=seed % 2 == 1), seed)
    sites = {name: rows.drop(columns="site") for name, rows in table.groupby("site", sort=False)}
    *known, new = sites
    for name in known:
        sites[name].to_csv(folder / "site.csv", index=False)
        learn(
            folder / f"model{seed}",
            folder / "site.csv",
            name=name,
            columns=Columns(label="ill"),
            new=NewModel(method="ncm") if name == known[0] else NewModel(),
            steps=1,
        )
    sites[new].to_csv(folder / "site.csv", index=False)
    model = Model.open(folder / f"model{seed}")
    site = model.read(folder / "site.csv", labelled=True)
    logits, labels = model.outputs(site)
    accuracy = float((logits.argmax(dim=1) == labels).float().mean())
    done = model.judge(site).expected
    if not isinstance(done, Expectation):
        return False, np.nan
    return done.low <= accuracy <= done.high, done.width


def test_the_interval_of_an_estimate_covers_what_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over 40 made data sets, 32 or more; the median width is at most 17 points."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here survives a power cut
    covered, widths = zip(*(estimated(tmp_path, seed) for seed in range(DATA_SETS)), strict=True)
    assert sum(covered) >= 32, covered
    assert np.nanmedian(widths) <= 0.17
    assert np.isnan(widths).sum() <= 4


def test_thirty_rows_calibrate_and_never_harm_beyond_their_interval() -> None:
    """Made logits with a wrong temperature and wrong priors: 40 sites, 30 rows each."""
    draws = np.random.default_rng(0)
    gains, below = [], 0
    for _ in range(40):
        scale, shift = np.exp(draws.normal(0.7, 0.5)), draws.normal(0, 0.7)
        labels = (draws.random(1030) < 1 / (1 + np.exp(-shift))).astype(int)
        score = draws.normal(2.0 * labels - 1.0, 1.0)
        logits = scale * np.stack([-score, score], axis=1)
        done = fit_labelled(logits[:30], labels[:30], metric="accuracy", usual=1.0)
        after = done.calibration.apply(logits[30:])
        gains.append(_loss(logits[30:], labels[30:]) - _loss(after, labels[30:]))
        change = (after.argmax(1) == labels[30:]).mean() - (
            logits[30:].argmax(1) == labels[30:]
        ).mean()
        below += change < done.low
    assert np.mean(gains) > 0.02
    assert np.mean(np.array(gains) < -0.02) <= 0.1
    assert below == 0


def _loss(logits: np.ndarray, labels: np.ndarray) -> float:
    from farshore.tasks.calibration import log_losses

    return float(log_losses(logits, labels).mean())
