"""What only closed-form learners promise: the order of the domains has no influence, learning one
at a time equals learning all at once, and forgetting a domain equals never having seen it.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from farshore.benchmarks.heart_hospitals import read_heart
from farshore.cli.forget import forget as forget_command
from farshore.data.domain import Domain
from farshore.deployment.changes import forget, learn, take_back
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.testing import differences, toy_images, toy_rows
from farshore.testing.toys import toy_image_network

SETTINGS: dict[str, dict[str, Any]] = {
    "ridge": {"random_features": 30},
    "ncm": {},
    "slda": {},
    "majority": {},
}
NAMES = ("a", "b", "c", "d")
everyone = pytest.mark.parametrize("method", SETTINGS)


def domain(name: str, *, images: bool = False) -> Domain:
    number = NAMES.index(name)
    if images:
        return Domain.divided(name, *toy_images(number))
    # Unequal numbers of rows, so that no mean over domains passes for one over rows.
    return Domain.divided(name, *toy_rows(number, rows=40 + 13 * number, classes=3))


def learned(
    method: str, names: tuple[str, ...], *, images: bool = False, **settings: Any
) -> Learner:
    learner = Learner(
        toy_image_network() if images else "mlp",
        method,
        settings={**SETTINGS[method], **settings},
        classes=[0, 1] if images else [0, 1, 2],
        preprocess="none",
    )
    for name in names:
        learner.learn_domain(domain(name, images=images), steps=1)
    return learner


def some_rows(learner: Learner) -> Tensor:
    return toy_images(7)[0] if len(learner.shape or ()) == 3 else toy_rows(7)[0]


@everyone
@pytest.mark.parametrize("images", [False, True])
def test_the_order_of_the_domains_has_no_influence(method: str, images: bool) -> None:
    first, *others = (learned(method, order, images=images) for order in permutations("abc"))
    logits = first.logits(some_rows(first))
    assert len(torch.unique(logits)) > 1
    for other in others:
        assert torch.equal(other.logits(some_rows(other)), logits)


@everyone
def test_one_domain_at_a_time_equals_all_at_once(method: str) -> None:
    in_turn = learned(method, NAMES)
    jointly = Learner(
        "mlp", method, settings=SETTINGS[method], classes=[0, 1, 2], preprocess="none"
    )
    jointly.learn_jointly([domain(name) for name in NAMES], steps=1)
    assert differences(in_turn.state_dict(), jointly.state_dict()) == []


@pytest.mark.parametrize("method", ["ridge", "ncm", "slda", "majority"])
def test_domains_in_turn_give_the_weights_of_all_rows_in_one_domain(method: str) -> None:
    """To rounding, and for ridge and slda up to the temperature, which needs several domains."""
    fixed = {"strength": 0.1} if method == "ridge" else {}
    parts = [domain(name).split("train") for name in NAMES]
    rows = [part.take(torch.arange(len(part))) for part in parts]
    inputs, labels = (torch.cat(tensors) for tensors in zip(*rows, strict=True))
    pooled = Learner(
        "mlp", method, settings={**SETTINGS[method], **fixed}, classes=[0, 1, 2], preprocess="none"
    )
    pooled.learn_domain(Domain.divided("all", inputs, labels, validation=0), steps=1)
    in_turn = learned(method, NAMES, **fixed)
    first, second = (each.logits(some_rows(each)).double() for each in (in_turn, pooled))
    factor = 1.0
    if method in ("ridge", "slda"):
        factor = float((first * second).sum() / second.square().sum())
        assert 0.2 < factor < 5
    torch.testing.assert_close(first, factor * second, rtol=1e-4, atol=1e-4)


@everyone
@pytest.mark.parametrize("forgotten", ["a", "b", "d"])
def test_forgetting_equals_never_having_seen(method: str, forgotten: str) -> None:
    others = tuple(name for name in NAMES if name != forgotten)
    learner = learned(method, NAMES)
    learner.forget(forgotten)
    assert differences(learner.state_dict(), learned(method, others).state_dict()) == []


@everyone
def test_a_domain_that_is_learned_again_after_it_was_forgotten(method: str) -> None:
    learner = learned(method, NAMES)
    logits = learner.logits(some_rows(learner))
    learner.forget("a")
    assert not torch.equal(learner.logits(some_rows(learner)), logits)
    learner.learn_domain(domain("a"), steps=1)
    assert torch.equal(learner.logits(some_rows(learner)), logits)


@everyone
def test_nothing_is_left_when_the_only_domain_is_forgotten(method: str, tmp_path: Path) -> None:
    learner = learned(method, ("a",))
    learner.forget("a")
    learner.save(tmp_path)
    empty = load(tmp_path)
    assert bool((empty.logits(some_rows(empty)).diff(dim=1) == 0).all())
    empty.learn_domain(domain("b"), steps=1)
    never = learned(method, ("b",))
    assert torch.equal(empty.logits(some_rows(empty)), never.logits(some_rows(never)))


@everyone
def test_no_row_is_kept_and_the_size_does_not_depend_on_the_rows(method: str) -> None:
    few, many = (
        Learner("mlp", method, settings=SETTINGS[method], preprocess="none") for _ in range(2)
    )
    few.learn(*toy_rows(0, rows=20), domain="a")
    many.learn(*toy_rows(0, rows=2000), domain="a")
    assert few.system.usage().method_bytes == many.system.usage().method_bytes > 0
    assert few.system.kept_rows() == many.system.kept_rows() == {}


def traces(folder: Path, tensors: list[Tensor]) -> list[str]:
    """Files in which the bytes of any of these tensors lie."""
    marks = [tensor.contiguous().numpy().tobytes() for tensor in tensors]
    return [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and any(mark in file.read_bytes() for mark in marks)
    ]


@everyone
def test_nothing_of_a_forgotten_site_is_left_in_the_folder(method: str, tmp_path: Path) -> None:
    frame = read_heart()
    frame["num"] = (frame["num"] > 0).astype(int)
    columns, folder = Columns(label="num", drop=("hospital",)), tmp_path / "model"
    new = NewModel(method=method, settings=SETTINGS[method])
    for hospital in ("cleveland", "hungarian", "switzerland"):
        path = tmp_path / f"{hospital}.csv"
        frame[frame["hospital"] == hospital].to_csv(path, index=False)
        learn(folder, path, name=hospital, columns=columns, new=new, validation=0.0)
    model = Model.open(folder)
    sums = model.learner.system.state_dict()["sums"][1]
    secret = [*sums.values(), *model.moments["hungarian"].values()]
    secret = [tensor for tensor in secret if tensor.numel() > 1 and bool(tensor.any())]
    assert traces(folder, secret) != []
    forget(folder, "hungarian")
    assert traces(folder, secret) == []
    assert not any(b"hungarian" in file.read_bytes() for file in folder.iterdir())
    # The rest predicts as if the site had never been there.
    site = Model.open(folder).read(tmp_path / "hungarian.csv", labelled=True)
    never = tmp_path / "never"
    for hospital in ("cleveland", "switzerland"):
        path = tmp_path / f"{hospital}.csv"
        learn(never, path, name=hospital, columns=columns, new=new, validation=0.0)
    assert torch.equal(*(Model.open(each).outputs(site)[0] for each in (folder, never)))


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("ridge", {"random_features": 20}, "were recomputed without it"),
        ("ridge", {"random_features": 20, "first_domain_tuning": True}, "were trained on it"),
        ("er", {}, "were trained on it"),
    ],
)
def test_the_command_says_whether_the_weights_forget(
    method: str,
    settings: dict[str, Any],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    frame = read_heart()
    for hospital in ("cleveland", "hungarian"):
        path = tmp_path / f"{hospital}.csv"
        frame[frame["hospital"] == hospital].to_csv(path, index=False)
        learn(
            tmp_path / "model",
            path,
            name=hospital,
            columns=Columns(label="num", drop=("hospital",)),
            new=NewModel(method=method, settings=settings),
            steps=2,
        )
    forget_command(tmp_path / "model", "hungarian")
    assert message in capsys.readouterr().out


def test_a_site_can_be_taken_back(tmp_path: Path) -> None:
    frame = read_heart()
    frame["num"] = (frame["num"] > 0).astype(int)
    columns, folder = Columns(label="num", drop=("hospital",)), tmp_path / "model"
    new, logits = NewModel(method="ridge", settings=SETTINGS["ridge"]), []
    for hospital in ("cleveland", "va"):
        path = tmp_path / f"{hospital}.csv"
        frame[frame["hospital"] == hospital].to_csv(path, index=False)
        learn(folder, path, name=hospital, columns=columns, new=new)
        model = Model.open(folder)
        logits.append(model.outputs(model.read(tmp_path / "cleveland.csv", labelled=True))[0])
    assert not torch.equal(*logits)
    model = take_back(folder)
    site = model.read(tmp_path / "cleveland.csv", labelled=True)
    assert torch.equal(model.outputs(site)[0], logits[0])
    table = model.predict(site)
    assert set(table["nearest"]) == {"cleveland"}
    assert float((table["strangeness"] > 1).mean()) < 0.2
