"""The page for those who come from other libraries: our code runs, theirs is Python."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

from reproduction import DOCS

PAGE = (DOCS / "coming-from.md").read_text()
OURS, THEIRS = (re.findall(rf"(?ms)^```{kind}\n(.*?)^```$", PAGE) for kind in ("python", "py"))


def test_our_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHORE_FEATURES", str(tmp_path / "features"))
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in OURS:
            exec(compile(block, "coming-from.md", "exec"), names)
    assert {"ridge", "joint-trees"} <= set(printed.getvalue().split())
    assert 0.5 < float(printed.getvalue().split()[-1]) <= 1
    assert (tmp_path / "model").is_dir()


def test_every_library_has_its_code_a_gain_and_what_is_not_gained() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [section.split("\n")[0] for section in sections] == [
        "scikit-learn",
        "DomainBed",
        "Avalanche",
        "AutoGluon",
    ]
    for section in sections:
        assert section.count("```") >= 4
        assert "**Gained:**" in section
        assert "**Not gained:**" in section
    for block in THEIRS:
        ast.parse(block)
    assert len(THEIRS) == 3


def test_scikit_learns_code_runs() -> None:
    names: dict[str, object] = {}
    heart = OURS[0].replace('heart.to_csv("heart.csv", index=False)', "heart = heart[::4]")
    exec(compile(f"{heart}\n{THEIRS[0]}", "coming-from.md", "exec"), names)
    assert len(names["scores"]) == 4  # type: ignore[arg-type]
