"""What `--json` and `--quiet` print, and that docs/scripts.md names all of it."""

from __future__ import annotations

import json
import re
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from made_sites import Made, make_sites
from typer.testing import CliRunner

from farshore.cli.app import app
from farshore.cli.flags import JSON_FORMAT
from farshore.cli.help import SECTIONS
from farshore.errors import FarshoreError

PAGE = Path(__file__).parents[2] / "docs" / "scripts.md"
QUICK = "--methods ncm,ridge --steps 1 --seeds 1 --target va --device cpu --workers 1"
LINES = {
    "methods": "methods",
    "methods of": "methods er",
    "benchmarks": "benchmarks",
    "benchmarks of": "benchmarks heart-hospitals",
    "demo --data": "demo --data patients.csv",
    "learn": "learn model a.csv --label ill --method ridge --name a",
    "predict": "predict model b.csv -o out.csv",
    "evaluate": "evaluate model b.csv",
    "show": "show model",
    "show --log": "show model --log",
    "card": "card model -o card.md",
    "again": "learn model b.csv --name b",
    "undo": "undo model",
    "forget": "forget model a",
    "run": "run heart-hospitals ncm --steps 1 --device cpu --out runs",
    "results": "results runs",
    "report": "report runs -o report.csv",
}


def printed(line: str) -> dict[str, Any]:
    """The JSON of a command, which prints nothing else."""
    ended = CliRunner().invoke(app, [*line.split(), "--json"], catch_exceptions=False)
    assert ended.exit_code == 0
    assert ended.stderr == ""
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("json")
    made = make_sites(Made(sites=2, rows=60), seed=1)
    for name, (_, rows) in zip("abc", made.groupby("site"), strict=True):
        rows.drop(columns="site").to_csv(folder / f"{name}.csv", index=False)
    with chdir(folder):
        return {name: printed(line) for name, line in LINES.items()}


@pytest.fixture(scope="module")
def documented() -> dict[str, set[str]]:
    rows = re.findall(r"^\| (`[a-z].*?) \| (.*) \|$", PAGE.read_text(), flags=re.MULTILINE)
    names: dict[str, set[str]] = {}
    for commands, text in rows:
        first, _, rest = text.partition("; ")
        for command in re.findall(r"`([^`]+)`", commands):
            names[command] = set(re.findall(r"`(\w+)`", first))
            names[f"{command} of"] = set(re.findall(r"`(\w+)`", rest))
    return names


@pytest.mark.parametrize("name", LINES)
def test_the_page_names_what_is_printed(name: str, told: Any, documented: Any) -> None:
    found = told[name]
    command = LINES[name].split()[0]
    assert found.pop("command") == command
    assert found.pop("format") == JSON_FORMAT
    known = {"again": "learn", "show --log": "show of"}.get(name, name)
    assert set(found) == documented[known]


def test_every_command_is_on_the_page(documented: Any) -> None:
    commands = {name for names in SECTIONS.values() for name in names}
    assert commands - {"calibrate"} <= set(documented)


def test_numbers_of_the_json_are_those_of_the_command(told: Any) -> None:
    assert told["learn"]["sites"] == ["a"]
    assert told["learn"]["created"] is True
    assert told["again"]["created"] is False
    assert told["predict"]["rows"] == sum(told["predict"]["predicted"].values()) == 60
    confusion = told["evaluate"]["confusion"]
    right = sum(row[place] for place, row in enumerate(confusion))
    assert told["evaluate"]["scores"]["accuracy"] == pytest.approx(right / 60)
    assert told["run"]["result"]["run"]["method"] == "ncm"
    (compared,) = told["results"]["comparisons"]
    assert compared["methods"][0]["method"] == "ncm"
    page = PAGE.read_text().split("A comparison has")[1].split("Each of its methods")
    assert set(compared) == set(re.findall(r"`(\w+)`", page[0]))
    assert set(compared["methods"][0]) == set(re.findall(r"`(\w+)`", page[1].split(" which is")[0]))


def test_quiet_prints_nothing_and_data_still_go_to_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_sites(Made(sites=2, rows=60), seed=1).drop(columns="site").to_csv("a.csv", index=False)
    run = CliRunner().invoke
    learned = run(app, [*LINES["learn"].split(), "--quiet"])
    assert (learned.exit_code, learned.output) == (0, "")
    predicted = run(app, ["predict", "model", "a.csv", "--quiet"])
    assert predicted.stderr == ""
    assert predicted.stdout.startswith("row,prediction,")
    ended = run(app, ["predict", "model", "a.csv", "--json"])
    assert isinstance(ended.exception, FarshoreError)
    assert "name a file with -o" in str(ended.exception)
    assert ended.stdout == ""


def test_too_little_data_is_said_once_with_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_sites(Made(sites=1, rows=60), seed=1).to_csv("two.csv", index=False)
    line = ["audit", "two.csv", "--domain", "site", "--label", "ill"]
    ended = CliRunner().invoke(app, line)
    assert ended.exit_code == 2
    assert ended.output.count("too little data") == 1
    ended = CliRunner().invoke(app, [*line, "--json"])
    assert ended.exit_code == 2
    found = json.loads(ended.stdout)
    assert (found["command"], found["status"]) == ("audit", "too few data")


def test_completion_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = CliRunner().invoke(
        app,
        prog_name="farshore",
        env={
            "_FARSHORE_COMPLETE": "complete_bash",
            "COMP_WORDS": "farshore aud",
            "COMP_CWORD": "1",
        },
    )
    assert shown.output.split() == ["audit"]
