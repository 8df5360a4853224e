"""The documents are correct: commands exist, links are valid, code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_shown_exist(page: Path) -> None:
    from typer.main import get_command

    from farshore.cli.app import app

    known = get_command(app).commands
    text = page.read_text()
    for name, rest in re.findall(
        r"^\s*(?:\$ )?farshore ([a-z]+)(.*?)(?: &&.*)?$", text, flags=re.MULTILINE
    ):
        assert name in known, name
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert set(re.findall(r"(?<= )--[a-z-]+", rest)) <= options, rest
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)`", text)) <= targets


def test_what_is_promised_names_tests_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    files = (ROOT / "tests").rglob("test_*.py")
    there = {
        name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    named = re.findall(r"`(test_\w+)`", text)
    assert set(named) <= there
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 6
    assert all("`test_" in row.split("|")[4] for row in rows)


def test_the_python_of_the_readme_and_of_the_reference_runs(
    blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Writer:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def add_scalar(self, name: str, value: float, count: int) -> None:
            self.seen.append(name)

    monkeypatch.chdir(tmp_path)
    (x_a, y_a), (x_b, y_b) = blobs(0), blobs(1)
    names = {"x_a": x_a, "y_a": y_a, "x_b": x_b, "y_b": y_b, "x_new": x_b, "writer": Writer()}
    for page, count in (("README.md", 1), ("docs/index.md", 1), ("docs/reference.md", 3)):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
        assert len(blocks) == count
        for number, block in enumerate(blocks):
            if number or page == "README.md":  # the first block of the others is the README's
                exec(compile(block, page, "exec"), names)
    names["learner"].learn(x_a, y_a, domain="a", steps=60)
    assert {"loss/erm", "score/validation accuracy"} <= set(names["writer"].seen)
    assert names["result"].target_score is not None
