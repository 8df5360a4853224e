"""Stress tests of a deployed model: killed training, damaged folders, hostile tables and images."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from damaging import edited, mutate
from PIL import Image

from farshore.base.state import load_state
from farshore.deployment.changes import learn, take_back
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns, read_site
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.testing import differences

pytestmark = pytest.mark.soak

QUICK = {"batch_size": 8, "learning_rate": 0.01}
COLUMNS = Columns(label="y")
STEPS, EVERY = 300, 20
# One process learns a site repeatedly and undoes it in between, so that a kill can hit any phase:
# checkpoints, saves, cleanup.
LEARNER = """
import sys, torch
torch.set_num_threads(1)
from farshore.deployment.changes import learn, take_back
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
model, data, steps, every, rounds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
print("ready", flush=True)
for _ in range(rounds):
    learn(model, data, name="b", columns=Columns(), new=NewModel(), steps=steps, every=every)
    if rounds > 1:
        take_back(model)
"""


def site(path: Path, number: int, rows: int = 60) -> Path:
    rng = np.random.default_rng(number)
    y = np.arange(rows) % 2
    pd.DataFrame(
        {
            "a": y + rng.normal(0, 0.3, rows) + number,
            "b": rng.normal(0, 1, rows),
            "y": np.where(y, "p", "q"),
        }
    ).to_csv(path, index=False)
    return path


def model_and_next_site(folder: Path, method: str = "cl-coral") -> tuple[Path, Path]:
    data = [site(folder / f"{number}.csv", number) for number in range(2)]
    learn(
        folder / "model",
        data[0],
        name="a",
        columns=COLUMNS,
        new=NewModel(method=method, memory=20, settings=QUICK),
        steps=20,
    )
    return folder / "model", data[1]


def start_learning(model: Path, data: Path, rounds: int) -> subprocess.Popen:
    words = [sys.executable, "-c", LEARNER, model, data, STEPS, EVERY, rounds]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def test_killed_training_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    model, data = model_and_next_site(tmp_path)
    shutil.copytree(model, tmp_path / "straight")
    learn(
        tmp_path / "straight",
        data,
        name="b",
        columns=Columns(),
        new=NewModel(),
        steps=STEPS,
        every=EVERY,
    )
    expected = load(tmp_path / "straight").state_dict()
    first = load(model).state_dict()
    chance = random.Random(0)
    steps_saved, kills, finished = 0, 0, 0
    while kills < 20:
        process = start_learning(model, data, rounds=1)
        time.sleep(chance.uniform(0, 0.8))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        process.stdout.close()
        state = load(model).state_dict()
        if len(state["domains"]) == 2:
            assert differences(expected, state) == []
            finished, steps_saved = finished + 1, 0
            take_back(model)
            assert differences(first, load(model).state_dict()) == []
            continue
        assert differences(first, state) == []
        if (model / "checkpoint" / "manifest.json").exists():
            step = load_state(model / "checkpoint", kind="checkpoint")["step"]
            assert step >= steps_saved  # nothing before the last checkpoint is repeated
            steps_saved = step
    learn(model, data, name="b", columns=Columns(), new=NewModel(), steps=STEPS, every=EVERY)
    assert differences(expected, load(model).state_dict()) == []
    assert not (model / "checkpoint").exists()


def test_two_processes_at_once_damage_nothing(tmp_path: Path) -> None:
    model, data = model_and_next_site(tmp_path)
    processes = [start_learning(model, data, rounds=1) for _ in range(3)]
    codes = []
    for process in processes:
        codes.append(process.wait())
        process.stdout.close()
    assert codes.count(0) >= 1
    assert [domain["name"] for domain in load(model).domains] == ["a", "b"]


def test_two_real_learners_of_different_sites_on_one_folder(tmp_path: Path) -> None:
    """Each learns or says that the folder is in use; in the end, it is as if one had waited."""
    model, data = model_and_next_site(tmp_path)
    sites = {"b": data, "c": site(tmp_path / "2.csv", 2)}
    shutil.copytree(model, tmp_path / "serial")

    def typed(name: str) -> list[str]:
        words = ["learn", model, sites[name], "--name", name, "--steps", STEPS]
        return [sys.executable, "-m", "farshore", *map(str, words)]

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = {name: subprocess.Popen(typed(name), **pipes) for name in sites}
    said = {name: process.communicate()[1] for name, process in started.items()}
    assert 0 in (process.returncode for process in started.values()), said
    for name, process in started.items():
        if process.returncode != 0:
            assert process.returncode == 2
            assert "is in use by" in said[name]
            subprocess.run(typed(name), check=True, capture_output=True)
    names = [domain["name"] for domain in load(model).domains]
    assert sorted(names) == ["a", "b", "c"]
    for name in names[1:]:
        options = {"columns": Columns(), "new": NewModel(), "steps": STEPS}
        learn(tmp_path / "serial", sites[name], name=name, **options)
    states = [load(folder).state_dict() for folder in (tmp_path / "serial", model)]
    assert differences(*states) == []


def attempt(call: Callable[[], Any]) -> tuple[Any, str]:
    """The result of the call, or None and the error message. Any other exception propagates."""
    try:
        return call(), ""
    except FarshoreError as error:
        return None, str(error)


@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_mutated_folders_are_refused_or_predict_as_before(
    tmp_path: Path, seed: int
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    model, data = model_and_next_site(
        tmp_path / "x", method=["cl-coral", "sarl", "ewc", "cope", "efc"][seed % 5]
    )
    learn(model, data, name="b", columns=Columns(), new=NewModel(), steps=20)
    other, _ = model_and_next_site(tmp_path / "y", method="er")
    inputs = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    expected = load(model).predict_proba(inputs)
    chance = random.Random(seed)
    refused = 0
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(100):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(model, copy)
        how = mutate(copy, chance, other=other)
        start = time.perf_counter()
        predicted, message = attempt(lambda copy=copy: load(copy).predict_proba(inputs))
        if predicted is None:
            refused += 1
            assert 10 < len(message) < 3000, how
        else:
            assert np.array_equal(predicted, expected), how
        assert time.perf_counter() - start < 5, how
        shutil.rmtree(copy)
    assert refused > 30  # the files of the previous version are not read
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * memory


@pytest.mark.parametrize("seed", range(4))
def test_edits_with_matching_checksums_are_refused_or_load(tmp_path: Path, seed: int) -> None:
    """Edit the state and update the manifest: nothing crashes, hangs or exhausts the memory.

    The result may be a different model.
    """
    import hashlib

    model, _ = model_and_next_site(tmp_path)
    chance = random.Random(seed)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(60):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(model, copy)
        manifest = json.loads((copy / "manifest.json").read_text())
        tree = copy / manifest["parts"]["learner"]["tree"]
        data = json.dumps(edited(json.loads(tree.read_text()), chance)).encode()
        tree.write_bytes(data)
        manifest["files"][tree.name] = {
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
        }
        (copy / "manifest.json").write_text(json.dumps(manifest))
        start = time.perf_counter()
        predicted, message = attempt(lambda copy=copy: load(copy).predict_proba(torch.zeros(3, 2)))
        assert predicted is not None or len(message) > 10
        assert time.perf_counter() - start < 5
        shutil.rmtree(copy)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * memory


def test_a_claimed_width_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    """The network's sizes are compared with the stored tensors before anything is allocated."""
    import hashlib

    learner = Learner("mlp", "er", 20, settings=QUICK, network_settings={"width": 16})
    learner.learn(torch.randn(20, 4), torch.arange(20) % 2, steps=2)
    learner.save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    tree = tmp_path / manifest["parts"]["learner"]["tree"]
    data = tree.read_bytes().replace(b'"width": 16', b'"width": 30000')
    tree.write_bytes(data)
    manifest["files"][tree.name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FarshoreError, match="far more than are stored"):
        load(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < memory + 200_000


HOSTILE = {
    "bom": b"\xef\xbb\xbfa,b,y\n1,2,p\n3,4,q\n" * 1,
    "quotes": b'a,b,y\n"1,2,p\n3,4,q\n',
    "huge": b"a,b,y\n1e308,2,p\n-1e308,4,q\n1e309,1,p\n0,1,q\n",
    "latin": "a,b,y\n1,é,p\n3,ü,q\n".encode("latin-1"),
    "utf16": "a,b,y\n1,2,p\n3,4,q\n".encode("utf-16"),
    "nul": b"a,b,y\n1,\x00,p\n3,4,q\n",
    "equal": b",".join([b"a"] * 10_000) + b"\n" + b",".join([b"1"] * 10_000) + b"\n",
    "ragged": b"a,b,y\n1,2,p,4,5\n3,4,q\n",
    "empty": b"",
    "header": b"a,b,y\n",
    "binary": bytes(range(256)) * 100,
    "formula": b"a,b,y\n=cmd|' /C calc'!A0,2,p\n3,4,q\n",
    "long": b"a,b,y\n" + b"x" * 5_000_000 + b",2,p\n3,4,q\n",
}


@pytest.mark.parametrize("method", ["er", "slda"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables(tmp_path: Path, name: str, method: str) -> None:
    path = tmp_path / "hostile.csv"
    path.write_bytes(HOSTILE[name])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = NewModel(method, memory=5, settings=QUICK)
        learned, message = attempt(
            lambda: learn(
                tmp_path / "m", path, name="a", columns=COLUMNS, new=new, steps=2, validation=0
            )
        )
    if learned is None:
        assert "\n" not in message
        assert len(message) < 5000
    else:
        assert name in ("bom", "huge", "formula", "utf16")
        part = "network" if method == "er" else "head"
        weights = load(tmp_path / "m").state_dict()["system"][part]
        assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.values())
    assert time.perf_counter() - start < 5


def test_hostile_images(tmp_path: Path) -> None:
    for label in ("p", "q"):
        (tmp_path / "images" / label).mkdir(parents=True)
        Image.new("L", (8, 8), 100).save(tmp_path / "images" / label / "fine.png")
    whole = (tmp_path / "images" / "p" / "fine.png").read_bytes()
    bomb = tmp_path / "bomb.png"
    Image.new("1", (30_000, 30_000)).save(bomb)
    for name, data in {
        "cut.png": whole[:40],
        "text.jpg": b"no image",
        "bomb.png": bomb.read_bytes(),
        "claims.png": whole[:16] + (2**31 - 1).to_bytes(4, "big") * 2 + whole[24:],
        "none.gif": b"",
    }.items():
        victim = tmp_path / "images" / "p" / name
        victim.write_bytes(data)
        start = time.perf_counter()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(FarshoreError, match=name):
            read_site(tmp_path / "images", Columns(), None, labelled=True, size=8)
        assert time.perf_counter() - start < 5
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * memory
        victim.unlink()
    os.symlink("/dev/zero", tmp_path / "images" / "p" / "device.png")
    assert len(read_site(tmp_path / "images", Columns(), None, labelled=True, size=8)) == 2
