"""Calibration at a new site, with a few labels."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from clinics import COLUMNS, clinic, contents, written
from exported import encode

from farshore.deployment.calibrate import fit_labelled
from farshore.deployment.changes import calibrate, learn, take_back
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.learner.loading import load
from farshore.tasks.calibration import fit_offsets
from farshore.testing import differences


def test_a_calibration_is_undone_exported_and_dropped_by_learn(work: Path) -> None:
    from farshore.deployment.export import Exported, TableInputs

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
    assert done.after.score("log_loss") < done.before.score("log_loss")
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


def test_a_model_calibrated_to_class_priors_still_loads_and_predicts(work: Path) -> None:
    """As an earlier version wrote it, from rows without labels."""
    model = Model.open(work / "model")
    rows = model.read(written(work, clinic(30, 60)), labelled=True)
    plain = model.outputs(rows)[0].numpy()
    model.calibration = {
        "temperature": 2.0,
        "offsets": [0.5, -0.5],
        "rows": 60,
        "labelled": False,
        "when": "2026-11-16T09:07:00+00:00",
    }
    model.save()
    after = Model.open(work / "model").outputs(rows)[0].numpy()
    assert np.abs(after - (plain / 2 + [0.5, -0.5])).max() < 1e-12


def made_logits(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits that are too large and lean to the first of three classes."""
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, 3, rows)
    logits = 4 * (np.eye(3)[labels] + draws.normal(0, 0.6, (rows, 3)) + [0.7, 0.0, 0.0])
    return logits, labels


def test_scores_before_and_after_are_those_of_rows_that_were_left_out() -> None:
    """Against a second implementation: 60 rows, each by a fit on the 59 others."""
    logits, labels = made_logits(60, 0)
    done = fit_labelled(logits, labels, metric="accuracy", usual=1.0)
    assert done.kind == "temperature and offsets"
    after = np.empty_like(logits)
    for row in range(60):
        others = np.arange(60) != row
        fit = fit_offsets(logits[others], labels[others], trust=1.0, trust_t=4.0)
        after[row] = logits[row] / fit.temperature + fit.offsets
    for measured, outputs in ((done.before, logits), (done.after, after)):
        said = outputs.argmax(axis=1)
        recalls = [float((said[labels == each] == each).mean()) for each in range(3)]
        assert measured.recalls == pytest.approx(dict(enumerate(recalls)))
        assert measured.score("accuracy") == pytest.approx((said == labels).mean())
        assert measured.score("balanced_accuracy") == pytest.approx(np.mean(recalls))
    assert done.counts == dict(enumerate(np.bincount(labels)))


def test_a_change_that_lowers_the_metric_is_refused(work: Path, typed) -> None:
    """A rare class is given up for a better log loss: a temperature is all that is taken."""
    model = Model.open(work / "model")
    model.learner.metric = "macro_f1"
    model.save()
    site = clinic(30, 400)
    healthy, ill = site[site["ill"] == "no"], site[site["ill"] == "yes"]
    few = pd.concat([healthy, ill[:4], ill[4:10].assign(ill="no")])
    code, out = typed("calibrate", work / "model", written(work, few))
    assert code == 0, out
    refused = re.search(
        r"refused: temperature and threshold, which would lower the macro F1 from (.*?)% to (.*?)%",
        out,
    )
    assert float(refused[1]) > float(refused[2])
    assert "farshore learn" in out
    assert "\nmacro F1: {0}% before, {0}% after".format(refused[1]) in out
    assert Model.open(work / "model").applied.offsets == (0.0, 0.0)


def test_the_command_says_what_a_calibration_is_worth(work: Path, typed) -> None:
    site = clinic(30, 90)
    site.loc[::3, "ill"] = site.loc[::3, "ill"].map({"yes": "no", "no": "yes"})
    code, out = typed("calibrate", work / "model", written(work, site))
    assert code == 0, out
    for words in ("log loss: ", "accuracy: ", "balanced accuracy: ", "recall of yes: "):
        assert f"\n{words}" in out
    assert typed("calibrate", work / "model", work / "new.csv", "--unlabelled")[0] == 2


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
