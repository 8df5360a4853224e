"""Executed pages show what is printed today; the rules by which they are compared and written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from reproduction import DOCS
from reproduction.pages import executed, write
from reproduction.pages.executed import agree, alike, choice, rewritten

# Pages that take a few seconds.
SHORT = ("report", "deployment")
PRINTED = ["[1/2] er: done in 0.3 s", "[2/2] er: done in 0.2 s", "title", "", "er 44.9", "the end"]


@pytest.mark.parametrize(
    "page",
    [
        page if page in SHORT else pytest.param(page, marks=pytest.mark.soak)
        for page in executed.PAGES
    ],
)
def test_a_page_shows_what_its_commands_print(page: str) -> None:
    today, by_hand = executed.of_today(page)
    assert not by_hand
    agrees = agree(executed.path_of(page).read_text(), today, executed.TOLERANCE[page])
    assert agrees, f"{page}.md: run `make docs`\n{today}"


def test_the_readme_shows_what_the_pages_show() -> None:
    text, by_hand = executed.readme()
    assert not by_hand
    assert executed.README.read_text() == text, "README.md: run `make docs`"


@pytest.mark.parametrize("page", ["demo", "audit"])
def test_a_picture_shows_the_first_sentence_of_today(page: str) -> None:
    first = Image.open(DOCS / "images" / f"{page}.png").text["verdict"]
    shown = " ".join(executed.path_of(page).read_text().split())
    assert " ".join(first.split()) in shown, "python -m reproduction.pages.screenshots"


def shown_by(text: str) -> list[list[str]]:
    """What a page shows below each command of farshore; it may show commands alone."""
    consoles = [content for kind, content in executed.BLOCK.findall(text) if kind == "console"]
    typed = [each for content in consoles for each in executed.commands(content)]
    return [shown for command, shown in typed if command.startswith("farshore ")]


def test_every_page_with_output_is_executed() -> None:
    pages = {page.stem for page in DOCS.glob("*.md") if any(shown_by(page.read_text()))}
    assert pages == set(executed.PAGES)
    for page in pages:
        assert executed.RECORD.search(executed.path_of(page).read_text()), page


@pytest.mark.parametrize("page", executed.PAGES)
def test_decimal_numbers_in_the_text_are_in_an_output_or_a_table_of_the_page(page: str) -> None:
    text = executed.path_of(page).read_text()
    shown = [content for kind, content in executed.BLOCK.findall(text) if kind == "console"]
    shown += re.findall(r"^\|.*$", text, flags=re.MULTILINE)
    known = set(re.findall(r"\d+\.\d+", "\n".join(shown)))
    for paragraph in executed.RECORD.sub("", re.sub(r"(?ms)^```.*?^```$", "", text)).split("\n\n"):
        if "`python bench/" not in paragraph:  # which prints the paragraph's numbers
            prose = re.sub(r"`[^`]*`", "", paragraph)
            assert set(re.findall(r"\d+\.\d+", prose)) <= known, paragraph


def test_lines_that_are_left_out_stay_left_out() -> None:
    assert choice(["...", "er 44.8", "..."], PRINTED) == ["...", "er 44.9", "..."]
    assert choice(["...", "title", "er 1.0", "the end"], PRINTED) == ["...", *PRINTED[2:]]
    assert choice(["old"], PRINTED) == PRINTED
    with pytest.raises(LookupError, match="nothing like this"):
        choice(["...", "nothing like this", "..."], PRINTED)


def test_the_nearest_counterpart_is_taken() -> None:
    printed = ["a 1.0", "a 2.0", "b 3 rows", "b 4 rows", "no clear winner: er leads"]
    assert choice(["...", "a 2.0", "..."], printed) == ["...", "a 2.0", "..."]
    assert choice(["...", "b 9 rows", "..."], printed) == ["...", "b 3 rows", "..."]
    assert choice(["...", "no clear winner: cl-coral leads"], printed) == ["...", printed[-1]]


@pytest.mark.parametrize("machine", [executed.machine(), "torch 1.0, other"])
def test_moments_seconds_and_sizes_of_files_are_not_compared(machine: str) -> None:
    record = f"\n<!-- executed with {machine} -->\n"
    page = f"at 2026-11-16 09:07, 2.3 s, 713.1 kB, 44.9%{record}"
    later = f"at 2026-12-01 10:00, 4.0 s, 1.2 MB, 44.9%{record}"
    assert agree(page, later, 0.3)
    assert not agree(page, later.replace("44.9%", "54.9%"), 0.3)


def test_a_page_is_rewritten_block_by_block() -> None:
    page = "Text.\n\n```python\nx = 1\n```\n\n```console\n$ one\nold 1.0\n$ two\n...\nz\n```\n"
    text, by_hand = rewritten(page, iter([["new 2.0"], ["a", "b"]]))
    assert text == page.replace("old 1.0", "new 2.0")
    assert by_hand == ["$ two\na\nb\ndoes not print: z"]


def test_a_changed_digit_fails_on_the_recorded_machine_only() -> None:
    here = f"er 44.9, sha256 12ab\n<!-- executed with {executed.machine()} -->\n"
    there = here.replace(executed.machine(), "torch 1.0, other")
    assert agree(here, here, 0.3)
    assert not agree(here, here.replace("44.9", "44.8"), 0.3)
    assert agree(there, here.replace("44.9", "44.6").replace("12ab", "34cd"), 0.3)
    assert not agree(there, here.replace("44.9", "44.5"), 0.3)
    assert not agree(there, here.replace("er", "ridge"), 0.3)
    assert not agree(there, here + "one more line\n", 0.3)


def test_lines_of_another_machine_may_differ_in_width_and_a_little_in_scores() -> None:
    assert alike("er  9.9 [−0.1, +0.1]", "er 10.1 [+0.1, −0.1]", 0.3)
    assert not alike("er 9 of 10", "er 8 of 10", 0.3)


WRITTEN = {page.PAGE for page in write.PAGES}
MEASURED = re.compile(r"^\|.*\| *\**[-+−]?\d+\.\d+\**( ±[^|]*| \[[^|]*)? *\|", re.MULTILINE)


@pytest.mark.parametrize(
    "document", sorted({*DOCS.glob("*.md")} - WRITTEN), ids=lambda path: path.name
)
def test_tables_of_measurements_name_the_program_that_prints_them(document: Path) -> None:
    for section in re.split(r"^(?=##)", document.read_text(), flags=re.MULTILINE):
        if MEASURED.search(section):
            assert re.search(r"python bench/\w+\.py", section), section[:80]


@pytest.mark.parametrize("document", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_scripts_named_in_documents_exist(document: Path) -> None:
    for script in re.findall(r"python (bench/\w+\.py)", document.read_text()):
        assert (DOCS.parent / script).is_file()
