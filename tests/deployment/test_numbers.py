"""A model of a number in a folder: gates, intervals, calibration, export and what must not leak."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numbered import table
from scipy import stats

import farshore
from farshore.deployment.calibrate import fit_numbers
from farshore.deployment.card import model_card
from farshore.deployment.changes import calibrate, forget, learn, take_back
from farshore.deployment.export import (
    Exported,
    TableInputs,
    describe,
    export_model,
    trial_inputs,
)
from farshore.deployment.familiarity import past_rows
from farshore.deployment.gate import agreement_of_numbers
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.remains import what_remains
from farshore.deployment.site import Columns
from farshore.deployment.words import arrival_lines
from farshore.errors import FarshoreError
from farshore.observer import Observer
from farshore.results.expectation import expect_in, row_sets
from farshore.tasks.calibration import unchanged
from farshore.tasks.metrics import METRICS
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
    assert "at least 3 sites" in opened.judge(opened.read(sites["b"], labelled=False)).sets.reason


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
    done = fit_numbers(z, y, task=task, usual=None)
    x = np.column_stack([z, np.ones(40)])
    noise = np.var(y - z)
    slope, intercept = np.linalg.solve(x.T @ x + np.diag([4 * noise, noise]), x.T @ (y - z)[:, 0])
    assert 1 / done.calibration.temperature == pytest.approx(1 + slope)
    assert done.calibration.offsets[0] == pytest.approx(intercept)
    assert done.calibration.apply(z) == pytest.approx((1 + slope) * z + intercept)
    twice = np.repeat(z[:20], 2, axis=0)  # the errors have nothing to do with z
    same = fit_numbers(twice, twice + np.tile([[0.1], [-0.1]], (20, 1)), task=task, usual=None)
    assert (same.kind, same.spread) == ("nothing", 1.0)
    wide = fit_numbers(z, y, task=task, usual=0.01)
    assert wide.spread > 2
    with pytest.raises(FarshoreError, match="9 labelled rows are too few"):
        fit_numbers(z[:9], y[:9], task=task, usual=None)


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


def test_arrive_says_the_error_to_expect_and_what_to_do(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    """By the errors at sites before they were learned, and the error of the sources' mean there."""
    opened = Model.open(model)
    measured = opened.knowledge.measured
    guesses = []
    for known, new in (("ab", "c"), ("abc", "d"), ("abcd", "e")):
        mean = opened_mean(sites, known)
        guesses.append(np.abs(pd.read_csv(sites[new])["y"] - mean).mean())
    assert [each["guess"] for each in measured] == pytest.approx(guesses, rel=0.05)
    site = opened.read(sites["f"], labelled=False)
    arrived = opened.judge(site, "f.csv")
    errors = {str(n): [each["error"]] for n, each in enumerate(measured)}
    expected = expect_in(METRICS["mae"], errors, dict.fromkeys(errors, 60))
    assert arrived.expected == expected
    assert arrived.advice.bar == pytest.approx(np.mean(guesses), rel=0.05)
    assert str(arrived.advice.action) == "deploy"
    (text,) = [line for line in arrival_lines(arrived) if line.startswith("expected mean")]
    assert "kWh" in text
    for needed, action in (
        (expected.low / 2, {"learn the site", "do not use the model"}),
        ((expected.low + expected.high) / 2, {"label more rows"}),
    ):
        assert str(opened.judge(site, needed=needed).advice.action) in action
    far = pd.read_csv(sites["f"])
    far["x"] += 1e4
    far.to_csv(tmp_path / "far.csv", index=False)
    arrived = opened.judge(opened.read(tmp_path / "far.csv", labelled=False))
    assert str(arrived.advice.action) == "do not use the model"
    assert arrived.expected.reason.startswith("the site is out of range")


def opened_mean(sites: dict[str, Path], names: str) -> float:
    return float(pd.concat([pd.read_csv(sites[name]) for name in names])["y"].mean())


def test_labels_that_have_nothing_to_do_with_the_inputs_are_refused(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    frame = pd.read_csv(sites["f"])
    frame["y"] = frame["y"].sample(frac=1, random_state=1).to_numpy()
    frame.to_csv(tmp_path / "shuffled.csv", index=False)
    before = Model.open(model).learner.state_dict()
    with pytest.raises(FarshoreError, match="its labels seem to have nothing to do with"):
        learn(model, tmp_path / "shuffled.csv", name="f", columns=Columns(), new=NewModel())
    assert differences(before, Model.open(model).learner.state_dict()) == []


def test_the_agreement_of_numbers_is_their_rank_correlation() -> None:
    draws = np.random.default_rng(0)
    y = draws.normal(size=(50, 2))
    z = y + draws.normal(size=(50, 2))
    rho = np.mean([stats.spearmanr(y[:, k], z[:, k]).statistic for k in range(2)])
    found = agreement_of_numbers(z, y)
    assert found.area == pytest.approx((1 + rho) / 2)
    by_chance = [agreement_of_numbers(draws.permutation(z), y).area for _ in range(300)]
    assert found.error > np.std(by_chance)  # two labels are averaged
    assert agreement_of_numbers(np.zeros((20, 1)), y[:20, :1]).area == 0.5
    assert agreement_of_numbers(z[:9], y[:9]) is None


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        (lambda f: f[:7], "'f' has 7 rows with a number as the label"),
        (lambda f: f.assign(y=3.0), "'f' has one value of y only"),
        (lambda f: f.assign(y=np.where(f.index == 2, np.inf, f["y"])), "row 2"),
        (lambda f: f.drop(columns="y"), "--label.*'y'"),
    ],
    ids=["few rows", "constant", "infinite", "no column"],
)
def test_bad_labels_of_a_site_are_refused_and_change_nothing(
    model: Path, sites: dict[str, Path], tmp_path: Path, edit: Any, match: str
) -> None:
    edit(pd.read_csv(sites["f"])).to_csv(tmp_path / "bad.csv", index=False)
    before = Model.open(model).learner.state_dict()
    with pytest.raises(FarshoreError, match=match) as refused:
        learn(model, tmp_path / "bad.csv", name="f", columns=Columns(), new=NewModel())
    assert "\n" not in str(refused.value)
    assert differences(before, Model.open(model).learner.state_dict()) == []


def test_another_unit_is_a_warning_that_names_the_site(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    frame = pd.read_csv(sites["f"])
    frame["y"] *= 1000
    frame.to_csv(tmp_path / "watts.csv", index=False)
    done = learn(model, tmp_path / "watts.csv", name="f", columns=Columns(), new=NewModel())
    (warning,) = [note for note in done.notes if "check that both have the same unit" in note]
    assert "at f, and" in warning
    assert "a factor of 1,0" in warning


def test_a_few_labelled_rows_are_evaluated(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    pd.read_csv(sites["f"])[:3].to_csv(tmp_path / "three.csv", index=False)
    opened = Model.open(model)
    assert len(opened.read(tmp_path / "three.csv", labelled=True)) == 3


def test_several_numbers_go_through_every_command(tmp_path: Path) -> None:
    frame = table(60, sites=SITES)
    folder, files = tmp_path / "m", {}
    for site, rows in frame.groupby("site"):
        files[site] = tmp_path / f"{site}.csv"
        rows.drop(columns="site").to_csv(files[site], index=False)
    for site in "abcd":
        columns = Columns(label="y,y2") if site == "a" else Columns()
        learn(folder, files[site], name=site, columns=columns, new=NewModel(method="ridge"))
    opened = Model.open(folder)
    assert opened.learner.known_task.labels == ("y", "y2")
    rows = pd.read_csv(files["e"])
    said = opened.predict(opened.read(files["e"], labelled=False))
    inside = [
        (rows[name] >= said[f"low {name}"]) & (rows[name] <= said[f"high {name}"])
        for name in ("y", "y2")
    ]
    assert (inside[0] & inside[1]).mean() > 0.7
    for name, close in (("y", 5), ("y2", 0.05)):
        assert said[f"prediction {name}"].to_numpy() == pytest.approx(rows[name], abs=close)
    labelled = opened.read(files["e"], labelled=True)
    scores = opened.learner.known_task.scores(*opened.outputs(labelled))
    scale = opened.learner.known_task.scale
    away = [np.abs(rows[n] - said[f"prediction {n}"]) / scale[k] for k, n in enumerate(("y", "y2"))]
    assert scores["mae"] == pytest.approx(np.mean(away), rel=1e-4)
    moved = rows.assign(y=rows["y"] + 100, y2=rows["y2"] + 0.1)
    moved[:20].to_csv(tmp_path / "few.csv", index=False)
    moved[20:].to_csv(tmp_path / "rest.csv", index=False)
    rest = opened.read(tmp_path / "rest.csv", labelled=True)
    done, after = calibrate(folder, tmp_path / "few.csv")
    assert len(done.calibration.offsets) == 2
    errors = [each.learner.known_task.score("mae", *each.outputs(rest)) for each in (after, opened)]
    assert errors[0] < 0.5 * errors[1]
    forget(folder, "b")
    assert Model.open(folder).order == ["a", "c", "d"]
    one_unit, no_column = Columns(label="y,y2", unit="kWh"), Columns(label="y,y3")
    with pytest.raises(FarshoreError, match="--unit kWh is for one label"):
        learn(tmp_path / "n", files["a"], name="a", columns=one_unit, new=NewModel())
    with pytest.raises(FarshoreError, match="unknown column in --label 'y3'"):
        learn(tmp_path / "n", files["a"], name="a", columns=no_column, new=NewModel())


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


class Killed(BaseException):
    """Like a kill: nothing catches it."""


class Stop(Observer):
    """Kills training at a step."""

    def step(self, domain: str, step: int, terms: Any) -> None:
        if step == 15:
            raise Killed


def test_a_killed_learn_continues_bit_for_bit(sites: dict[str, Path], tmp_path: Path) -> None:
    def second(folder: Path, observer: Observer | None = None) -> None:
        site = {"name": "b", "columns": Columns(), "new": NewModel(), "every": 5}
        learn(folder, sites["b"], steps=20, observer=observer, **site)

    folders = [taught(tmp_path / name, sites, "a", "er") for name in ("whole", "killed")]
    second(folders[0])
    with pytest.raises(Killed):
        second(folders[1], Stop())
    assert Model.open(folders[1]).order == ["a"]
    second(folders[1])
    whole, killed = (Model.open(folder) for folder in folders)
    assert differences(whole.learner.state_dict(), killed.learner.state_dict()) == []
    assert whole.sites["b"]["arrival"] == killed.sites["b"]["arrival"]


def test_forgetting_removes_the_rows_of_a_memory(sites: dict[str, Path], tmp_path: Path) -> None:
    folder = taught(tmp_path / "m", sites, "abc", "er")
    opened = Model.open(folder)
    kept = [row.numpy().tobytes() for row in opened.held_out["b"]["inputs"]]
    kept += [row.numpy().tobytes() for row in past_rows(opened.learner)["b"][0]]
    forget(folder, "b")
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert not any(row in stored for row in kept)
    assert any(
        "the mean, the standard deviation" in line for line in what_remains(Model.open(folder))
    )


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        (lambda m: m.held_out["b"]["labels"].fill_(np.nan), "held_out"),
        (lambda m: setattr(m.learner, "task", replace(m.learner.task, scale=(0.0,))), "scale"),
        (lambda m: setattr(m.learner, "task", replace(m.learner.task, names=("y", "z"))), "task"),
        (lambda m: m.calibration.update(spread=-1.0), "spread"),
    ],
    ids=["labels", "scale", "names", "spread"],
)
def test_a_damaged_model_is_refused(
    sites: dict[str, Path], tmp_path: Path, edit: Any, match: str
) -> None:
    folder = taught(tmp_path / "m", sites, "ab", "er")
    calibrate(folder, sites["c"])
    opened = Model.open(folder)
    edit(opened)
    opened.save()
    with pytest.raises(FarshoreError, match=match):
        Model.open(folder)


def test_a_file_for_other_programs_has_the_values_and_the_unit(
    model: Path, sites: dict[str, Path], tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    opened = Model.open(model)
    export_model(opened.learner, tmp_path / "m.onnx", opened.applied)
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
    facts = json.loads(session.get_modelmeta().custom_metadata_map["farshore"])
    assert (facts["task"]["labels"], facts["task"]["unit"]) == (["y"], "kWh")
    rows = pd.read_csv(sites["f"])
    (values,) = session.run(["values"], {"numbers": rows[["x", "z"]].to_numpy()})
    said = opened.predict(opened.read(sites["f"], labelled=False))["prediction"]
    assert values[:, 0] == pytest.approx(said.to_numpy(), rel=1e-5)
