"""A model in a folder, through its commands: learning sites, refusing wrong input, undoing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import farshore
from farshore.base.lock import exclusive
from farshore.deployment.changes import learn
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.learner.loading import load
from farshore.testing import differences

QUICK = {"batch_size": 8, "learning_rate": 0.01}
ROOT = Path(__file__).resolve().parents[2]


def table(path: Path, site: int, rows: int = 60, **more: object) -> Path:
    draw = np.random.default_rng(site)
    sick = np.arange(rows) % 2
    frame = pd.DataFrame(
        {
            "patient": np.arange(rows) // 3,
            "age": (50 + 10 * sick + draw.normal(0, 2, rows) + site).round(2),
            "dose": (1 + sick + draw.normal(0, 0.2, rows) + 0.2 * site).round(3),
            "ward": draw.choice(["A", "B"], rows),
            "disease": np.where(sick, "ill", "well"),
        }
    ).assign(**more)
    frame.loc[::9, "age"] = None
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def typed(typed, monkeypatch: pytest.MonkeyPatch):
    """Type a command at a wide terminal; returns the exit code and what was printed."""
    monkeypatch.setenv("COLUMNS", "200")
    return typed


FIRST = [
    "--label",
    "disease",
    "--drop",
    "patient",
    "--set",
    "batch_size=8",
    "--set",
    "learning_rate=0.01",
    "--memory",
    "30",
]


def test_all_commands_in_sequence(typed, tmp_path: Path) -> None:
    model = tmp_path / "model"
    for site in range(3):
        table(tmp_path / f"{site}.csv", site)
    code, out = typed(
        "learn",
        model,
        tmp_path / "0.csv",
        "--name",
        "site A",
        "--steps",
        60,
        "--method",
        "cl-coral",
        *FIRST,
    )
    assert code == 0, out
    assert f"created {model}: learned site A (60 rows)" in out
    code, out = typed(
        "learn", model, tmp_path / "1.csv", "--name", "site B", "--steps", 60, "--max-drop", 0.9
    )
    assert code == 0, out
    assert "before" in out
    assert "site A" in out
    code, out = typed("show", model)
    assert "cl-coral" in out
    assert "site B" in out
    assert str(time.gmtime().tm_year) in out
    code, out = typed("evaluate", model, tmp_path / "2.csv")
    assert code == 0, out
    assert "balanced accuracy" in out
    strange = table(tmp_path / "strange.csv", 40, ward="Z")
    code, out = typed("predict", model, strange, "-o", tmp_path / "p.csv")
    assert "unknown categories in 60 rows" in out
    predictions = pd.read_csv(tmp_path / "p.csv")
    assert list(predictions.columns) == [
        "row",
        "prediction",
        "p(ill)",
        "p(well)",
        "strangeness",
        "nearest",
        "unknown",
    ]
    assert (predictions["strangeness"] > 1).mean() > 0.9
    assert predictions["unknown"][0] == "ward=Z"
    assert typed("predict", model, strange, "--unknown", "refuse")[0] == 2
    known = Model.open(model)
    assert (
        known.predict(known.read(tmp_path / "1.csv", labelled=False))["strangeness"] > 1
    ).mean() < 0.3
    weights = load(model).state_dict()
    assert typed("learn", model, tmp_path / "2.csv", "--name", "site C", "--steps", 20)[0] == 0
    code, out = typed("undo", model)
    assert "it has learned: site A, site B" in out
    assert differences(weights, load(model).state_dict()) == []
    assert typed("undo", model)[0] == 2
    code, out = typed("forget", model, "site A")
    assert "other sites: site B" in out
    assert list(load(model).system.memory.kept()) == ["site B"]
    assert typed("export", model, tmp_path / "m.onnx")[0] == 0
    assert sorted(path.name.split("-")[0] for path in model.iterdir()) == [
        ".lock",
        "manifest.json",
        "state",
        "state",
        "state",
        "state",
        "tensors",
        "tensors",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "A", "--method", "er"], "was created with cl-coral"),
        (["--name", "A", "--set", "batch_size=9"], "settings of"),
        (["--name", "A", "--memory", "31"], "was created with 30"),
        (["--name", "site A"], "was learned before"),
        (["--name", "B", "--validation", "1"], "--validation"),
        (["--name", "B", "--checkpoint", "0"], "at least 1"),
    ],
)
def test_options_that_contradict_the_model_are_refused_and_nothing_changes(
    typed, tmp_path: Path, words: list[str], message: str
) -> None:
    model = tmp_path / "model"
    table(tmp_path / "0.csv", 0)
    typed(
        "learn",
        model,
        tmp_path / "0.csv",
        "--name",
        "site A",
        "--steps",
        3,
        "--method",
        "cl-coral",
        *FIRST,
    )
    before = load(model).state_dict()
    code, out = typed("learn", model, tmp_path / "0.csv", *words)
    assert code == 2
    assert message in out
    assert differences(before, load(model).state_dict()) == []


def test_other_refusals(typed, tmp_path: Path) -> None:
    model = tmp_path / "model"
    data = table(tmp_path / "0.csv", 0)
    assert "--label is not given" in typed("learn", model, data, "--name", "A")[1]
    assert not (model / "manifest.json").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    assert "is not a model" in typed("learn", tmp_path / "other", data, "--name", "A", *FIRST)[1]
    assert "no saved learner" in typed("show", tmp_path / "nothing")[1]
    assert not (tmp_path / "nothing").exists()
    assert (
        "keeps no rows of past sites"
        in typed("learn", model, data, "--name", "A", "--method", "ewc", "--max-drop", 0.1, *FIRST)[
            1
        ]
    )
    assert typed("learn", model, data, "--name", "A", "--steps", 3, *FIRST)[0] == 0
    pd.read_csv(data).drop(columns="dose").to_csv(tmp_path / "less.csv", index=False)
    assert "less.csv has no column 'dose'" in typed("predict", model, tmp_path / "less.csv")[1]
    pd.read_csv(data).assign(colour="red").to_csv(tmp_path / "more.csv", index=False)
    assert "are ignored: colour" in typed("predict", model, tmp_path / "more.csv")[1]
    pd.read_csv(data).assign(disease="plague").to_csv(tmp_path / "new.csv", index=False)
    assert "unknown label 'plague'" in typed("evaluate", model, tmp_path / "new.csv")[1]
    assert "created with a table" in typed("predict", model, tmp_path)[1]


def test_a_worse_model_is_not_kept(typed, tmp_path: Path) -> None:
    model = tmp_path / "model"
    data = table(tmp_path / "0.csv", 0)
    pd.read_csv(data).replace({"disease": {"ill": "well", "well": "ill"}}).to_csv(
        tmp_path / "1.csv", index=False
    )
    assert (
        typed("learn", model, data, "--name", "A", "--steps", 60, *FIRST, "--method", "er")[0] == 0
    )
    before = load(model).state_dict()
    code, out = typed(
        "learn", model, tmp_path / "1.csv", "--name", "B", "--steps", 100, "--max-drop", 0.02
    )
    assert code == 2
    assert "was not kept: on the held-out rows of 'A' the accuracy fell from" in out
    assert differences(before, load(model).state_dict()) == []
    assert not (model / "checkpoint").exists()


def test_learn_reports_what_predict_reports_ahead_of_training(typed, tmp_path: Path) -> None:
    model = tmp_path / "model"
    first = table(tmp_path / "a.csv", 0, code=np.tile(["1", "2", "X"], 20))
    assert typed("learn", model, first, "--name", "a", *FIRST, "--steps", "2")[0] == 0
    # Numbers with a gap in the file: the known codes 1 and 2 must stay 1 and 2.
    second = table(
        tmp_path / "b.csv",
        1,
        code=np.tile(["1", "2", ""], 20),
        ward=np.repeat(["A", "C"], 30),
        dose=1000.0,
    )
    expected = [
        "column 'ward': 30 of 60 rows have categories that the first domain does not have, "
        "treated as `other`: 'C' (30)",
        "column 'dose': its median 1000 is",
        "60 of 60 rows are more than 10 away from it: check the units",
    ]
    code, predicted = typed("predict", model, second, "-o", tmp_path / "p.csv")
    assert code == 0
    code, learned = typed("learn", model, second, "--name", "b", "--steps", "2")
    assert code == 0
    for sentence in expected:
        assert sentence in predicted
        assert sentence in learned
    assert learned.index(expected[0]) < learned.index("learned b")
    assert "column 'code'" not in learned
    assert set(pd.read_csv(tmp_path / "p.csv")["unknown"].dropna()) == {"ward=C"}


def test_groups_are_compared_as_text(tmp_path: Path) -> None:
    columns = Columns(label="disease", group="patient")
    for name, groups in (("a", [f"{n // 3:03d}" for n in range(60)]), ("b", ["X1", "001"] * 30)):
        table(tmp_path / f"{name}.csv", 0, patient=groups)
        learn(
            tmp_path / "model",
            tmp_path / f"{name}.csv",
            name=name,
            columns=columns,
            new=NewModel(settings=QUICK),
            steps=1,
        )
    sides = Model.open(tmp_path / "model").sides
    assert len(sides) == 21  # 000 to 019 and X1: 001 is known


def test_groups_and_time_decide_the_split(tmp_path: Path) -> None:
    data = table(tmp_path / "0.csv", 0)
    frame = pd.read_csv(data).assign(day=np.arange(60))
    frame.to_csv(data, index=False)
    new = NewModel(settings=QUICK, memory=10)
    columns = Columns(label="disease", group="patient", time="day")
    learn(tmp_path / "m", data, name="a", columns=columns, new=new, steps=2)
    model = Model.open(tmp_path / "m")
    assert 3 <= sum(model.sides.values()) <= 5
    assert not any(name.isdigit() and len(name) < 3 for name in model.sides)
    frame.assign(day=frame["day"] + 100).to_csv(data, index=False)
    assert (
        learn(tmp_path / "m", data, name="b", columns=Columns(), new=NewModel(), steps=2).rows == 60
    )


def test_methods_without_a_memory_measure_strangeness(tmp_path: Path) -> None:
    new = NewModel(method="finetune", settings=QUICK)
    for site in range(2):
        data = table(tmp_path / f"{site}.csv", site)
        learn(
            tmp_path / "m",
            data,
            name=f"s{site}",
            columns=Columns(label="disease", drop=("patient",)),
            new=new,
            steps=30,
        )
        new = NewModel()
    model = Model.open(tmp_path / "m")
    near, far = (
        model.predict(model.read(table(tmp_path / "x.csv", site), labelled=False))
        for site in (1, 60)
    )
    assert (near["strangeness"] > 1).mean() < 0.3
    assert (far["strangeness"] > 1).mean() > 0.9
    assert set(far["nearest"]) <= {"s0", "s1"}


def test_images(typed, tmp_path: Path, pictures) -> None:
    for site in range(2):
        images, labels = pictures(site, rows=40)
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            folder = tmp_path / f"site{site}" / ("right" if label else "left")
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0].numpy()).save(folder / f"{number}.png")
    model = tmp_path / "model"
    words = [
        "--size",
        8,
        "--steps",
        20,
        "--set",
        "batch_size=8",
        "--set",
        "learning_rate=0.01",
        "--memory",
        20,
    ]
    assert typed("learn", model, tmp_path / "site0", "--name", "A", *words)[0] == 0
    code, out = typed("learn", model, tmp_path / "site1", "--name", "B", "--steps", 20)
    assert code == 0, out
    assert typed("evaluate", model, tmp_path / "site1")[0] == 0
    code, out = typed("predict", model, tmp_path / "site1" / "left", "-o", tmp_path / "p.csv")
    assert code == 0, out
    assert len(pd.read_csv(tmp_path / "p.csv")) == 20


def test_an_array_model_made_in_python_is_shown_and_undone(typed, tmp_path: Path, blobs) -> None:
    learner = farshore.Learner("mlp", "er", 20, settings=QUICK, network_settings={"width": 8})
    for number in range(2):
        learner.learn(*blobs(number), domain=f"d{number}", steps=3)
        learner.save(tmp_path, keep_previous=True)
    assert "d1" in typed("show", tmp_path)[1]
    assert "it has learned: d0" in typed("undo", tmp_path)[1]


def test_saving_a_loaded_model_keeps_its_record_of_columns_sites_and_groups(
    typed, tmp_path: Path
) -> None:
    """`load(folder).save(folder)` writes the learner and does not touch the record of sites."""
    model = tmp_path / "model"
    for number in range(2):
        table(tmp_path / f"{number}.csv", number)
        words = ["--label", "disease", "--group", "patient"] if number == 0 else []
        data = tmp_path / f"{number}.csv"
        assert typed("learn", model, data, "--name", f"site {number}", "--steps", 3, *words)[0] == 0
    before = Model.open(model)
    load(model).save(model)
    after = Model.open(model)
    assert (after.columns, after.sites, after.sides) == (
        before.columns,
        before.sites,
        before.sides,
    )
    assert after.columns.label == "disease"
    assert set(after.sites) == {"site 0", "site 1"}
    assert after.sides
    learner = load(model)
    learner.save(model, keep_previous=True)
    assert typed("undo", model)[0] == 0
    assert Model.open(model).sites == before.sites


LEARN = """
import sys, torch
torch.set_num_threads(1)
from farshore.deployment.changes import learn
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
model, data, name, steps, every = sys.argv[1:6]
new = NewModel()
if name == "s0":
    settings = {"batch_size": 8, "learning_rate": 0.01}
    new = NewModel(method="cl-coral", memory=30, settings=settings)
columns = Columns(label="disease", drop=("patient",))
learn(model, data, name=name, columns=columns, new=new, steps=int(steps), every=int(every))
"""


def process(model: Path, data: Path, name: str, steps: int, every: int = 100) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", LEARN, model, data, name, str(steps), str(every)],
        env=environment,
        stderr=subprocess.PIPE,
    )


def finished(started: subprocess.Popen) -> None:
    _, errors = started.communicate()
    assert started.returncode == 0, errors


@pytest.mark.soak
def test_three_processes_one_of_them_killed_equal_one_process_bit_for_bit(tmp_path: Path) -> None:
    straight = tmp_path / "straight"
    new = NewModel(method="cl-coral", memory=30, settings=QUICK)
    for site in range(2):
        data = table(tmp_path / f"{site}.csv", site)
        columns = Columns(label="disease", drop=("patient",))
        learn(
            straight,
            data,
            name=f"s{site}",
            columns=columns,
            new=new if site == 0 else NewModel(),
            steps=400 if site else 50,
        )
    model = tmp_path / "model"
    finished(process(model, tmp_path / "0.csv", "s0", 50))
    killed = process(model, tmp_path / "1.csv", "s1", 400, every=100)
    while not (model / "checkpoint" / "manifest.json").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stderr.close()
    assert [domain["name"] for domain in load(model).domains] == ["s0"]
    finished(process(model, tmp_path / "1.csv", "s1", 400, every=100))
    assert differences(load(straight).state_dict(), load(model).state_dict()) == []


@pytest.mark.soak
def test_a_second_process_is_refused(tmp_path: Path) -> None:
    data = table(tmp_path / "0.csv", 0)
    model = tmp_path / "model"
    with exclusive(model):
        second = process(model, data, "s0", 2)
        _, errors = second.communicate()
    assert second.returncode != 0
    assert f"is in use by process {os.getpid()}" in errors.decode()
    assert [path.name for path in model.iterdir()] == [".lock"]
    third = process(model, data, "s0", 2)
    third.communicate()
    assert third.returncode == 0
