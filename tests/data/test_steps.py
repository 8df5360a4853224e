"""Defaults of own data: steps from rows, one replay batch in total, and the device found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scenarios import make_scenario

import farshore
from farshore import Run, execute
from farshore.benchmarks import make_benchmark
from farshore.data.steps import FEWEST_STEPS, MOST_STEPS, usual_steps
from farshore.errors import FarshoreError
from farshore.runs.store.identity import run_name


def table(folder: Path, rows: int = 40) -> dict[str, Any]:
    draws = np.random.default_rng(0)
    frame = pd.DataFrame({"x": draws.normal(size=3 * rows), "site": np.repeat(list("abc"), rows)})
    frame["y"] = np.where(np.arange(3 * rows) % 2, "yes", "no")
    frame.to_csv(folder / "t.csv", index=False)
    return {"path": str(folder / "t.csv"), "domain": "site", "label": "y"}


@pytest.mark.parametrize(
    ("rows", "epochs", "steps"),
    [
        (1, 20, FEWEST_STEPS),
        (320, 20, FEWEST_STEPS),
        (640, 20, 200),
        (641, 20, 201),
        (640, 40, 400),
        (10**9, 20, MOST_STEPS),
    ],
)
def test_steps_follow_from_rows_and_epochs(rows: int, epochs: float, steps: int) -> None:
    assert usual_steps(rows, epochs) == steps


def test_own_data_take_their_steps_from_the_sources_alone(tmp_path: Path) -> None:
    options = {**table(tmp_path), "epochs": 400}
    steps = usual_steps(32, 400)
    assert make_scenario("table", options, target="c").steps == steps == 200
    assert make_benchmark("table", options).usual_steps() == steps
    frame = pd.read_csv(options["path"])
    larger = pd.concat([frame, *[frame[frame["site"] == "c"]] * 5])
    larger.to_csv(options["path"], index=False)
    assert make_scenario("table", options, target="c").steps == steps
    with pytest.raises(FarshoreError, match="epochs = 0"):
        make_scenario("table", {**options, "epochs": 0}, target="c")


def test_a_step_of_own_data_costs_the_same_after_more_domains(tmp_path: Path) -> None:
    frame = pd.concat(
        [pd.read_csv(table(tmp_path)["path"]).assign(site=f"s{number}") for number in range(5)]
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"path": str(tmp_path / "t.csv"), "domain": "site", "label": "y"}
    fields: dict[str, Any] = {"benchmark": "table", "options": options, "target": "s4", "steps": 1}
    own = execute(Run.build(method="er", **fields))
    assert own.run_settings["replay_budget"] == "total"
    assert own.rows_per_step[:3] == [64, 128, 128]
    assert own.rows_per_step[3] <= 128
    asked = execute(Run.build(method="er", settings={"replay_budget": "per-domain"}, **fields))
    assert asked.rows_per_step == [64, 128, 192, 256]
    named = execute(Run.build(benchmark="heart-hospitals", method="er", steps=1))
    assert named.run_settings["replay_budget"] == "per-domain"


def test_auto_is_the_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fields: dict[str, Any] = {"benchmark": "heart-hospitals", "method": "finetune", "steps": 1}
    for there, device in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        run = Run.build(device="auto", **fields)
        assert run.device == device
        assert run_name(run) == run_name(Run.build(**fields))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert execute(Run(device="auto", **fields)).run.device == "cpu"
    assert farshore.Learner(network="mlp", method="er", device="auto").device.type == "cpu"
