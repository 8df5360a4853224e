"""The documentation site and its generated parts are up to date and complete."""

from __future__ import annotations

import json

import nbformat
import pytest
import yaml

from reproduction import ROOT
from reproduction.pages import (
    executed,
    figures,
    gallery,
    layers,
    reproduction,
    site_pages,
    tutorial,
    write,
)
from reproduction.pages.executed import RECORD, agree


def test_generated_pages_and_figures_are_up_to_date() -> None:
    written = dict(write.generated())
    assert {path for path in written if path.suffix == ".svg"} == set(figures.FOLDER.glob("*.svg"))
    for path, text in written.items():
        assert path.read_text() == text, f"{path.name}: run `make docs`"


def test_every_module_of_the_import_contract_says_what_is_in_it() -> None:
    modules = [name for names in layers.layers() for name in names]
    assert len(modules) == len(set(modules))
    for path in map(layers.source, modules):
        assert layers.first_sentence(path).endswith("."), path


def test_the_notebook_has_the_cells_of_its_script_and_their_outputs() -> None:
    stored = json.loads(tutorial.NOTEBOOK.read_text())
    sources = ["".join(cell["source"]) for cell in stored["cells"]]
    assert sources == [source for _, source in tutorial.CELLS], "run reproduction.pages.tutorial"
    outputs = [cell["outputs"] for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert all(outputs)
    assert not any(output["output_type"] == "error" for each in outputs for output in each)


@pytest.mark.soak
def test_the_notebook_shows_what_its_cells_print() -> None:
    today, stored = tutorial.executed(), nbformat.read(tutorial.NOTEBOOK, as_version=4)
    assert agree(tutorial.shown(stored), tutorial.shown(today), tutorial.TOLERANCE), "make docs"


def test_a_changed_digit_of_the_notebook_is_found() -> None:
    """Each digit of its outputs in turn, all of them on the machine that it records."""
    stored = tutorial.shown(nbformat.read(tutorial.NOTEBOOK, as_version=4))
    known = RECORD.search(stored)
    assert known is not None
    places = [place for place, sign in enumerate(stored[: known.start()]) if sign.isdigit()]
    assert len(places) > 100
    for place in places[::7]:
        other = str((int(stored[place]) + 5) % 10)
        changed = stored[:place] + other + stored[place + 1 :]
        assert not agree(changed, stored, tutorial.TOLERANCE), stored[place - 20 : place + 20]


def test_a_notebook_becomes_markdown() -> None:
    table = {"data": {"text/html": ["<style>x</style>", "<table></table>"], "text/plain": ["t"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]},
        {"cell_type": "code", "source": ["frame"], "outputs": [table, {"text": ["printed\n"]}]},
    ]
    assert site_pages.as_markdown({"cells": cells}) == (
        "# Title\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n\n```python\nframe\n```\n\n"
        '<div style="overflow-x: auto"><table></table></div>\n\n'
        "```text\nprinted\n```\n"
    )


def test_links_from_the_root_are_those_of_the_site() -> None:
    text = (
        "[a](docs/audit.md#x) [b](CONTRIBUTING.md) [c](tests/plugin) [d](https://x.org) [e](#top)"
    )
    assert site_pages.relinked(text) == (
        "[a](audit.md#x) [b](contributing.md) c [d](https://x.org) [e](#top)"
    )


def test_links_from_a_page_lead_to_pages_of_the_site_or_nowhere() -> None:
    text = "[a](../methods.md) [b](../../reproduction/tables) [c](../../docs/audit.md) [d](x.md)"
    assert site_pages.outside(text, "folder/page.md") == (
        "[a](../methods.md) b [c](audit.md) [d](x.md)"
    )
    assert site_pages.outside("[a](../CONTRIBUTING.md)", "p.md") == "[a](contributing.md)"


def test_every_page_is_in_the_navigation() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry
        return [page for value in values for page in pages(value)]

    listed = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert len(listed) == len(set(listed))
    made_on_the_site = {f"[{heading}]" for heading in site_pages.references()}
    assert made_on_the_site <= set(listed)
    listed = [page for page in listed if page not in made_on_the_site]
    made = {*site_pages.PAGES.values(), site_pages.NOTEBOOK.replace(".ipynb", ".md")}
    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    details = {path for path, _ in reproduction.details()}
    assert details == set(docs.glob("*/*.md"))
    assert set(listed) == written | made


def test_the_gallery_shows_the_numbers_of_its_pages() -> None:
    names = [each.title for each in gallery.EXAMPLES]
    assert {"A table", "Images", "Text", "Join", "A method of your own"} <= set(names)
    for each in gallery.EXAMPLES:
        assert each.page.startswith("..") or each.page.removesuffix(".md") in executed.PAGES
    example = gallery.EXAMPLES[0]
    drawn = gallery.ranking(example).svg()
    means = [row["mean"] for row in gallery.RANKED.finditer(example.text)]
    assert len(means) >= 2
    assert all(f">{mean}<" in drawn for mean in means[:2])
