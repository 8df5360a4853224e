"""What the commands show for finished runs stays the same, character by character."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent / "make_golden.py"
SHOWN_LINES = 60


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_golden", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


golden = load_script()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a copy of the stores."""
    golden.copy_stores(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", golden.COMMANDS)
def test_what_is_shown_is_what_was_shown(name: str, work: Path) -> None:
    made = golden.texts(name)
    # First: if runs were carried out, all that follows differs for this reason alone.
    assert golden.digests(work / name) == golden.digests(golden.STORES / name), (
        "a command on a finished store carried out runs or changed its files"
    )
    expected = {path.name: path.read_text() for path in (golden.EXPECTED / name).iterdir()}
    assert sorted(made) == sorted(expected)
    different = [
        line
        for file, text in made.items()
        for line in difflib.unified_diff(
            expected[file].splitlines(), text.splitlines(), f"{name}/{file}", "now", lineterm=""
        )
    ]
    assert not different, (
        "if this is meant, run `python tests/golden/make_golden.py` and commit what it writes:\n"
        + "\n".join(different[:SHOWN_LINES])
    )


def test_the_normal_form_keeps_all_but_what_differs_between_machines() -> None:
    text = "Made by farshore 0.2.0rc1. It\n0.12345678901234 | 1.0e-05 | 12.5  \n\n"
    assert golden.normal(text) == "Made by farshore VERSION. It\n0.123456789 | 1.0e-05 | 12.5\n"


def test_the_text_of_a_page_has_no_scripts_and_styles() -> None:
    page = "<style>p {}</style><p>one <b>two</b></p><script>if (1 < 2) {}</script>\n<p>a &amp; b"
    assert golden.visible_text(page) == "one\ntwo\na & b"


def test_the_stores_are_small_and_name_no_place_on_a_machine() -> None:
    files = [path for path in golden.STORES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_500_000
    for path in files:
        assert not any(place in path.read_text() for place in ('"/', "/home/", "/tmp/")), path
