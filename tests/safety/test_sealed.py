"""The target replaced by noise changes no weight and no choice, by any way in and in any search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import farshore
from farshore.runs.result import Result
from farshore.runs.store.store import Store


def table(noise: bool) -> pd.DataFrame:
    """Four sites with different columns that help; the last is noise instead, if asked."""
    draws, other = np.random.default_rng(0), np.random.default_rng(1)
    parts = []
    for number, site in enumerate("abcd"):
        x = draws.normal(size=(60, 3)) + 0.3 * number
        ill = x[:, 0] - x[:, 1] + draws.normal(0, 0.4, 60) > 0
        if noise and site == "d":
            x, ill = other.normal(50, 30, (60, 3)), other.random(60) < 0.5
        part = pd.DataFrame(x.round(4), columns=["x0", "x1", "x2"])
        parts.append(part.assign(site=site, ill=np.where(ill, "yes", "no")))
    return pd.concat(parts, ignore_index=True)


def trained(result: Result) -> dict[str, Any]:
    """All of a result that may not depend on the target."""
    of_run = {"status", "metric", "classes", "matrices", "sources"}
    kept = result.model_dump(mode="json", include=of_run)
    weights = result.target.weights if result.target is not None else None  # a stopped trial
    return {**kept, "weights": weights, "settings": dict(result.run.settings)}


def of_target(runs: Path, target: str) -> dict[str, dict[str, Any]]:
    """What was trained for a target, by method, seed and settings: names of runs tell the data."""
    found = {}
    for _, result, _ in Store(runs).results():
        if result.run.target == target:
            run = result.run
            key = json.dumps([run.method, run.seed, dict(run.settings), run.order], sort_keys=True)
            assert key not in found
            found[key] = trained(result)
    return found


@pytest.mark.soak
def test_an_audit_chooses_and_trains_without_the_site(tmp_path: Path) -> None:
    """The nested choice of a method is that of the other sites, and so are all weights."""
    options = {"domain": "site", "label": "ill", "methods": ["er", "ridge", "ncm"], "steps": 3}
    done = [
        farshore.audit(table(noise), runs=tmp_path / str(noise), orders=["listed"], **options)
        for noise in (False, True)
    ]
    one, two = (of_target(tmp_path / str(noise), "d") for noise in (False, True))
    assert one == two
    assert len(one) == 8  # with the references
    assert done[0].findings.choice.without["d"] == done[1].findings.choice.without["d"]
    assert done[0].findings.scores["d"] != done[1].findings.scores["d"]
    others = [of_target(tmp_path / str(noise), "a") for noise in (False, True)]
    assert others[0] != others[1]  # there, the noise is a source


SWEEP = """
name: guided
about: x
search: {trials: 13, seeds: 1, by: optuna}
selection: source-validation
parts:
  - benchmarks: [{table: {path: t.csv, domain: site, label: ill}}]
    methods: [er]
    target: d
    steps: 3
"""


@pytest.mark.soak
def test_a_guided_search_and_its_stopped_trials_do_not_depend_on_the_target(
    typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    found, chosen = [], []
    for noise in (False, True):
        folder = tmp_path / str(noise)
        folder.mkdir()
        monkeypatch.chdir(folder)
        table(noise).to_csv("t.csv", index=False)
        Path("guided.yaml").write_text(SWEEP)
        code, out = typed("sweep", "guided.yaml", "--workers", 1, "--runs", "runs")
        assert code == 0, out
        found.append(of_target(folder / "runs", "d"))
        saved = pd.read_csv("runs/tables/guided.csv")
        chosen.append(saved[["method", "trials_selected"]].to_dict("list"))
    assert found[0] == found[1]
    assert chosen[0] == chosen[1]
    assert len(found[0]) == 13
    assert {trial["status"] for trial in found[0].values()} == {"done", "pruned"}
    assert any(trial["settings"] for trial in found[0].values())


def saved_pictures(folder: Path, noise: bool) -> str:
    """A Hugging Face data set of images of three sites; the last is noise of another size."""
    from datasets import Dataset
    from PIL import Image

    draws, other = np.random.default_rng(0), np.random.default_rng(1)
    columns: dict[str, list[Any]] = {"image": [], "site": [], "label": [], "patient": []}
    for site in "abc":
        for row in range(16):
            pixels = draws.integers(0, 200, (8, 8, 3)) + 50 * (row % 2)
            label = "yn"[row % 2]
            if noise and site == "c":
                pixels, label = other.integers(0, 256, (20, 9)), "yn"[int(other.integers(2))]
            columns["image"].append(Image.fromarray(pixels.astype(np.uint8)))
            columns["site"].append("z" if noise and site == "c" else site)
            columns["label"].append(label)
            columns["patient"].append(f"{site}{row // 2}")
    Dataset.from_dict(columns).save_to_disk(folder)
    return str(folder)


@pytest.mark.parametrize("method", ["er", "ncm"])
def test_a_hugging_face_data_set_is_no_way_out_of_the_seal(tmp_path: Path, method: str) -> None:
    pytest.importorskip("datasets")
    found = []
    for noise in (False, True):
        options = {
            "path": saved_pictures(tmp_path / str(noise), noise),
            "domain": "site",
            "label": "label",
            "group": "patient",
            "size": 8,
        }
        run = farshore.Run.build(
            benchmark="hf-dataset",
            options=options,
            method=method,
            target="z" if noise else "c",
            network="cnn",
            memory=12,
            steps=3,
        )
        found.append(farshore.execute(run))
    assert trained(found[0]) == trained(found[1])
    assert trained(found[0])["weights"]
    assert found[0].target.scores["log_loss"] != found[1].target.scores["log_loss"]
