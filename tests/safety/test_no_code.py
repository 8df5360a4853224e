"""A Python file that a stranger's model, runs or experiment names is imported by no command."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_networks import changed_model, make_images

import farshore
from farshore.networks import build
from farshore.networks.pretrained import own_module

NETWORK = """
from pathlib import Path
from torch import nn

(Path(__file__).parent / "ran").touch()


def tiny():
    module = nn.Sequential(nn.AvgPool2d(4), nn.Flatten())
    module.input_size = 8
    return module
"""
EXPERIMENT = """
name: e
about: x
search: {trials: 1, seeds: 1}
parts:
  - benchmarks: [{image-folder: {path: FOLDER/images, size: 8}}]
    methods: [ncm]
    target: c
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with images of three sites and a file of code that says if it ran."""
    make_images(tmp_path / "images")
    (tmp_path / "net.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(work: Path) -> bool:
    """Whether the file was imported, now or earlier in this process."""
    own_module._load.cache_clear()
    build._settled.cache_clear()
    there = (work / "ran").exists()
    (work / "ran").unlink(missing_ok=True)
    return there


def test_a_model_folder_runs_no_code_until_the_command_names_it_again(typed, work: Path) -> None:
    learned = ["learn", "m", "images/a", "--name", "a", "--size", 8, "--steps", 2]
    code, out = typed(*learned, "--network", "net.py:tiny")
    assert code == 0, out
    assert ran(work)
    again = ["learn", "m", "images/b", "--name", "b", "--steps", 2]
    assert typed(*again, "--network", "net.py:tiny")[0] == 0
    assert ran(work)
    for words in (
        ["show", "m"],
        ["predict", "m", "images/c"],
        ["evaluate", "m", "images/c"],
        ["calibrate", "m", "images/c"],
        ["arrive", "m", "images/c"],
        ["card", "m"],
        ["export", "m", "m.pt2"],
        ["learn", "m", "images/c", "--name", "c"],
        ["forget", "m", "a"],
        ["join", "m", "m2", "-o", "both"],
        ["learn", "m3", "images/c", "--name", "c", "--template", "m"],
    ):
        code, out = typed(*words)
        assert code == 2, (words, out)
        assert "name it again" in out
        assert "--network net.py:tiny" in out
        assert not ran(work), words
    code, out = typed("show", "m", "--network", "net.py:tiny")
    assert code == 0, out
    assert ran(work)
    typed("undo", "m")  # it restores the files, and cannot open them
    assert not ran(work)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["config"].update(network="net.py:tiny", network_settings={}),
        lambda tree: tree["config"]["network_settings"].update(weights="net.py:tiny"),
        lambda tree: tree["config"].update(method="net.py:tiny"),
        lambda tree: tree["config"].update(profile="net.py:tiny"),
        lambda tree: tree["config"]["settings"].update(memory="net.py:tiny"),
    ],
    ids=["network", "weights", "method", "profile", "memory"],
)
def test_a_model_folder_that_names_code_anywhere(
    typed, work: Path, change: Callable[[dict], None]
) -> None:
    learned = ["learn", "m/model", "images/a", "--name", "a", "--size", 8, "--steps", 2]
    assert typed(*learned)[0] == 0
    changed_model(work / "m", work / "changed", change)
    for words in (["show", "changed"], ["predict", "changed", "images/c"]):
        typed(*words)
        assert not ran(work)


@pytest.mark.parametrize(
    "more",
    [
        "network: net.py:tiny",
        "options: {network: net.py:tiny}",
        "options: {weights: net.py:tiny}",
        "network_settings: {network: net.py:tiny}",
        "network: resnet18\n    network_settings: {weights: net.py:tiny}",
        "network: hf:net.py:tiny",
        "network: hf:net.py",
        "network: timm:net.py:tiny",
        "settings: {memory: net.py:tiny}",
        "settings: {network: net.py:tiny}",
        "settings: {profile: net.py:tiny}",
    ],
)
def test_an_experiment_that_names_code_anywhere(typed, work: Path, more: str) -> None:
    text = f"{EXPERIMENT}    {more}\n".replace("FOLDER", str(work))
    (work / "e.yaml").write_text(text)
    for words in (["sweep", "e.yaml", "--dry-run"], ["sweep", "e.yaml", "--workers", 1]):
        code, out = typed(*words)
        assert code == 2, out
        assert not ran(work)
    for key in ("methods: [ncm]", "benchmarks: [{image-folder"):
        named = text.replace(
            key, key.replace("ncm", "net.py:tiny").replace("image-folder", "net.py:tiny")
        )
        assert named != text
        (work / "e.yaml").write_text(named)
        assert typed("sweep", "e.yaml", "--dry-run")[0] == 2
        assert not ran(work)


def test_runs_that_name_code(typed, work: Path) -> None:
    asked = {"methods": "ncm", "seeds": 1, "target": "c", "size": 8, "runs": "runs"}
    farshore.compare("images", **asked)
    (result,) = (work / "runs").glob("*/result.json")
    record = json.loads(result.read_text())
    record["run"]["network"], record["network"]["name"] = "net.py:tiny", "net.py:tiny"
    result.write_text(json.dumps(record))
    digest = hashlib.sha256(result.read_bytes()).hexdigest()
    result.with_name("result.sha256").write_text(digest)
    (work / "runs" / "experiments" / "other.yaml").write_text(
        f"{EXPERIMENT}    network: net.py:tiny\n".replace("FOLDER", str(work))
    )
    for words in (
        ["results", "runs"],
        ["report", "runs"],
        ["run", "images", "ncm", "--target", "c", "--size", 8, "--out", "runs"],
    ):
        code, out = typed(*words)
        assert code in (0, 2), out
        assert not ran(work), words
    farshore.compare("images", **asked)
    assert not ran(work)
