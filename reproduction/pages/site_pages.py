"""Pages of the site that are made from other files: changelog, guide for contributors, notebook,
and a reference page for each command, method and public class.

Links of the first two lead from the root of the repository. On the site, those to pages of docs/
are kept, and links to other files become plain text.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # mkdocs puts this file's folder first, where names mean other things

from reproduction.pages.site_reference import (  # noqa: E402
    SitePage,
    command_pages,
    method_index,
    method_pages,
    object_index,
    object_pages,
)

PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
NOTEBOOK = "tutorial.ipynb"
STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for source, name in PAGES.items():
        text = relinked((ROOT / source).read_text())
        files.append(File.generated(config, name, content=text))
    notebook = json.loads((ROOT / "docs" / NOTEBOOK).read_text())
    page = NOTEBOOK.replace(".ipynb", ".md")
    files.append(File.generated(config, page, content=as_markdown(notebook)))
    for each in [page for pages in references().values() for page in pages]:
        files.append(File.generated(config, each.file, content=each.text))
    return files


def references() -> dict[str, list[SitePage]]:
    """The reference pages by their heading in the navigation."""
    return {
        "Commands": command_pages(),
        "Each method": method_pages(),
        "Python": object_pages((ROOT / "docs" / "reference.md").read_text()),
    }


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the reference pages to the navigation, where its entries are a word in brackets."""
    config.nav = with_references(config.nav, references())
    return config


def with_references(entries: Any, pages: dict[str, list[SitePage]]) -> Any:
    """The navigation with `[Commands]` and its like replaced by the pages."""
    if isinstance(entries, list):
        return [with_references(entry, pages) for entry in entries]
    if isinstance(entries, dict):
        return {name: with_references(entry, pages) for name, entry in entries.items()}
    if str(entries).startswith("["):
        return [{page.title: page.file} for page in pages[str(entries).strip("[]")]]
    return entries


def as_markdown(notebook: dict[str, Any]) -> str:
    """The cells of a notebook with their outputs, as Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                html = STYLE.sub("", "".join(data["text/html"]))
                parts.append(f'<div style="overflow-x: auto">{html}</div>')
            else:
                text = "".join(data.get("text/plain", output.get("text", "")))
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Links of a page in docs/ that lead outside docs/; indexes in place of long references."""
    indexes = {"methods.md": method_index, "reference.md": object_index}
    shown = indexes.get(page.file.src_uri, str)(markdown)
    return outside(shown, page.file.src_uri)


def outside(markdown: str, page: str) -> str:
    """The text of a page of docs/ with its links to other files as they are on the site."""
    root = "../" * (page.count("/") + 1)
    return LINK.sub(lambda link: _from_docs(link, root), markdown)


def relinked(text: str) -> str:
    """The text of a file in the root, with its links as they are on the site."""
    return LINK.sub(_from_root, text)


def _from_root(link: re.Match[str]) -> str:
    words, place = link.groups()
    if "://" in place or place.startswith("#"):
        return link[0]
    path, _, anchor = place.partition("#")
    anchor = f"#{anchor}" if anchor else ""
    if path in PAGES:
        return f"[{words}]({PAGES[path]}{anchor})"
    if path.startswith("docs/") and path.endswith(".md"):
        return f"[{words}]({path.removeprefix('docs/')}{anchor})"
    return words


def _from_docs(link: re.Match[str], root: str) -> str:
    words, place = link.groups()
    if place.startswith(root):
        return _from_root(re.fullmatch(LINK, f"[{words}]({place.removeprefix(root)})") or link)
    return link[0]
