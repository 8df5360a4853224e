"""Pages show what bench programs have measured, and nothing else."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from reproduction import ROOT
from reproduction.pages import performance

NAMES = sorted(path.stem for path in performance.MEASURED.glob("*.csv"))
NUMBER = re.compile(r"\d+\.\d+")


@pytest.fixture(scope="module")
def record() -> ModuleType:
    """The module of bench/ that writes the files."""
    spec = importlib.util.spec_from_file_location("record", ROOT / "bench" / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_measured_table_stands_on_a_page_once() -> None:
    pages = performance.PAGES
    shown = [name for page in pages for name, _ in performance.TABLE.findall(page.read_text())]
    assert sorted(shown) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_table_says_how_it_was_measured(name: str) -> None:
    about, rows = performance.read(performance.MEASURED / f"{name}.csv")
    assert {"measured", "command", "machine", "commit"} <= set(about)
    program = re.match(r"python (bench/\w+\.py)", about["command"]).group(1)
    assert (ROOT / program).is_file()
    assert re.fullmatch(r"[0-9a-f]{7,12} of \d{4}-\d\d-\d\d", about["commit"]), (
        "commit the program and what it measures, then measure again"
    )
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert all(cell.strip() for row in rows for cell in row)


def test_the_page_of_audits_counts_the_decisions_about_permuted_labels() -> None:
    _, rows = performance.read(performance.MEASURED / "permuted-labels.csv")
    _, tables, ready, no, few, _ = next(row for row in rows if row[0] == "permuted")
    said = (
        f"Of {tables} small tables whose labels were permuted, so that nothing can be learned, the "
        f'audit says "do not deploy" about {no}, "too few sites to say" about {few}, and "ready" '
        "about none:"
    )
    assert said in " ".join((ROOT / "docs" / "audit.md").read_text().split())
    assert ready == "0"


def test_tables_of_a_gpu_say_that_they_were_not_repeated() -> None:
    for name in NAMES:
        about, _ = performance.read(performance.MEASURED / f"{name}.csv")
        if about["machine"].startswith("NVIDIA"):
            assert about["note"] == "Not repeated since."


def test_decimal_numbers_in_the_text_are_in_a_table_of_the_page() -> None:
    page = performance.PAGE.read_text()
    tables = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    prose = re.sub(r"`[^`]*`", "", performance.TABLE.sub("", page))
    assert set(NUMBER.findall(prose)) <= set(NUMBER.findall(tables))


def test_a_saved_table_becomes_one_of_the_page(
    record: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(performance, "MEASURED", tmp_path)
    monkeypatch.setattr(performance, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sys, "argv", ["bench/step_cost.py", "--save", "made"])
    parser = argparse.ArgumentParser()
    record.add_save(parser)
    rows = (["er, twice", 1.5], ["cl-coral", "-"])
    record.show(parser.parse_args(), "3 x 4 rows", ["method", "x er"], iter(rows), ["numpy"])
    assert "| er, twice | 1.5 |" in capsys.readouterr().out
    begin, end = performance.BEGIN.format("made"), performance.END
    performance.PAGE.write_text(f"before\n\n{begin}old\n{end}\nafter\n")
    text = performance.text()
    table = "| method | x er |\n| --- | --- |\n| er, twice | 1.5 |\n| cl-coral | - |\n"
    assert text.startswith(f"before\n\n{begin}\n{table}\n*3 x 4 rows. Measured by `python bench/")
    assert "step_cost.py --save made` on " in text
    assert "numpy" in text
    assert text.endswith(f"*\n\n{end}\nafter\n")
    performance.PAGE.write_text(text)
    assert performance.text() == text


def test_files_that_differ_from_the_commit_are_noticed(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Done:
        def __init__(self, words: list[str], **_: object) -> None:
            self.stdout = " M src/x.py\n" if "status" in words else "1234567 of 2026-11-19\n"

    monkeypatch.setattr(record.subprocess, "run", Done)
    assert record.commit() == "1234567 of 2026-11-19 with changes"
