"""The reference pages of the site: commands, methods and public classes."""

from __future__ import annotations

import re

import typer

from farshore.cli.app import app
from farshore.runs import catalog
from reproduction import DOCS
from reproduction.pages.parameter_lists import as_list
from reproduction.pages.site_reference import (
    command_pages,
    method_index,
    method_pages,
    object_index,
    object_pages,
    with_scripts,
)


def test_every_command_has_a_page_with_every_flag() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    index, *pages = command_pages()
    assert [page.title for page in pages] == list(commands)
    for page in pages:
        assert f"]({page.title}.md)" in index.text
        for member in commands[page.title].params:
            shown = member.opts if member.param_type_name == "option" else [member.name.upper()]
            assert all(f"{name}" in page.text for name in shown), (page.title, shown)


def test_every_method_has_a_page_and_a_line_that_leads_to_it() -> None:
    pages = method_pages()
    assert {page.title for page in pages} == set(catalog.names())
    index = method_index((DOCS / "methods.md").read_text())
    for page in pages:
        assert f"### `{page.title}`\n" in index
        assert f"(methods/{page.title}.md)" in index
        assert page.text.startswith(f"# `{page.title}`\n")
    assert index.count("\n") < 0.4 * (DOCS / "methods.md").read_text().count("\n")
    assert "## Where the paper is unclear" in index


def test_headings_of_the_index_keep_their_order() -> None:
    whole = (DOCS / "methods.md").read_text()
    headings = re.findall(r"^##+ .+$", whole, re.MULTILINE)
    assert re.findall(r"^##+ .+$", method_index(whole), re.MULTILINE) == headings


def test_scripts_of_equations() -> None:
    assert with_scripts("L_ERM^replay + λ · P_s") == (
        "L<sub>ERM</sub><sup>replay</sup> + λ · P<sub>s</sub>"
    )
    assert with_scripts("x^{-1} < `y_i`") == "x<sup>-1</sup> &lt; y<sub>i</sub>"
    assert with_scripts("||a||²_F") == "||a||²<sub>F</sub>"


def test_parameters_become_a_list() -> None:
    text = "Learn.\n\nsteps: training steps,\n    at least 1.\na, b: two.\n\nReturns: nothing."
    assert as_list(text).split("\n") == [
        "Learn.",
        "",
        "",
        "- **`steps`**: training steps,",
        "    at least 1.",
        "- **`a`**, **`b`**: two.",
        "",
        "",
        "- **`Returns`**: nothing.",
    ]


def test_every_public_object_has_a_page() -> None:
    reference = (DOCS / "reference.md").read_text()
    pages = object_pages(reference)
    assert len(pages) == reference.count("\n::: ") > 20
    assert len({page.file for page in pages}) == len(pages)
    shown = object_index(reference)
    assert "\n::: " not in shown
    assert all(f"({page.file})" in shown for page in pages)
