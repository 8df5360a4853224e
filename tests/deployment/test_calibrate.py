"""Calibration at a new site, with and without labels."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from clinics import COLUMNS, clinic, contents, written

from farshore.deployment.changes import calibrate, learn, take_back
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.learner.loading import load
from farshore.testing import differences


def test_a_calibration_is_undone_exported_and_dropped_by_learn(work: Path) -> None:
    from farshore.deployment.export import Exported, TableInputs, encode

    model = work / "model"
    # The classes are swapped at the new site for a third of the rows: the model is too certain.
    site = clinic(30, 90)
    swapped = np.arange(90) % 3 == 0
    site.loc[swapped, "ill"] = site.loc[swapped, "ill"].map({"yes": "no", "no": "yes"})
    data = written(work, site)
    before = Model.open(model)
    rows = before.read(data, labelled=True)
    first, weights = before.predict(rows), before.learner.state_dict()
    done, _ = calibrate(model, data)
    assert done.calibration.temperature > 1.5
    assert done.after < done.before
    after = Model.open(model)
    calibrated = after.predict(rows)
    assert calibrated["p(yes)"].max() < first["p(yes)"].max()
    assert differences(weights, after.learner.state_dict()) == []
    table = TableInputs(after.learner.preprocessing)
    exported = Exported(after.learner.system.predictor(), table, after.applied)
    inputs = encode(after.learner.preprocessing, rows.inputs)
    probability = exported(*inputs.values())[:, 1].detach().numpy()
    assert np.abs(probability - calibrated["p(yes)"]).max() < 1e-5
    whole = contents(model)
    calibrate(model, data)
    assert contents(model) == whole  # the same rows again change nothing, also not what undo does
    assert take_back(model).predict(rows).equals(first)
    calibrate(model, data)
    later = clinic(6)
    learn(model, written(work, later, "6.csv"), name="6", columns=COLUMNS, new=NewModel(), steps=5)
    assert Model.open(model).calibration is None


def test_class_priors_without_labels(work: Path) -> None:
    site = clinic(1, 400, sample=3)
    ill = site[site["ill"] == "yes"]
    data = written(work, pd.concat([ill, site[site["ill"] == "no"][:20]]).drop(columns="ill"))
    done, model = calibrate(work / "model", data, labelled=False)
    assert done.kind == "class priors"
    actual = len(ill) / (len(ill) + 20)
    assert done.priors[1] == pytest.approx(actual, abs=0.04)
    assert model.applied.threshold < 0.4
    before = contents(work / "model")
    usual = written(work, clinic(1, sample=4).drop(columns="ill"))
    done, _ = calibrate(work / "model", usual, labelled=False)
    assert not done.changes
    assert contents(work / "model") == before


def test_judging_and_calibrating_never_change_what_is_trained(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "model", tmp_path / "plain")
    site = clinic(30, 60)
    site.loc[::3, "ill"] = site.loc[::3, "ill"].map({"yes": "no", "no": "yes"})
    data = written(work, site)
    model = Model.open(work / "model")
    model.judge(model.read(data, labelled=False))
    done, _ = calibrate(work / "model", data)
    assert done.changes
    after = written(work, clinic(6), "6.csv")
    for folder in (work / "model", tmp_path / "plain"):
        learn(folder, after, name="6", columns=COLUMNS, new=NewModel(), steps=3, max_drop=1)
    states = [load(folder).state_dict() for folder in (work / "model", tmp_path / "plain")]
    assert differences(*states) == []


def test_too_few_rows_are_not_calibrated_with(work: Path, typed) -> None:
    data = written(work, clinic(30)[:8])
    code, out = typed("calibrate", work / "model", data)
    assert code == 2
    assert "8 labelled rows are too few" in out
