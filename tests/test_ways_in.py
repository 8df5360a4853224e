"""The same table gives the same model, whichever way it comes in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import farshore
from farshore import FarshoreClassifier, Learner
from farshore.cli.app import main
from farshore.errors import FarshoreError
from farshore.testing import differences

SETTINGS = {"batch_size": 8, "learning_rate": 0.01}
STEPS = 5
NUMBERS = ["age", "dose", "pulse"]
SOURCES = ("north", "south", "west")


def make_table() -> pd.DataFrame:
    """Three sources and a target: numbers of very different sizes, gaps, and a category."""
    rng = np.random.default_rng(3)
    parts = []
    for number, site in enumerate((*SOURCES, "new")):
        ill = rng.random(40) < 0.5
        part = pd.DataFrame(
            {
                "age": np.round(50 + 5 * number + 10 * ill + rng.normal(0, 4, 40)),
                "dose": np.round(8000 * (1 + ill + rng.normal(0, 0.2, 40))) / 8,
                "ward": rng.choice(["A", "B"], 40),
                "pulse": np.where(rng.random(40) < 0.2, np.nan, np.round(60 + 9 * ill)),
                "outcome": np.where(ill, "ill", "well"),
            }
        )
        parts.append(part.assign(site=site))
    return pd.concat(parts, ignore_index=True)


def type_in(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["farshore", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code


SET = [f"--set={name}={value}" for name, value in SETTINGS.items()]


def by_run(table: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Learner:
    table.to_csv(folder / "all.csv", index=False)
    roles = ["--domain=site", "--label=outcome", "--target=new"]
    line = ["run", "all.csv", "er", *roles, "--memory=20", "--out=out"]
    type_in(monkeypatch, *line, f"--steps={STEPS}", "--network-set=width=8", *SET)
    return farshore.load(next((folder / "out").glob("*/model")))


def by_learn(table: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Learner:
    for site in SOURCES:
        table[table["site"] == site].drop(columns="site").to_csv(folder / "one.csv", index=False)
        new = (
            ["--memory=20", "--network-set=width=8", *SET, "--method=er"] if site == "north" else []
        )
        line = ["learn", "model", "one.csv", "--label=outcome", f"--name={site}"]
        type_in(monkeypatch, *line, f"--steps={STEPS}", *new)
    return farshore.load(folder / "model")


def in_turn(
    table: pd.DataFrame, form: Callable[[pd.DataFrame, np.ndarray], tuple[Any, Any]]
) -> Learner:
    """A learner that gets each source in this form."""
    learner = Learner(method="er", memory=20, settings=SETTINGS, network_settings={"width": 8})
    for site in SOURCES:
        rows = table[table["site"] == site]
        x, y = form(rows.drop(columns=["site", "outcome"]), rows["outcome"].to_numpy())
        learner.learn(x, y, domain=site, steps=STEPS)
    return learner


def codes(labels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy((labels == "well").astype(np.int64))


def dataset(rows: pd.DataFrame, labels: np.ndarray) -> TensorDataset:
    return TensorDataset(torch.from_numpy(rows.to_numpy()), codes(labels))


class Stream(IterableDataset):
    """Batches of rows, without a length."""

    def __init__(self, rows: TensorDataset) -> None:
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


WAYS: dict[str, Callable[[pd.DataFrame, np.ndarray], tuple[Any, Any]]] = {
    "frame": lambda x, y: (x, y),
    "frame with a name list": lambda x, y: (x.set_axis(range(100, 100 + len(x))), list(y)),
    "float32 array": lambda x, y: (x.to_numpy(np.float32), y),
    "tensor": lambda x, y: (torch.from_numpy(x.to_numpy()), y),
    "list of rows": lambda x, y: (x.to_numpy().tolist(), y.tolist()),
    "list of tuples": lambda x, y: (list(x.itertuples(index=False, name=None)), y.tolist()),
    "Dataset": lambda x, y: (dataset(x, y), None),
    "DataLoader": lambda x, y: (DataLoader(dataset(x, y), batch_size=7), None),
    "shuffled": lambda x, y: (DataLoader(dataset(x, y), batch_size=7, shuffle=True), None),
    "streamed": lambda x, y: (DataLoader(Stream(dataset(x, y)), batch_size=7), None),
}


def trained(learner: Learner) -> dict[str, Any]:
    """The whole state but the names of columns and classes, which arrays do not have."""
    state = learner.state_dict()
    columns = state["preprocessing"]
    columns["numbers"] = list(columns["numbers"].values())
    columns["categories"] = list(columns["categories"].values())
    return {"system": state["system"], "columns": {**columns, "columns": None}}


def test_a_table_of_numbers_gives_one_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = make_table().drop(columns="ward")
    usual = in_turn(table, WAYS["frame"])
    learners = {"learn": by_learn(table, tmp_path, monkeypatch)}
    learners["run"] = by_run(table, tmp_path, monkeypatch)
    learners |= {name: in_turn(table, form) for name, form in WAYS.items()}
    for name, learner in learners.items():
        assert differences(trained(usual), trained(learner)) == [], name
    new = table[table["site"] == "new"][NUMBERS]
    expected = usual.predict_proba(new)
    labels = codes(table["outcome"][table["site"] == "new"].to_numpy())
    for form in (
        new,
        new.to_numpy(),
        new.to_numpy().tolist(),
        TensorDataset(torch.from_numpy(new.to_numpy()), labels),
        DataLoader(dataset(new, labels.numpy()), batch_size=9),
    ):
        for name in ("run", "frame", "DataLoader"):
            if name == "DataLoader" and isinstance(form, pd.DataFrame):
                continue  # it learned columns without names
            assert np.array_equal(learners[name].predict_proba(form), expected), name


@pytest.mark.parametrize("named", [True, False])
def test_the_estimator_gives_the_same_model(named: bool) -> None:
    table = make_table()
    sources = table[table["site"] != "new"]
    usual = in_turn(table if named else table.drop(columns="ward"), WAYS["frame"])
    x = sources.drop(columns=["site", "outcome"])
    x = x if named else x[NUMBERS].to_numpy()
    classifier = FarshoreClassifier(
        "mlp", memory=20, steps=STEPS, settings=SETTINGS, network_settings={"width": 8}
    ).fit(x, sources["outcome"], domain=sources["site"])
    assert differences(trained(usual), trained(classifier.learner_)) == []
    new = table[table["site"] == "new"]
    inputs = new.drop(columns=["site", "outcome"]) if named else new[NUMBERS].to_numpy()
    assert np.array_equal(classifier.predict_proba(inputs), usual.predict_proba(inputs))
    assert list(classifier.predict(inputs)) == list(usual.predict(inputs))


def test_categories_come_in_by_files_frames_and_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = make_table()
    usual = in_turn(table, WAYS["frame"])
    others = {
        "learn": by_learn(table, tmp_path, monkeypatch),
        "run": by_run(table, tmp_path, monkeypatch),
        "rows": in_turn(table, lambda x, y: (x.to_numpy().tolist(), y)),
        "objects": in_turn(table, lambda x, y: (x.to_numpy(), y)),
    }
    for name, learner in others.items():
        assert differences(trained(usual), trained(learner)) == [], name
    new = table[table["site"] == "new"].drop(columns=["site", "outcome"])
    assert np.array_equal(
        others["rows"].predict_proba(new.to_numpy().tolist()), usual.predict_proba(new)
    )


def test_polars_frames_are_frames() -> None:
    polars = pytest.importorskip("polars")
    table = make_table()
    usual = in_turn(table, WAYS["frame"])
    others = in_turn(
        table,
        lambda x, y: (polars.DataFrame({name: x[name].tolist() for name in x}), polars.Series(y)),
    )
    assert differences(usual.state_dict(), others.state_dict()) == []


def test_the_switch_is_saved(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(20, 3)), [0, 1] * 10
    raw = Learner(memory=5, network_settings={"width": 8}, preprocess="none")
    raw.save(tmp_path / "model")
    raw = farshore.load(tmp_path / "model")
    raw.learn(x, y, steps=1)
    assert raw.shape == (3,)
    with pytest.raises(FarshoreError, match="NaN or infinite"):
        raw.predict(np.full((2, 3), np.nan))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((6, 8, 8, 3), np.uint8), r"transpose\(0, 3, 1, 2\)"),
        (np.zeros((6, 8, 8, 1), np.float32), "channels last"),
        (np.full((6, 1, 8, 8), 200.0), 'astype\\("uint8"\\)'),
        (np.full((6, 3, 8, 8), -1.0), "from 0 to 1"),
        ([[1, 2], [3]] * 3, "different lengths"),
        (DataLoader([({"a": 1}, 0)] * 6, batch_size=2), "batches of dict"),
    ],
)
def test_what_could_be_misread_is_refused(x: Any, message: str) -> None:
    network = "cnn" if isinstance(x, np.ndarray) else "mlp"
    learner = Learner(network, memory=5, network_settings={"width": 8})
    y = None if isinstance(x, DataLoader) else [0, 1] * 3
    with pytest.raises(FarshoreError, match=message):
        learner.learn(x, y, steps=1)
    assert learner.domains == []


def test_quantities_are_no_classes() -> None:
    x, y = np.zeros((30, 2)), np.linspace(0, 1, 30)
    learner = Learner("mlp", memory=5)
    learner.learn(x, y, steps=1)
    assert learner.task.name == "regression"
    Learner(memory=5, network_settings={"width": 4}).learn(x, np.arange(30.0) % 15, steps=1)
