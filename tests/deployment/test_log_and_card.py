"""What a model's folder says of itself: the change log, the card, the held-out rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from clinics import COLUMNS, clinic, written

from farshore.deployment.changes import learn, take_back
from farshore.deployment.log import as_json, as_markdown
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel


def test_the_log_tells_what_was_done_and_survives_undo(
    work: Path, typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    model = work / "model"
    data = written(work, clinic(6))
    learn(model, data, name="six", columns=COLUMNS, new=NewModel(), steps=5, max_drop=1)
    take_back(model)
    log = Model.open(model).log
    assert [(entry.action, entry.site) for entry in log] == [
        *(("learned", f"clinic {number}") for number in range(4)),
        ("learned", "six"),
        ("undone", None),
    ]
    assert (log[-1].by, log[-1].note) == ("anna", "learned six")
    assert set(log[4].before) == set(log[4].after) == {f"clinic {number}" for number in range(4)}
    assert log[4].settings["steps"] == "5"
    assert log[4].rows == 150
    plain = json.loads(as_json(log))
    assert plain[4]["versions"]["farshore"]
    lines = as_markdown(log).splitlines()
    assert len([line for line in lines if line.startswith("|")]) == 8
    code, out = typed("show", model, "--log", "-o", work / "log.json")
    assert code == 0, out
    assert json.loads((work / "log.json").read_text()) == plain
    code, out = typed("show", model, "--log")
    assert "undone (learned six)" in out
    assert typed("show", model, "-o", work / "x.md")[0] == 2
    assert typed("show", model, "--log", "-o", work / "x.txt")[0] == 2


def test_the_card_is_one_that_the_hub_reads(four: Path, tmp_path: Path, typed) -> None:
    out = tmp_path / "README.md"
    words = ["card", four / "model", "-o", out, "--license", "apache-2.0"]
    assert typed(*words)[0] == 0
    _, head, body = out.read_text().split("---\n", 2)
    front = yaml.safe_load(head)
    assert front["license"] == "apache-2.0"
    assert front["pipeline_tag"] == "tabular-classification"
    results = front["model-index"][0]["results"]
    assert [each["dataset"]["name"] for each in results] == [
        f"clinic {number} (held-out rows)" for number in range(4)
    ]
    for each in results:
        assert set(each) == {"task", "dataset", "metrics"}
        assert 0.5 < each["metrics"][0]["value"] <= 1
    assert "| clinic 0 |" in body
    assert "## Change log" in body
    assert "120 held-out rows" in body


def test_show_states_the_held_out_rows(four: Path, typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = typed("show", four / "model")[1]
    assert "120 held-out rows, at most 200 per site" in out
    assert "held out" in out
