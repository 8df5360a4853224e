"""The code blocks of the documents run, and console blocks print what the documents show."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from farshore.cli.app import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def plain(text: str) -> str:
    """Normalise what differs: times, decimal numbers, checksums and white space."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", text)
    return re.sub(
        r"sha256 \w+", "sha256 #", re.sub(r"\s+", " ", re.sub(r"\d+\.\d+\b", "#", text))
    ).strip()


def output_of(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """The output of a command. `farshore` runs in this process, to import PyTorch only once."""
    words = shlex.split(command)
    if words[0] != "farshore":
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        main()
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.mark.parametrize(
    ("document", "min_blocks"),
    [
        pytest.param("own-data.md", 10, marks=pytest.mark.soak),
        pytest.param("deployment.md", 16, marks=pytest.mark.soak),
        pytest.param("report.md", 3, marks=pytest.mark.soak),
        pytest.param("audit.md", 3, marks=pytest.mark.soak),
        pytest.param("images.md", 7, marks=pytest.mark.soak),
    ],
)
def test_commands_print_what_the_document_shows(
    document: str,
    min_blocks: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "anna")
    blocks = BLOCK.findall((DOCS / document).read_text())
    assert len(blocks) >= min_blocks
    names: dict[str, object] = {}
    for kind, text in blocks:
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, document, "exec"), names)
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            printed = output_of(command, monkeypatch, capsys)
            lines = [
                plain(line) for line in shown.splitlines() if line.strip() and line.strip() != "..."
            ]
            for line in lines:
                assert line in plain(printed), (
                    f"`{command}` does not print {line!r} but:\n{printed}"
                )


@pytest.mark.parametrize("document", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_scripts_named_in_documents_exist(document: Path) -> None:
    for script in re.findall(r"python (bench/\w+\.py)", document.read_text()):
        assert (DOCS.parent / script).is_file()
