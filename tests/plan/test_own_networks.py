"""A Python file that an experiment names is imported only if the command names it too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import farshore
from farshore.errors import FarshoreError
from farshore.results.collect import collect
from farshore.runs.plan.experiment import make_book, read_experiment

NETWORK = """
from pathlib import Path
from torch import nn

(Path(__file__).parent / "ran").touch()


def tiny():
    module = nn.Sequential(nn.AvgPool2d(4), nn.Flatten())
    module.input_size, module.interpolation = 8, "nearest"
    return module
"""
PART = """
  - benchmarks: [{{image-folder: {{path: {folder}/images}}}}]
    methods: [ncm]
    target: c
    network: {folder}/net.py:tiny
    search: {{trials: 1, seeds: 1}}
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with images of three domains, and a network that says whether it was imported."""
    (tmp_path / "net.py").write_text(NETWORK)
    draws = np.random.default_rng(0)
    for domain in "abc":
        for number in range(12):
            folder = tmp_path / "images" / domain / "yn"[number % 2]
            folder.mkdir(parents=True, exist_ok=True)
            pixels = draws.integers(0, 256, (8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
    (tmp_path / "mine.yaml").write_text(f"name: mine\nabout: x\nparts:{written(tmp_path)}")
    return tmp_path


def written(folder: Path) -> str:
    return PART.format(folder=folder)


@pytest.mark.parametrize("dry", [True, False])
def test_a_sweep_imports_only_what_the_command_names(typed, work: Path, dry: bool) -> None:
    words = ["sweep", work / "mine.yaml", "--runs", work / "runs", *["--dry-run"][: int(dry)]]
    for again in ([], ["--network", f"{work}/other.py:tiny"]):
        code, out = typed(*words, *again)
        assert code == 2, out
        assert f"name it again if you trust it, --network {work}/net.py:tiny" in out
        assert not (work / "ran").exists()
        assert not (work / "runs").exists()
    code, out = typed(*words, "--network", f"{work}/net.py:tiny")
    assert code == 0, out
    assert (work / "ran").exists()


def test_an_experiment_that_another_one_needs_is_no_way_in(work: Path) -> None:
    text = f"name: later\nabout: x\nparts:{written(work)}".replace("mine", "later")
    text = text.replace(f"    network: {work}/net.py:tiny\n", "")
    text = text.replace("search: {trials: 1, seeds: 1}", "settings_from: mine")
    (work / "later.yaml").write_text(text)
    read_experiment(work / "later.yaml")
    with pytest.raises(FarshoreError, match="name it again if you trust it"):
        make_book(work / "later.yaml")("mine")


@pytest.mark.parametrize("how", ["sweep", "compare"])
def test_a_report_of_recorded_runs_never_imports(typed, work: Path, how: str) -> None:
    """It plans them with the form of the images that was recorded."""
    own = f"{work}/net.py:tiny"
    if how == "sweep":
        code, out = typed("sweep", work / "mine.yaml", "--runs", work / "runs", "--network", own)
        assert code == 0, out
    else:
        options = {
            "methods": "ncm",
            "seeds": 1,
            "target": "c",
            "network": own,
            "runs": work / "runs",
        }
        farshore.compare(work / "images", **options)
    (work / "ran").unlink()
    farshore.networks.build._settled.cache_clear()
    farshore.networks.pretrained.own_module._load.cache_clear()
    collected = collect(work / "runs")
    assert collected.problems == ()
    assert list(collected.frame["status"].unique()) == ["done"]
    for words in (["report", work / "runs", "-o", work / "page.html"], ["results", work / "runs"]):
        code, out = typed(*words)
        assert code == 0, out
        assert not (work / "ran").exists()


def test_a_recorded_experiment_that_would_have_to_import_is_a_problem(typed, work: Path) -> None:
    (work / "runs" / "experiments").mkdir(parents=True)
    (work / "mine.yaml").rename(work / "runs" / "experiments" / "mine.yaml")
    farshore.compare("rotated-digits", methods="ncm", seeds=1, runs=work / "runs")
    problems = collect(work / "runs").problems
    assert any("reading what is recorded never runs code" in text for text in problems)
    code, out = typed("results", work / "runs")
    assert code == 0, out
    assert not (work / "ran").exists()
