"""The verdict on a new site: alarms where the model fails, silence where it works."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from clinics import accuracy, clinic, contents, failing, written

from farshore.deployment.arrive import Action, Nothing
from farshore.deployment.model import Model
from farshore.deployment.verdict import influences


@pytest.fixture(scope="module")
def opened(four: Path) -> Model:
    """The same model, opened once: what it computes about its sites is reused."""
    return Model.open(four / "model")


@pytest.mark.parametrize("case", failing(9))
def test_a_site_where_the_model_fails_is_an_alarm(opened: Model, tmp_path: Path, case: str) -> None:
    model = opened
    data = written(tmp_path, failing(9)[case])
    assert accuracy(model, data) < 0.8
    arrived = model.judge(model.read(data, labelled=False))
    verdict = arrived.verdict
    assert verdict.alarm
    assert verdict.different
    assert isinstance(arrived.expected, Nothing)
    assert isinstance(arrived.sets, Nothing)
    assert verdict.reasons[0] in arrived.expected.reason
    assert arrived.advice.action is Action.NOT


def test_known_sites_and_harmless_ones_are_silent(opened: Model, tmp_path: Path) -> None:
    model = opened
    frames = [clinic(0, sample=1), clinic(3, sample=1), clinic(20), clinic(21)]
    for frame in frames:
        data = written(tmp_path, frame)
        verdict = model.judge(model.read(data, labelled=False)).verdict
        assert not verdict.alarm, verdict.reasons
        assert accuracy(model, data) > 0.9
    few = written(tmp_path, clinic(20)[:5])
    verdict = model.judge(model.read(few, labelled=False)).verdict
    assert not verdict.alarm
    assert "fewer than 20 rows" in verdict.notes[0]


def test_predict_ends_with_the_verdict(four: Path, tmp_path: Path, typed) -> None:
    data = written(tmp_path, failing(9)["missing"])
    words = ["predict", four / "model", data, "-o", tmp_path / "p.csv"]
    code, out = typed(*words)
    assert code == 0
    alarm, expected, last = out.strip().splitlines()[-3:]
    assert alarm.startswith("verdict: ALARM")
    assert "100% of the values are missing, but at known sites at most 0%" in alarm
    assert expected.startswith("expected accuracy: nothing can be said: the site is out of range")
    assert last.startswith("advice: do not use the model: ")
    code, arrived = typed("arrive", four / "model", data)
    assert code == 13
    assert (
        out.strip().splitlines()[-7:]
        == arrived.splitlines()[: len(arrived.splitlines())][
            arrived.splitlines().index(last) - 6 : arrived.splitlines().index(last) + 1
        ]
    )
    assert "two-sample test: the site differs from the known ones (p < 0.0001, area 1.00" in out
    assert "mean confidence" in out


def test_a_method_without_rows_judges_by_its_summaries(by_sums: Path, tmp_path: Path) -> None:
    model = Model.open(by_sums / "model")
    assert model.held_out == {}
    assert set(model.reliability) == {"clinic 0", "clinic 1", "clinic 2"}
    rows = clinic(0)[["age", "pressure", "marker", "weight"]].to_numpy(dtype=np.float32)
    stored = b"".join(contents(by_sums / "model").values())
    inputs = model.inputs(model.read(by_sums / "clinic0.csv", labelled=True))
    assert not any(row.tobytes() in stored for row in [*rows, *inputs.numpy()])
    bad = written(tmp_path, failing(9)["drifted"])
    verdict = model.judge(model.read(bad, labelled=False)).verdict
    assert verdict.alarm
    assert verdict.area is None
    assert verdict.p_value < 0.01
    good = written(tmp_path, clinic(1, sample=1))
    verdict = model.judge(model.read(good, labelled=False)).verdict
    assert not verdict.alarm, verdict.reasons


@pytest.mark.parametrize("constant", [0.5, float("nan")])
def test_all_inputs_count_for_a_model_that_looks_at_none(constant: float) -> None:
    inputs = np.random.default_rng(0).normal(size=(30, 4))

    def same(rows: np.ndarray) -> np.ndarray:
        return np.full((len(rows), 2), constant)

    def first_column(rows: np.ndarray) -> np.ndarray:
        return rows[:, :1]

    assert influences(same, inputs, 0).all()
    assert influences(first_column, inputs, 0).tolist() == [True, False, False, False]
