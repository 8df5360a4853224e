"""Commands on a model that were interrupted: the same command finishes, or the advice works."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from torch import Tensor

from farshore.base import state
from farshore.cli.app import main
from farshore.deployment.changes import forget, learn, take_back
from farshore.deployment.familiarity import past_rows
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import DivergedError, FarshoreError
from farshore.learner.loading import load
from farshore.methods import METHODS
from farshore.observer import Observer
from farshore.testing import differences, toy_learned, toy_rows

COLUMNS = Columns(label="y")
HEX = "0123456789ab"


class Killed(BaseException):
    """Like a kill: nothing catches it."""


class Watch(Observer):
    """Notes what happens; stops at a step."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop = stop
        self.notes: list[str] = []
        self.steps = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        self.steps += 1
        if step == self.stop:
            raise Killed


def site(folder: Path, number: int) -> Path:
    draw = np.random.default_rng(number)
    y = np.arange(40) % 2
    columns = {"a": y + draw.normal(0, 0.3, 40) + number, "b": draw.normal(0, 1, 40)}
    path = folder / f"{number}.csv"
    pd.DataFrame({**columns, "y": np.where(y, "p", "q")}).to_csv(path, index=False)
    return path


def learned(folder: Path, number: int = 0, watch: Observer | None = None, **settings: object):
    new = NewModel(method="cl-coral", memory=20, settings={"batch_size": 8, **settings})
    return learn(
        folder / "model",
        site(folder, number),
        name=f"site {number}",
        columns=COLUMNS,
        new=new if number == 0 else NewModel(),
        steps=6,
        every=2,
        observer=watch,
    )


def own_files(model: Path) -> list[str]:
    return sorted(path.name for path in model.iterdir())


def test_after_a_diverged_first_site_the_advice_works(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match="lower learning_rate"):
        learned(tmp_path, learning_rate=1e30)
    watch = Watch()
    learned(tmp_path, watch=watch, learning_rate=0.01)
    assert watch.steps == 6
    (tmp_path / "other").mkdir()
    learned(tmp_path / "other", learning_rate=0.01)
    states = [load(folder / "model").state_dict() for folder in (tmp_path, tmp_path / "other")]
    assert differences(*states) == []


def test_a_checkpoint_of_a_first_site_with_other_settings_is_discarded_with_a_note(
    tmp_path: Path,
) -> None:
    with pytest.raises(Killed):
        learned(tmp_path, watch=Watch(4), learning_rate=0.02)
    watch = Watch()
    learned(tmp_path, watch=watch, learning_rate=0.01)
    assert watch.notes == ["the checkpoint of an earlier attempt with other settings is discarded"]
    assert watch.steps == 6
    (tmp_path / "same").mkdir()
    with pytest.raises(Killed):
        learned(tmp_path / "same", watch=Watch(4), learning_rate=0.02)
    watch = Watch()
    learned(tmp_path / "same", watch=watch, learning_rate=0.02)
    assert watch.notes == ["continuing site 0 after 4 steps, from its last checkpoint"]
    assert watch.steps == 2


def test_after_a_diverged_later_site_the_model_is_unchanged_and_fewer_steps_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(tmp_path)
    before = load(tmp_path / "model").state_dict()

    def diverge(*_: object, **__: object) -> None:
        raise DivergedError("training diverged: lower learning_rate")

    with monkeypatch.context() as patched:
        patched.setattr("farshore.training.trainer.check_finite", diverge)
        with pytest.raises(DivergedError, match=r"settings of .* are fixed.*fewer --steps"):
            learned(tmp_path, 1)
    assert differences(before, load(tmp_path / "model").state_dict()) == []
    assert not (tmp_path / "model" / "checkpoint").exists()
    data = site(tmp_path, 1)
    learn(tmp_path / "model", data, name="x", columns=COLUMNS, new=NewModel(), steps=3)


@pytest.mark.parametrize(
    "names",
    [
        [f"state-learner-{HEX}.json"],
        [f"state-learner-{HEX}.json", f"state-sites-{HEX}.json", f".manifest.json.{HEX[:8]}"],
        [f".state-learner-{HEX}.json.{HEX[:8]}", ".lock", ".DS_Store"],
    ],
)
def test_what_a_killed_first_save_left_is_recognised(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "model").mkdir()
    for name in names:
        (tmp_path / "model" / name).write_bytes(b"")
    learned(tmp_path)
    left = [name for name in own_files(tmp_path / "model") if name in names]
    assert left == [name for name in (".DS_Store", ".lock") if name in names]
    assert len(own_files(tmp_path / "model")) == 12 + (".DS_Store" in names)


@pytest.mark.parametrize("name", ["thesis.txt", "state-of-the-art.json", "state-learner-1.json"])
def test_a_folder_with_a_foreign_file_is_refused_untouched(tmp_path: Path, name: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / f"state-learner-{HEX}.json").write_bytes(b"")
    (tmp_path / "model" / name).write_bytes(b"mine")
    before = own_files(tmp_path / "model")
    with pytest.raises(FarshoreError, match="is not a model"):
        learned(tmp_path)
    assert own_files(tmp_path / "model") == before


def test_the_same_command_again_trains_nothing(tmp_path: Path) -> None:
    first = learned(tmp_path)
    before = load(tmp_path / "model").state_dict()
    watch = Watch()
    again = learned(tmp_path, watch=watch)
    assert watch.steps == 0
    assert again.scores == first.scores
    assert again.notes == ["site 0 was learned already, from the same data: nothing was trained"]
    assert differences(before, load(tmp_path / "model").state_dict()) == []
    with (tmp_path / "0.csv").open("a") as file:
        file.write("1,1,p\n")
    with pytest.raises(FarshoreError, match="was learned before"):
        learn(
            tmp_path / "model",
            tmp_path / "0.csv",
            name="site 0",
            columns=COLUMNS,
            new=NewModel(),
            steps=6,
        )


# ---- forget and undo -----------------------------------------------------------------------------


def killed_while_deleting(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """From now on, a process that has replaced the manifest dies before it deletes a file."""
    real = state._commit

    def commit(*arguments: object) -> None:
        real(*arguments)
        raise Killed

    monkeypatch.setattr(state, "_commit", commit)
    return monkeypatch


def found(folder: Path, rows: list[bytes]) -> int:
    """How many of the rows lie in the files of a folder."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return sum(any(row in data for data in files) for row in rows)


def kept(model: Path, name: str) -> list[bytes]:
    return [row.numpy().tobytes() for row in past_rows(load(model))[name][0]]


@pytest.mark.parametrize("by", ["forget", "show", "learn", "undo"])
def test_any_later_command_deletes_the_rows_that_a_killed_forget_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    model = tmp_path / "model"
    learned(tmp_path)
    learned(tmp_path, 1)
    rows = kept(model, "site 0")
    assert found(model, rows) == len(rows) > 5
    with killed_while_deleting(monkeypatch).context(), pytest.raises(Killed):
        forget(model, "site 0")
    monkeypatch.undo()
    assert found(model, rows) == len(rows)
    assert [domain["name"] for domain in load(model).domains] == ["site 1"]
    if by == "forget":
        forget(model, "site 0")
    elif by == "show":
        Model.open(model)
    elif by == "learn":
        learned(tmp_path, 2)
    else:
        with pytest.raises(FarshoreError, match="keeps no previous version"):
            take_back(model)
    assert found(model, rows) == 0
    assert found(model, [b"site 0"]) == 0


def test_forgetting_is_remembered_until_the_name_is_learned_again(tmp_path: Path) -> None:
    learned(tmp_path)
    learned(tmp_path, 1)
    model = tmp_path / "model"
    for _ in range(2):
        assert [domain["name"] for domain in forget(model, "site 0").learner.domains] == ["site 1"]
    with pytest.raises(FarshoreError, match="unknown domain 'site 7'"):
        forget(model, "site 7")
    data = site(tmp_path, 0)
    learn(model, data, name="site 0", columns=COLUMNS, new=NewModel(), steps=3)
    assert Model.open(model).forgotten == []
    assert [domain["name"] for domain in take_back(model).learner.domains] == ["site 1"]
    forget(model, "site 0")


def test_a_model_whose_only_site_is_forgotten_is_not_replaced(tmp_path: Path) -> None:
    learned(tmp_path)
    weights = forget(tmp_path / "model", "site 0").learner.state_dict()["system"]["network"]
    after = Model.open(tmp_path / "model").learner.state_dict()["system"]["network"]
    assert differences(weights, after) == []
    with pytest.raises(FarshoreError, match="was created with cl-coral"):
        learn(
            tmp_path / "model",
            site(tmp_path, 1),
            name="b",
            columns=COLUMNS,
            new=NewModel(method="er"),
        )


@pytest.mark.parametrize("method", ["er", "cl-coral", "agem", "ewc", "efc"])
def test_no_byte_of_forgotten_rows_stays(tmp_path: Path, method: str) -> None:
    """Also not in the previous version, in a checkpoint, or in what a killed save left."""
    learner = toy_learned(method)
    for _ in range(2):
        learner.save(tmp_path, keep_previous=True)
    rows = [row.numpy().tobytes() for row in toy_rows(0)[0]]
    tensors = next(tmp_path.glob("tensors-learner-*"))
    (tmp_path / f".{tensors.name}.{HEX[:8]}").write_bytes(tensors.read_bytes())
    state.save_state(tmp_path / "checkpoint", learner.state_dict(), kind="checkpoint")
    assert (found(tmp_path, rows) > 0) == METHODS.get(method).keeps_rows()
    forget(tmp_path, "d0")
    assert found(tmp_path, rows) == 0
    assert not (tmp_path / "checkpoint").exists()
    with pytest.raises(FarshoreError, match="keeps no previous version"):
        take_back(tmp_path)


@pytest.mark.parametrize("shown", [False, True])
def test_a_killed_undo_finishes_when_repeated_and_a_second_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: bool
) -> None:
    learned(tmp_path)
    before = load(tmp_path / "model").state_dict()
    learned(tmp_path, 1)
    killed_while_deleting(monkeypatch)
    with pytest.raises(Killed):
        take_back(tmp_path / "model")
    monkeypatch.undo()
    if shown:  # which finishes the undo
        assert differences(before, Model.open(tmp_path / "model").learner.state_dict()) == []
    else:
        assert differences(before, take_back(tmp_path / "model").learner.state_dict()) == []
    assert len(own_files(tmp_path / "model")) == 8
    with pytest.raises(FarshoreError, match="the last undo was carried out"):
        take_back(tmp_path / "model")


def test_a_forget_that_cannot_delete_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learned(tmp_path)
    real = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith("tensors-"):
            raise PermissionError(1, "Operation not permitted")
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(sys, "argv", ["farshore", "forget", str(tmp_path / "model"), "site 0"])
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert "could not be deleted: Operation not permitted" in capsys.readouterr().err
