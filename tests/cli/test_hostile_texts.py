"""Texts from strangers at the borders: terminal, page, commands to paste, and the last line."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from mutated_models import table
from reporting import result, write
from typer.testing import CliRunner

from farshore.cli import unexpected
from farshore.cli.app import app
from farshore.cli.progress import ProgressObserver
from farshore.cli.tables import PlainConsole, make_console, plain_table, printable
from farshore.errors import FarshoreError
from farshore.report.provenance import commands
from farshore.runs.run import Run

HOSTILE = ("[/red] [b]x", "[link=http://x.invalid]y", ":smile: [red]", "<script>alert(1)</script>")


def test_a_console_prints_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console = make_console()
    for name in HOSTILE:
        console.print(name)
        console.print(plain_table(name, ["", name], [[name, name]]))
    console.print("a\x1b[31m\x07\u202eb")
    printed = capsys.readouterr().out
    for name in HOSTILE:
        assert printed.count(name) == 5
    assert "\x1b" not in printed
    assert "a\\x1b[31m\\x07\\u202eb" in printed
    assert printable("plain ü\nline") == "plain ü\nline"


def test_progress_shows_names_as_they_are() -> None:
    console = PlainConsole(force_terminal=True, width=200, record=True, file=io.StringIO())
    with ProgressObserver(console) as observer:
        for name in HOSTILE:
            observer.start(name, 3)
            observer.step(name, 0, {})
            console.print(observer.bar)
            observer.domain(name, {f"{name} validation accuracy": 0.5})
    printed = console.export_text()
    for name in HOSTILE:
        assert f"learning {name}" in printed
        assert f"learned {name}: validation {name} 50.0" in printed


def test_commands_take_sites_and_domains_with_brackets(tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE[:2]):
        table(30, number).to_csv(tmp_path / f"{name.replace('/', '')}.csv", index=False)
    files = sorted(tmp_path.glob("*.csv"))
    names = ["[b]a [red]", "[link=x]b"]
    runner = CliRunner()
    model = str(tmp_path / "model [b]")
    for file, name in zip(files, names, strict=True):
        arguments = ["learn", model, str(file), "--label", "label", "--name", name, "--steps", "2"]
        done = runner.invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert f"learned {name}" in done.output
    for arguments in (
        ["show", model],
        ["evaluate", model, str(files[0])],
        ["predict", model, str(files[0])],
        ["forget", model, names[0]],
    ):
        done = runner.invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert arguments[0] not in ("show", "forget") or names[0] in done.output


def test_run_takes_domains_with_brackets(tmp_path: Path) -> None:
    parts = [table(30, number).assign(domain=name) for number, name in enumerate(HOSTILE[:3])]
    pd.concat(parts).to_csv(tmp_path / "[b]rows.csv", index=False)
    arguments = [
        *("run", str(tmp_path / "[b]rows.csv"), "er", "--domain", "domain", "--label", "label"),
        *("--target", HOSTILE[0], "--steps", "2", "--network-set", "width=8"),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert HOSTILE[0] in done.output
    assert f"learned {HOSTILE[1]}" in done.output


@pytest.mark.parametrize("command", [["run", "er"], ["compare", "--methods", "er"]])
def test_a_negative_scenario_seed_is_refused(command: list[str], tmp_path: Path) -> None:
    table(40, 0).to_csv(tmp_path / "rows.csv", index=False)
    data = [str(tmp_path / "rows.csv"), *command[1:], "--domain", "auto", "--label", "label"]
    done = CliRunner().invoke(app, [command[0], *data, "--scenario-seed", "-1"])
    assert isinstance(done.exception, FarshoreError)
    assert "scenario_seed = -1 is not allowed" in str(done.exception)


def test_the_commands_of_a_page_run_nothing_from_a_result() -> None:
    versions = {"farshore": "0.1.0\nrm -rf ~", "torch": "2.7"}
    hostile = result(
        Run(benchmark="rotated-digits", method="er"), 0.5, versions=versions, title="x"
    )
    planned = {"planned": {"experiment": "a; rm -rf ~"}}
    runs = pd.DataFrame({"result": [hostile], "config": [planned], "experiment": ["a"]})
    lines = commands(runs, {})
    assert not any(line.startswith("rm") for line in lines)
    assert all("\n" not in line for line in lines)
    swept = next(line for line in lines if line.startswith("farshore sweep"))
    assert shlex.split(swept)[2] == "reproduction/experiments/a; rm -rf ~.yaml"


def test_a_page_escapes_names(tmp_path: Path) -> None:
    hostile = HOSTILE[3]
    made = result(
        Run(benchmark="rotated-digits", method="er"), 0.5, title=hostile, notes=(hostile,)
    )
    write(tmp_path, made)
    out = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", str(tmp_path), "-o", str(out)])
    assert done.exit_code == 0, done.output
    text = out.read_text()
    assert hostile not in text
    assert "&lt;script&gt;alert(1)" in text


SCRIPT = """
import sys
import farshore.cli.app as cli
def boom(kind: str) -> None:
    if kind == "recursion":
        def again(): again()
        again()
    raise {"memory": MemoryError, "stop": KeyboardInterrupt}.get(kind, RuntimeError)("a\\nb")
cli.app.command("boom")(boom)
cli.main()
"""


def boom(kind: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, "boom", kind],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=60,
    )


@pytest.mark.parametrize("kind", ["runtime", "memory", "recursion"])
def test_an_unexpected_error_is_one_line_and_a_file(kind: str, tmp_path: Path) -> None:
    done = boom(kind, tmp_path)
    assert done.returncode == unexpected.EXIT_CODE
    assert done.stderr.count("\n") == 1
    (file,) = tmp_path.glob("farshore-error-*.txt")
    assert str(file) in done.stderr
    assert "Traceback" in file.read_text()


def test_the_traceback_can_be_asked_for_and_ctrl_c_is_one_line(tmp_path: Path) -> None:
    shown = boom("runtime", tmp_path, FARSHORE_TRACEBACK="1")
    assert "Traceback" in shown.stderr
    assert not list(tmp_path.iterdir())
    stopped = boom("stop", tmp_path)
    assert (stopped.returncode, stopped.stderr) == (130, "farshore: stopped\n")


def test_a_file_that_exists_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(os, "getpid", lambda: 7)
    written = unexpected._write("first")
    written.unlink()
    written.symlink_to(elsewhere)
    monkeypatch.setattr(unexpected.tempfile, "gettempdir", lambda: str(tmp_path))
    unexpected._write("second")
    assert not elsewhere.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("matrices", {}),
        ("matrices", {"train": [[]], "validation": [[1, 2], [3]]}),
        ("matrices", {"train": "x", "validation": 3}),
        ("metric", "nonsense"),
        ("seconds", {}),
        ("versions", {}),
        ("network", {}),
        ("sources", []),
        ("target", {"name": 3}),
        ("run", {"benchmark": [], "method": {}}),
        ("status", "perfect"),
        ("rows_per_step", None),
    ],
)
def test_ill_typed_results_are_left_out_with_a_note(
    key: str, value: object, tmp_path: Path
) -> None:
    import hashlib

    good = result(Run(benchmark="rotated-digits", method="er"), 0.5)
    write(tmp_path, good)
    bad = write(tmp_path, result(Run(benchmark="rotated-digits", method="er", seed=1), 0.5))
    data = json.loads(bad.result.read_bytes()) | {key: value}
    bad.result.write_text(json.dumps(data))
    bad.checksum.write_text(hashlib.sha256(bad.result.read_bytes()).hexdigest())
    bad.config.write_text(json.dumps({"planned": ["x"], "named_by": 3, "commit": {}}))
    for arguments in (
        ["report", str(tmp_path), "-o", str(tmp_path / "report.md")],
        ["results", str(tmp_path)],
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert "is not a complete result" in done.output


def test_ill_typed_configs_are_ignored(tmp_path: Path) -> None:
    made = write(tmp_path, result(Run(benchmark="rotated-digits", method="er"), 0.5))
    for config in ({"planned": {"seed": "x", "trial": [1]}}, {"planned": 3}, {"named_by": []}, {}):
        made.config.write_text(json.dumps(config))
        for arguments in (
            ["report", str(tmp_path), "-o", str(tmp_path / "report.html")],
            ["results", str(tmp_path)],
        ):
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, (config, done.output, done.exception)
