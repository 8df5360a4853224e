"""A model of a number in a folder: gates, intervals, calibration, export and what must not leak."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numbered import table

import farshore
from farshore.deployment.calibrate import fit_numbers
from farshore.deployment.card import model_card
from farshore.deployment.changes import calibrate, forget, learn, take_back
from farshore.deployment.export import Exported, TableInputs, describe, trial_inputs
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import FarshoreError
from farshore.results.expectation import row_sets
from farshore.tasks.calibration import unchanged
from farshore.tasks.regression import Regression
from farshore.testing import differences

SITES = tuple("abcdefg")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sites")
    files = {}
    for site, rows in table(60, sites=SITES).groupby("site"):
        files[str(site)] = folder / f"{site}.csv"
        rows.drop(columns=["site", "y2"]).to_csv(files[str(site)], index=False)
    return files


def taught(folder: Path, sites: dict[str, Path], names: str, method: str = "ridge") -> Path:
    for name in names:
        columns = Columns(label="y", unit="kWh") if name == names[0] else Columns()
        learn(
            folder, sites[name], name=name, columns=columns, new=NewModel(method=method), steps=20
        )
    return folder


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, sites: dict[str, Path]) -> Path:
    return taught(tmp_path_factory.mktemp("made") / "model", sites, "abcde")


@pytest.fixture
def model(first: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first, tmp_path / "model"))


def test_the_interval_is_that_of_errors_before_a_site_was_learned(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    """Recomputed from models that stopped before each site."""
    opened = Model.open(model)
    errors, scores, rows = [], [], []
    for names, new in (("ab", "c"), ("abc", "d"), ("abcd", "e")):
        before = Model.open(taught(tmp_path / names, sites, names))
        frame = pd.read_csv(sites[new])
        predicted = before.predict(before.read(sites[new], labelled=False))["prediction"]
        away = np.abs(frame["y"].to_numpy() - predicted.to_numpy())
        errors.append(away.mean())
        scores.append(np.sort(away) / before.learner.known_task.scale[0])
        rows.append(len(frame))
    found = [each["error"] for each in opened.knowledge.measured]
    assert found == pytest.approx(errors, rel=1e-4)
    quantiles = [
        [
            float(np.quantile(each, share, method="higher"))
            for share in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 1.0)
        ]
        for each in scores
    ]
    sets = row_sets(quantiles, rows, "regression")
    said = opened.predict(opened.read(sites["f"], labelled=False))
    half = (said["high"] - said["low"]).to_numpy() / 2
    assert half == pytest.approx(sets.most * opened.learner.known_task.scale[0], rel=1e-3)
    assert ((said["low"] + said["high"]) / 2).to_numpy() == pytest.approx(said["prediction"])
    truth = pd.read_csv(sites["f"])["y"].to_numpy()
    assert ((truth >= said["low"]) & (truth <= said["high"])).mean() > 0.7


def test_with_two_measured_sites_there_is_no_interval(
    sites: dict[str, Path], tmp_path: Path
) -> None:
    opened = Model.open(taught(tmp_path / "m", sites, "ab"))
    said = opened.predict(opened.read(sites["f"], labelled=False))
    assert "low" not in said
    assert (
        "at least 3 sites"
        in opened.judge_numbers(opened.read(sites["f"], labelled=False)).sets.reason
    )


def test_gates_are_in_the_unit_and_errors_must_not_rise(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    shuffled = pd.read_csv(sites["f"])
    shuffled["y"] += 500
    shuffled.to_csv(tmp_path / "moved.csv", index=False)
    before = Model.open(model).learner.state_dict()
    with pytest.raises(FarshoreError, match=r"its validation mae is .*, above --min-score 0.001"):
        learn(
            *(model, sites["f"]),
            name="f",
            columns=Columns(),
            new=NewModel(),
            min_score=0.001,
        )
    assert differences(before, Model.open(model).learner.state_dict()) == []
    with pytest.raises(FarshoreError, match="give a distance in the label's unit"):
        learn(model, sites["f"], name="f", columns=Columns(), new=NewModel(), min_score=-1.0)
    rows = taught(tmp_path / "er", sites, "ab", "er")
    with pytest.raises(FarshoreError, match=r"the mae rose from .* by more than --max-drop 1"):
        learn(
            *(rows, tmp_path / "moved.csv"),
            name="moved",
            columns=Columns(),
            new=NewModel(),
            max_drop=1.0,
            steps=200,
        )


def test_the_same_command_again_learns_nothing(model: Path, sites: dict[str, Path]) -> None:
    done = learn(model, sites["e"], name="e", columns=Columns(), new=NewModel(), steps=20)
    assert any("was learned already" in note for note in done.notes)


def test_forgetting_gives_the_model_of_the_others(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    forget(model, "c")
    without = Model.open(taught(tmp_path / "without", sites, "abde"))
    opened = Model.open(model)
    site = opened.read(sites["f"], labelled=False)
    found = opened.predict(site)["prediction"].to_numpy()
    assert found == pytest.approx(without.predict(site)["prediction"].to_numpy(), rel=1e-4)
    assert "c" not in opened.sites


def test_calibration_moves_predictions_and_undo_takes_it_back(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    moved = pd.read_csv(sites["f"])
    moved["y"] = 2 * moved["y"] - 400
    moved[:20].to_csv(tmp_path / "few.csv", index=False)
    moved[20:].to_csv(tmp_path / "rest.csv", index=False)
    opened = Model.open(model)
    rest = opened.read(tmp_path / "rest.csv", labelled=True)
    before = opened.learner.known_task.score("mae", *opened.outputs(rest))
    done, _ = calibrate(model, tmp_path / "few.csv")
    after = Model.open(model)
    assert done.kind.startswith("slope and intercept")
    assert 1 / done.calibration.temperature == pytest.approx(2, rel=0.1)
    assert after.learner.known_task.score("mae", *after.outputs(rest)) < 0.2 * before
    assert "kWh" in model_card(after, "m")
    take_back(model)
    again = Model.open(model)
    assert again.learner.known_task.score("mae", *again.outputs(rest)) == before


def test_a_line_is_the_ridge_regression_of_the_errors() -> None:
    """Against the normal equations of y - z = (slope - 1) z + intercept, with both priors."""
    draws = np.random.default_rng(0)
    z = draws.normal(size=(40, 1))
    y = 1.5 * z + 0.3 + 0.1 * draws.normal(size=(40, 1))
    task = Regression(("y",), (0.0,), (1.0,))
    done = fit_numbers(task, z, y, usual=None)
    x = np.column_stack([z, np.ones(40)])
    noise = np.var(y - z)
    slope, intercept = np.linalg.solve(x.T @ x + np.diag([4 * noise, noise]), x.T @ (y - z)[:, 0])
    assert 1 / done.calibration.temperature == pytest.approx(1 + slope)
    assert done.calibration.offsets[0] == pytest.approx(intercept)
    assert done.calibration.apply(z) == pytest.approx((1 + slope) * z + intercept)
    twice = np.repeat(z[:20], 2, axis=0)  # the errors have nothing to do with z
    same = fit_numbers(task, twice, twice + np.tile([[0.1], [-0.1]], (20, 1)), usual=None)
    assert (same.kind, same.spread) == ("nothing", 1.0)
    wide = fit_numbers(task, z, y, usual=0.01)
    assert wide.spread > 2
    with pytest.raises(FarshoreError, match="9 labelled rows are too few"):
        fit_numbers(task, z[:9], y[:9], usual=None)


@pytest.mark.parametrize("log", [False, True])
def test_an_exported_model_says_the_values_of_the_learner(log: bool) -> None:
    frame = table(60, sites=("a",))
    learner = farshore.Learner(method="ridge", task="regression")
    learner.learn(frame[["x", "z"]], frame["y"], domain="a")
    task = learner.known_task
    assert isinstance(task, Regression)
    inputs = TableInputs(learner.preprocessing)
    exported = Exported(learner.predictor(), inputs, unchanged(1), task).eval()
    with torch.no_grad():
        values = exported(*trial_inputs(learner).values())
        prepared = inputs(trial_inputs(learner)["numbers"], None, None)
    expected = task.values(learner.predictor()(prepared))
    assert values.numpy() == pytest.approx(expected, rel=1e-5)
    facts = json.loads(json.dumps(describe(learner, ["numbers"])))
    assert facts["task"]["name"] == "regression"
    if log:
        logs = Regression.fitted(np.exp(frame[["x"]].to_numpy()), ["y"], log=True, unit="EUR")
        outputs = torch.randn(5, 1)
        assert logs.delivered(outputs).numpy() == pytest.approx(logs.values(outputs), rel=1e-5)
        assert logs.state_dict()["unit"] == "EUR"


def test_rows_without_a_label_are_left_out_and_counted(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    frame = pd.read_csv(sites["f"])
    frame.loc[[1, 5], "y"] = np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    site = Model.open(model).read(tmp_path / "gaps.csv", labelled=True)
    assert len(site) == len(site.labels or []) == 58
    assert any("2 rows without a label left out" in note for note in site.notes)
    frame["y"] = frame["y"].astype(object)
    frame.loc[3, "y"] = "much"
    frame.to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(FarshoreError, match="row 3: 'much' is not a finite number"):
        Model.open(model).read(tmp_path / "text.csv", labelled=True)


def test_advice_for_classes_is_refused_for_numbers(model: Path, sites: dict[str, Path]) -> None:
    opened = Model.open(model)
    with pytest.raises(FarshoreError, match="for a number, `farshore predict` says"):
        opened.judge(opened.read(sites["f"], labelled=False))


@pytest.mark.parametrize(
    ("name", "value"), [("error", -1.0), ("row score 1", 0.0)], ids=["error", "score"]
)
def test_a_damaged_measurement_is_refused(model: Path, name: str, value: float) -> None:
    opened = Model.open(model)
    arrival = opened.sites["e"]["arrival"]
    assert name in arrival
    arrival[name] = value
    opened.save()
    with pytest.raises(FarshoreError, match="arrival"):
        Model.open(model)
