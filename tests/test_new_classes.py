"""Classes that only later domains have: named at the start, or added later."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scenarios import make_scenario

import farshore
from farshore import Learner, Run, execute
from farshore.cli.app import main
from farshore.data.tables.columns import named_classes
from farshore.deployment.model import Model
from farshore.errors import FarshoreError
from farshore.methods import METHODS
from farshore.testing import differences, toy_learner, toy_rows

GROWING = ["er", "cl-coral", "naive-cl-coral", "ridge", "trees"]


def grown(method: str, **options: object) -> tuple[Learner, Learner]:
    """A learner of two classes, and the same after it got two more."""
    small, large = (toy_learner(method, memory=30, **options) for _ in range(2))
    for learner in (small, large):
        for number in range(2):
            learner.learn(*toy_rows(number), domain=f"d{number}", steps=8)
    large.grow([7, 5])
    return small, large


@pytest.mark.parametrize("method", GROWING)
def test_nothing_about_the_known_classes_changes(method: str, tmp_path: Path) -> None:
    small, large = grown(method)
    inputs = toy_rows(4)[0]
    assert large.classes == [0, 1, 7, 5]
    # To rounding: a product with more columns may be summed in another order.
    known = large.logits(inputs)[:, :2]
    torch.testing.assert_close(known, small.logits(inputs), rtol=1e-5, atol=1e-6)
    assert torch.isfinite(large.logits(inputs)).all()
    before, after = small.state_dict()["system"], large.state_dict()["system"]
    if method not in ("ridge", "trees"):
        for name, weight in before["network"].items():
            grown_weight = after["network"][name]
            assert torch.equal(grown_weight[: len(weight)], weight), name
        assert differences(before["generators"], after["generators"]) == []
        assert differences(before["method"], after["method"]) == []
    large.save(tmp_path)
    assert differences(large.state_dict(), farshore.load(tmp_path).state_dict()) == []


@pytest.mark.parametrize("method", GROWING)
def test_the_new_classes_are_learned_and_the_old_ones_kept(method: str) -> None:
    learner = toy_learner(method, memory=30)
    learner.learn(*toy_rows(0, classes=2), domain="a", steps=40)
    x, y = toy_rows(1, rows=80, classes=4)
    with pytest.raises(FarshoreError, match="grow_classes=True"):
        learner.learn(x, y, domain="b", steps=40)
    assert learner.classes == [0, 1]
    learner.learn(x, y, domain="b", steps=60, grow_classes=True)
    assert learner.classes == [0, 1, 2, 3]
    assert set(learner.predict(x)) == {0, 1, 2, 3}
    assert float((learner.predict(x) == y.numpy()).mean()) > 0.8
    if method != "naive-cl-coral":
        first, labels = toy_rows(0, classes=2)
        assert float((learner.predict(first) == labels.numpy()).mean()) > 0.8


def test_what_cannot_grow_says_so_and_stays() -> None:
    refusing = [name for name in METHODS.names() if not METHODS.get(name).grows]
    assert {"ewc", "agem", "cope"} <= set(refusing)
    learner = toy_learner("ewc")
    learner.learn(*toy_rows(0), domain="a", steps=2)
    before = learner.state_dict()
    with pytest.raises(FarshoreError, match="'ewc' cannot add classes later"):
        learner.learn(*toy_rows(1, classes=3), domain="b", steps=2, grow_classes=True)
    assert differences(before, learner.state_dict()) == []
    averaged = toy_learner("er", settings={"average": "ema"})
    averaged.learn(*toy_rows(0), domain="a", steps=2)
    with pytest.raises(FarshoreError, match="average the weights"):
        averaged.grow(["x"])
    with pytest.raises(FarshoreError, match="named twice"):
        toy_learner("er", classes=[0, 1]).grow([1])


def test_every_tailored_notion_grows() -> None:
    outcomes = {}
    for name in METHODS.names():
        if METHODS.get(name).group != "tailored" or not METHODS.get(name).grows:
            continue
        learner = toy_learner(name)
        learner.learn(*toy_rows(0), domain="a", steps=2)
        message = ""
        try:
            learner.grow(["new"])
        except FarshoreError as error:
            message = str(error)
        outcomes[name] = message
        assert learner.classes == ([0, 1] if message else [0, 1, "new"])
        learner.learn(*toy_rows(1), domain="b", steps=2)
    assert set(outcomes.values()) == {""}


@pytest.mark.parametrize("method", ["cl-fishr", "naive-cl-fishr", "cl-mix"])
def test_gradient_variances_of_new_classes_are_zero(method: str) -> None:
    small, large = grown(method)
    kept, larger = (learner.system.method.state_dict()["priors"] for learner in (small, large))
    assert larger["names"] == kept["names"] == ["d0", "d1"]
    entry = "fishr.variance" if method == "cl-mix" else "variance"
    width = small.system.method.network.feature_dim
    for old, new in zip(kept["priors"], larger["priors"], strict=True):
        assert float(old[entry].min()) > 0
        by_class = new[entry][: 4 * width].reshape(4, width)
        assert torch.equal(by_class[:2].flatten(), old[entry][: 2 * width])
        assert torch.equal(new[entry][4 * width :][:2], old[entry][2 * width :])
        assert float(by_class[2:].abs().max()) == float(new[entry][-2:].abs().max()) == 0
    large.learn(*toy_rows(2, classes=2), domain="d2", steps=4)
    assert torch.isfinite(large.logits(toy_rows(4)[0])).all()


def type_in(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["farshore", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def write_site(path: Path, classes: str) -> None:
    rng = np.random.default_rng(len(classes))
    y = np.array(list(classes) * 20)
    x = np.array([ord(label) for label in y]) + rng.normal(0, 0.1, len(y))
    pd.DataFrame({"x": x, "y": y}).to_csv(path, index=False)


def test_the_command_adds_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_site(tmp_path / "one.csv", "bc")
    write_site(tmp_path / "two.csv", "abcd")
    first = ["learn", "model", "one.csv", "--label=y", "--name=one", "--steps=20"]
    second = ["learn", "model", "two.csv", "--name=two", "--steps=20"]
    assert type_in(monkeypatch, *first) == 0
    assert type_in(monkeypatch, *second) == 2
    assert "--new-classes" in capsys.readouterr().err
    assert type_in(monkeypatch, *second, "--new-classes") == 0
    assert "new classes: a, d" in capsys.readouterr().out
    assert Model.open("model").learner.classes == ["b", "c", "a", "d"]
    assert type_in(monkeypatch, "undo", "model") == 0
    assert Model.open("model").learner.classes == ["b", "c"]
    first[1] = "other"
    assert type_in(monkeypatch, *first, "--classes=two.csv") == 0
    assert Model.open("other").learner.classes == ["a", "b", "c", "d"]
    (tmp_path / "classes.txt").write_text("c\n\nb\na\nd\n")
    assert named_classes("classes.txt", None, "--classes") == ["c", "b", "a", "d"]


def test_a_class_of_the_target_alone_is_an_error_and_changes_no_weight(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "site": np.repeat(["a", "b", "c"], 20)})
    frame["y"] = np.where(np.arange(60) % 2, "p", "q")
    roles = {"domain": "site", "label": "y", "classes": "from-file"}
    measured = []
    for name, new in (("none", 0), ("few", 3)):
        frame.loc[60 - new :, "y"] = "a class before p and q"
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        options = {**roles, "path": str(tmp_path / f"{name}.csv")}
        fields = {"network_settings": {"width": 8}, "steps": 3, "memory": 10}
        run = Run.build(benchmark="table", options=options, method="er", target="c", **fields)
        measured.append(execute(run))
    known, few = measured
    assert known.target.weights == few.target.weights
    assert known.classes == few.classes == ["p", "q"]
    assert known.matrices == few.matrices
    hits = few.target.confusion[0][0] + few.target.confusion[1][1]
    assert [sum(row) for row in few.target.confusion] == [8, 9, 3]
    assert few.target.scores["accuracy"] == pytest.approx(hits / 20)
    assert few.target.scores["log_loss"] is None
    assert any("3 rows of the target have class" in note for note in few.notes)


def test_classes_that_only_the_target_has(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "site": np.repeat(["a", "b", "c"], 20)})
    frame["y"] = np.where(np.arange(60) % 2, "p", "q")
    frame.loc[59, "y"] = "new"
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"path": str(tmp_path / "t.csv"), "domain": "site", "label": "y"}
    with pytest.raises(FarshoreError, match="--classes from-file"):
        make_scenario("table", options, target="c")
    made = make_scenario("table", {**options, "classes": "from-file"}, target="c")
    assert made.classes == ("p", "q")
    made = make_scenario("table", {**options, "classes": "q,p,new,other"}, target="c")
    assert made.classes == ("q", "p", "new", "other")
    with pytest.raises(FarshoreError, match="--classes does not name 'new'"):
        make_scenario("table", {**options, "classes": "q,p"}, target="c")
