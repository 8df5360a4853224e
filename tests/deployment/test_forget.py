"""Forgetting a site: what is removed, and what is said to remain."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from clinics import COLUMNS, clinic, contents, make_model, written

from farshore.deployment.changes import calibrate, forget, learn, take_back
from farshore.deployment.familiarity import past_rows
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.errors import FarshoreError
from farshore.learner.loading import load


def test_forget_says_what_remains_and_nothing_else_does(work: Path, typed) -> None:
    model = work / "model"
    opened = Model.open(model)
    rows = [row.numpy().tobytes() for row in opened.held_out["clinic 1"]["inputs"]]
    assert len(rows) == 30
    calibrate(model, written(work, clinic(6, 60)))
    code, out = typed("forget", model, "clinic 1")
    assert code == 0, out
    assert "- the weights, which were trained on its rows and do not change" in out
    stored = b"".join(contents(model).values())
    assert not any(row in stored for row in rows)
    assert b"clinic 1" not in stored
    log = Model.open(model).log
    assert log[1].site.startswith("forgotten site ")
    assert log[1].rows is None
    assert all("clinic 1" not in {**entry.before, **entry.after} for entry in log)
    assert log[-1].action == "forgot"


def test_a_closed_form_forgets_without_weights(by_sums: Path, tmp_path: Path, typed) -> None:
    shutil.copytree(by_sums / "model", tmp_path / "model")
    code, out = typed("forget", tmp_path / "model", "clinic 0")
    assert code == 0
    assert "The weights were recomputed without it." in out
    assert "which were trained on its rows" not in out
    assert set(Model.open(tmp_path / "model").reliability) == {"clinic 1", "clinic 2"}


@pytest.mark.parametrize("method", ["der++", "cope"])
def test_a_memory_that_mixes_sites_is_emptied(tmp_path: Path, method: str, typed) -> None:
    model = make_model(tmp_path, 2, method, steps=2)
    mixed = past_rows(load(model))
    rows = [row.numpy().tobytes() for inputs, _ in mixed.values() for row in inputs]
    assert len(rows) > 20
    code, out = typed("forget", model, "clinic 0")
    assert code == 0, out
    assert "does not tell sites apart: it was emptied" in out
    stored = b"".join(contents(model).values())
    held_out = Model.open(model).held_out["clinic 1"]["inputs"].numpy()
    assert not any(row in stored for row in set(rows) - {row.tobytes() for row in held_out})
    data = written(tmp_path, clinic(2))
    learn(model, data, name="next", columns=COLUMNS, new=NewModel(), steps=2, max_drop=1)
    assert past_rows(load(model))


def test_forgetting_in_python_removes_held_out_rows_from_the_previous_version(work: Path) -> None:
    forgotten = forget(work / "model", "clinic 0")
    assert "clinic 0" not in {**forgotten.held_out, **forgotten.sites}
    with pytest.raises(FarshoreError, match="keeps no previous version"):
        take_back(work / "model")
