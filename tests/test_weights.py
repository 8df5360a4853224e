"""Weights of rows: equal ones change nothing, and integers are repetitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import farshore
from farshore import Learner, Run, execute
from farshore.data.domain import Domain
from farshore.deployment.changes import learn
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import FarshoreError
from farshore.methods import METHODS
from farshore.tasks.classification import empirical_risk
from farshore.testing import differences, toy_learner, toy_rows


def learned(method: str, weights: Any, domains: int = 2, **options: Any) -> Learner:
    learner = toy_learner(method, **options)
    for number in range(domains):
        x, y = toy_rows(number)
        given = weights(len(y)) if callable(weights) else weights
        learner.learn(x, y, domain=f"d{number}", steps=4, weights=given)
    return learner


def growing(rows: int) -> Tensor:
    return torch.arange(rows) % 3


@pytest.mark.parametrize("method", ["er", "cl-coral", "ridge", "trees"])
def test_equal_weights_change_nothing_and_others_do(method: str, tmp_path: Path) -> None:
    plain = learned(method, None)
    for equal in (torch.ones, lambda rows: np.full(rows, 0.1)):
        same = learned(method, equal)
        assert differences(plain.state_dict(), same.state_dict()) == []
    other = learned(method, growing)
    inputs = toy_rows(5)[0]
    assert not torch.equal(plain.logits(inputs), other.logits(inputs))
    other.save(tmp_path)
    loaded = farshore.load(tmp_path)
    for learner in (other, loaded):
        learner.learn(*toy_rows(2), domain="d2", steps=4)  # without weights: all count 1
    assert differences(other.state_dict(), loaded.state_dict()) == []


@pytest.mark.parametrize("method", ["ridge", "ncm", "slda"])
def test_whole_weights_are_repetitions_in_sums(method: str) -> None:
    settings = {"random_features": 20} if method == "ridge" else {}
    weighted, repeated = (
        Learner(method=method, settings=settings, preprocess="none", classes=[0, 1])
        for _ in range(2)
    )
    for number in range(2):
        x, y = toy_rows(number)
        times = growing(len(y))
        weighted.learn(x, y, domain=f"{number}", validation=0, weights=times)
        repeated.learn(
            x.repeat_interleave(times, dim=0),
            y.repeat_interleave(times),
            domain=f"{number}",
            validation=0,
        )
    inputs = toy_rows(5)[0]
    torch.testing.assert_close(
        weighted.logits(inputs), repeated.logits(inputs), rtol=1e-4, atol=1e-5
    )


def test_whole_weights_are_repetitions_in_the_loss() -> None:
    logits, labels = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    times = torch.tensor([1, 2, 0, 3, 1, 1])
    for class_weight in (None, torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)):
        torch.testing.assert_close(
            empirical_risk(logits, labels, class_weight, times),
            empirical_risk(
                logits.repeat_interleave(times, dim=0),
                labels.repeat_interleave(times),
                class_weight,
            ),
        )


@pytest.mark.parametrize("method", ["er", "joint", "trees"])
def test_rows_of_weight_zero_are_not_learned(method: str) -> None:
    """Half of the rows have the wrong label and no weight."""
    parts = []
    for number in range(2):
        x, y = toy_rows(number, rows=100)
        wrong = torch.arange(100) % 4 < 2
        index = torch.arange(100)
        labels = torch.where(wrong, 1 - y, y)
        parts.append(Domain(f"{number}", x, labels, index, index[:0], weights=(~wrong).float()))
    learner = toy_learner(method, classes=[0, 1], memory=80)
    if method == "joint":
        learner.learn_jointly(parts, steps=60)
    else:
        for part in parts:
            learner.learn_domain(part, steps=60)
    x, y = toy_rows(0, rows=100)
    assert float((learner.logits(x).argmax(dim=1) == y).float().mean()) > 0.95


def test_methods_that_cannot_weigh_say_so() -> None:
    refusing = [name for name in METHODS.names() if not METHODS.get(name).weighs_rows]
    assert {"agem", "ewc", "cope", "er-ace"} <= set(refusing)
    assert not {"er", "finetune", "er-kd", "cl-coral", "joint", "ridge", "trees"} & set(refusing)
    with pytest.raises(FarshoreError, match="rows cannot have weights with 'agem'"):
        learned("agem", growing)
    learner = learned("er", None, domains=1)
    with pytest.raises(FarshoreError, match="weighted=True"):
        learner.learn(*toy_rows(1), domain="later", steps=1, weights=growing(48))
    for wrong, message in (
        (torch.full((48,), -1.0), "0 or more"),
        (torch.ones(3), "one number per row"),
        (torch.zeros(48), "all 0"),
    ):
        with pytest.raises(FarshoreError, match=message):
            learned("er", wrong)


def test_a_column_of_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90), "site": np.repeat(["a", "b", "c"], 30)})
    frame["y"] = np.where(frame["x"] + rng.normal(0, 1, 90) > 0, "p", "q")
    frame["w"] = 2
    weights = {}
    for name, column in {"none": None, "equal": 2, "other": np.arange(90) % 4}.items():
        path = tmp_path / f"{name}.csv"
        frame.assign(w=column).to_csv(path, index=False)
        role = {"drop": "w"} if column is None else {"weight": "w"}
        options = {"path": str(path), "domain": "site", "label": "y", **role}
        run = Run.build(benchmark="table", options=options, method="er", target="c", steps=3)
        result = execute(run)
        assert result.target is not None
        weights[name] = result.target.weights
    assert weights["none"] == weights["equal"] != weights["other"]


def test_sites_with_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = tmp_path / "model"
    for name, weights in {"a": np.ones(40), "b": np.arange(40) % 3, "c": None}.items():
        frame = pd.DataFrame({"x": rng.normal(size=40), "y": ["p", "q"] * 20})
        frame = frame if weights is None else frame.assign(w=weights)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        columns = Columns(label="y", weight="w") if name == "a" else Columns()
        data = tmp_path / f"{name}.csv"
        learn(model, data, name=name, columns=columns, new=NewModel(method="er"), steps=2)
    kept = Model.open(model).learner.system.kept_rows()
    assert set(kept["a"]["weights"].flatten().tolist()) == {1.0}
    assert set(kept["b"]["weights"].flatten().tolist()) == {0.0, 1.0, 2.0}
    assert set(kept["c"]["weights"].flatten().tolist()) == {1.0}
    site = Model.open(model).read(tmp_path / "b.csv", labelled=False)
    assert list(site.inputs.columns) == ["x"]
    assert not any("w" in note for note in site.notes)
    other = NewModel(method="agem")
    with pytest.raises(FarshoreError, match="rows cannot have weights with 'agem'"):
        learn(
            tmp_path / "other",
            tmp_path / "a.csv",
            name="a",
            columns=Columns(label="y", weight="w"),
            new=other,
        )
