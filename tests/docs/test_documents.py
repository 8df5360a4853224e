"""The documents are run: Python blocks one after another, console blocks as typed, and what they
show must be printed.
"""

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
    """Without what differs between machines: measured numbers with a point, checksums, and the
    width of blanks.
    """
    return re.sub(
        r"sha256 \w+", "sha256 #", re.sub(r"\s+", " ", re.sub(r"\d+\.\d+\b", "#", text))
    ).strip()


def typed(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints. `farshore` runs in this process, which saves the import of PyTorch."""
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
    ("document", "least"), [("own-data.md", 10), ("deployment.md", 8), ("report.md", 3)]
)
def test_a_page_shows_what_is_printed(
    document: str,
    least: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((DOCS / document).read_text())
    assert len(blocks) >= least
    names: dict[str, object] = {}
    for kind, text in blocks:
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, document, "exec"), names)
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            printed = typed(command, monkeypatch, capsys)
            lines = [
                plain(line) for line in shown.splitlines() if line.strip() and line.strip() != "..."
            ]
            for line in lines:
                assert line in plain(printed), (
                    f"`{command}` does not print {line!r} but:\n{printed}"
                )


@pytest.mark.parametrize("document", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_files_that_documents_name_are_there(document: Path) -> None:
    for script in re.findall(r"python (bench/\w+\.py)", document.read_text()):
        assert (DOCS.parent / script).is_file()
